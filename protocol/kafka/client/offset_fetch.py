"""OffsetFetch (9), versions 2-9. Version 10 names topics by id, and an id may belong to a topic that was deleted."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.groups.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

OFFSET_FETCH: Final = ClientApi(ApiKey.OFFSET_FETCH, 2, 9, OffsetFetchRequest, OffsetFetchResponse)
