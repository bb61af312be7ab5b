"""Barnabas' own APIs, as its clients speak them."""

from __future__ import annotations

from typing import Final

from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.cluster.explain_start import ExplainStartRequest, ExplainStartResponse
from barnabas.protocol.messages.cluster.mirrors import MirrorsRequest, MirrorsResponse
from barnabas.protocol.messages.cluster.standby import StandbyRequest, StandbyResponse
from barnabas.protocol.messages.groups.explain_group import ExplainGroupRequest, ExplainGroupResponse
from barnabas.protocol.messages.topics.cleaning import CleaningRequest, CleaningResponse
from barnabas.protocol.messages.topics.explain_topic import ExplainTopicRequest, ExplainTopicResponse

MIRRORS: Final = ClientApi(ApiKey.MIRRORS, 0, 0, MirrorsRequest, MirrorsResponse)
STANDBY: Final = ClientApi(ApiKey.STANDBY, 0, 0, StandbyRequest, StandbyResponse)
EXPLAIN_GROUP: Final = ClientApi(ApiKey.EXPLAIN_GROUP, 0, 0, ExplainGroupRequest, ExplainGroupResponse)
EXPLAIN_START: Final = ClientApi(ApiKey.EXPLAIN_START, 0, 0, ExplainStartRequest, ExplainStartResponse)
EXPLAIN_TOPIC: Final = ClientApi(ApiKey.EXPLAIN_TOPIC, 0, 0, ExplainTopicRequest, ExplainTopicResponse)
CLEANING: Final = ClientApi(ApiKey.CLEANING, 0, 0, CleaningRequest, CleaningResponse)
