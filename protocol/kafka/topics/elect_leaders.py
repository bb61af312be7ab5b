"""ElectLeaders (43), versions 0-2. Version 1 added the type of election, and an error for the whole request."""

from __future__ import annotations

from functools import partial

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.schema import (
    INT8,
    INT16,
    INT32,
    MESSAGE,
    NO_THROTTLE,
    STRING,
    Array,
    Message,
    Struct,
    rows,
    since,
)
from barnabas.protocol.messages.topics.elect_leaders import (
    PREFERRED,
    ElectLeadersPartitionResult,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ElectLeadersTopic,
    ElectLeadersTopicResult,
)

REQUEST = Message(
    2,
    partial(ElectLeadersRequest, election_type=PREFERRED),
    election_type=since(1, INT8),
    topics=Array(Struct(ElectLeadersTopic, name=STRING, partitions=Array(INT32)), nullable_from=0),
    _timeout_ms=INT32,
)
_RESULT = Struct(partition=INT32, error=INT16, message=MESSAGE)
RESPONSE = Message(
    2, throttle_ms=NO_THROTTLE, error=since(1, INT16), topics=rows(name=STRING, partitions=Array(_RESULT))
)

decode_request = REQUEST.read
encode_response = RESPONSE.write


def encode_error(version: int, request: ElectLeadersRequest, code: ErrorCode, message: str) -> bytes:
    """The code for the whole request, and for every partition that it names."""
    topics = [
        ElectLeadersTopicResult(
            topic.name, [ElectLeadersPartitionResult(each, code, message) for each in topic.partitions]
        )
        for topic in request.topics or ()
    ]
    return RESPONSE.write(version, ElectLeadersResponse(topics, code))
