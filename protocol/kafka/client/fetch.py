"""Fetch (1), versions 4-17, as a consumer or a replica: batches as they are stored.

The records of an answer are views of the received frame.
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.data.fetch import FetchRequest, FetchResponse

FETCH: Final = ClientApi(ApiKey.FETCH, 4, 17, FetchRequest, FetchResponse)
