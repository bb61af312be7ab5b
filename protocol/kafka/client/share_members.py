"""A share group's member: ShareGroupHeartbeat (76), version 1; ShareFetch (78) and ShareAcknowledge (79), versions 1-2.

The records of an answer are views of the received frame.
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.groups.share_group_heartbeat import (
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)
from barnabas.protocol.messages.share.share_acknowledge import ShareAcknowledgeRequest, ShareAcknowledgeResponse
from barnabas.protocol.messages.share.share_fetch import ShareFetchRequest, ShareFetchResponse

SHARE_GROUP_HEARTBEAT: Final = ClientApi(
    ApiKey.SHARE_GROUP_HEARTBEAT, 1, 1, ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
)
SHARE_FETCH: Final = ClientApi(ApiKey.SHARE_FETCH, 1, 2, ShareFetchRequest, ShareFetchResponse)
SHARE_ACKNOWLEDGE: Final = ClientApi(ApiKey.SHARE_ACKNOWLEDGE, 1, 2, ShareAcknowledgeRequest, ShareAcknowledgeResponse)
