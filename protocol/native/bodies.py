"""The bodies of the native dialect's seven APIs: a request from msgpack's values, an answer to them.

docs/native.md has their fields. Bodies are untrusted: every decoder raises DecodeError, naming the field, and nothing
else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.cluster.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.data.fetch import (
    DEFAULT_MAX_BYTES,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from barnabas.protocol.messages.data.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.data.produce import ProducePartition, ProduceRequest, ProduceResponse, ProduceTopic
from barnabas.protocol.messages.security.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from barnabas.protocol.messages.topics.metadata import MetadataRequest, MetadataResponse
from barnabas.protocol.native.fields import (
    INT16,
    INT32,
    INT64,
    array,
    binary,
    boolean,
    field,
    integer,
    optional_text,
    row,
    text,
    topics_of,
)
from barnabas.protocol.uuids import uuid_text

Body = dict[str, Any]

VERSION: Final = 0
"""The version of every API so far: new fields are new keys, and both sides ignore unknown keys."""

DEFAULT_TIMEOUT_MS: Final = 30_000

_COUNT: Final = (0, INT32[1])
_ISOLATION: Final = (READ_UNCOMMITTED, READ_COMMITTED)


def _hello(body: Body) -> ApiVersionsRequest:
    return ApiVersionsRequest(
        client=text(field(body, "client", ""), "client"),
        client_version=text(field(body, "client_version", ""), "client_version"),
    )


def _hello_answer(answer: ApiVersionsResponse) -> Body:
    return {
        "server": answer.server,
        "server_version": answer.server_version,
        "cluster_id": answer.cluster_id,
        "node_id": answer.node_id,
        "apis": [[int(api), VERSION, VERSION] for api in sorted(SERVED)],
        "max_frame_bytes": answer.max_frame_bytes,
    }


def _handshake(body: Body) -> SaslHandshakeRequest:
    return SaslHandshakeRequest(mechanism=text(field(body, "mechanism"), "mechanism"))


def _handshake_answer(answer: SaslHandshakeResponse) -> Body:
    return {"error": int(answer.error), "mechanisms": list(answer.mechanisms)}


def _authenticate(body: Body) -> SaslAuthenticateRequest:
    return SaslAuthenticateRequest(auth_bytes=binary(field(body, "auth_bytes"), "auth_bytes"))


def _authenticate_answer(answer: SaslAuthenticateResponse) -> Body:
    return {
        "error": int(answer.error),
        "message": answer.message or None,
        "auth_bytes": answer.auth_bytes,
        "session_lifetime_ms": answer.session_lifetime_ms,
    }


def _metadata(body: Body) -> MetadataRequest:
    topics = field(body, "topics", None)
    return MetadataRequest.of_names(
        None if topics is None else [text(name, "topics[]") for name in array(topics, "topics")],
        allow_auto_creation=boolean(field(body, "allow_auto_creation", False), "allow_auto_creation"),
    )


def _metadata_answer(answer: MetadataResponse) -> Body:
    return {
        "cluster_id": answer.cluster_id,
        "brokers": [[broker.node_id, broker.host, broker.port] for broker in answer.brokers],
        "topics": [
            [
                int(topic.error),
                topic.topic_name,
                uuid_text(topic.topic_id),
                [[int(each.error), each.partition, each.leader, each.leader_epoch] for each in topic.partitions],
            ]
            for topic in answer.topics
        ],
    }


def decode_produce(body: Body, records: memoryview) -> ProduceRequest:
    """Decode a produce request; each partition's `records` is its slice of `records`."""
    left = records

    def partition(entry: Any) -> ProducePartition:
        nonlocal left
        number, size = row(entry, "partitions[]", 2)
        if integer(size, "size", _COUNT) > len(left):
            raise DecodeError(f"the sizes add up to more than the {len(records)} bytes of records in the frame")
        batch, left = left[:size], left[size:]
        return ProducePartition(integer(number, "partition", INT32), batch)

    topics = topics_of(field(body, "topics"), ProduceTopic, partition)
    if len(left):
        taken = len(records) - len(left)
        raise DecodeError(f"the sizes add up to {taken}, but {len(records)} bytes of records follow the header")
    return ProduceRequest(
        acks=integer(field(body, "acks"), "acks", INT16),
        timeout_ms=integer(field(body, "timeout_ms", DEFAULT_TIMEOUT_MS), "timeout_ms", INT32),
        topics=topics,
        transactional_id=optional_text(field(body, "transactional_id", None), "transactional_id"),
    )


def _produce_answer(answer: ProduceResponse) -> Body:
    return {
        "topics": [
            [
                topic.name,
                [
                    [p.partition, int(p.error), p.message, p.base_offset, p.log_append_time_ms, p.log_start_offset]
                    for p in topic.partitions
                ],
            ]
            for topic in answer.topics
        ]
    }


def _fetch(body: Body) -> FetchRequest:
    return FetchRequest(
        max_wait_ms=integer(field(body, "max_wait_ms", 0), "max_wait_ms", _COUNT),
        min_bytes=integer(field(body, "min_bytes", 1), "min_bytes", _COUNT),
        max_bytes=integer(field(body, "max_bytes", DEFAULT_MAX_BYTES), "max_bytes", _COUNT),
        isolation=integer(field(body, "isolation", READ_UNCOMMITTED), "isolation", _ISOLATION),
        topics=topics_of(field(body, "topics"), FetchTopic, _fetch_partition),
    )


def _fetch_partition(entry: Any) -> FetchPartition:
    partition, offset, max_bytes = row(entry, "partitions[]", 3)
    return FetchPartition(
        partition=integer(partition, "partition", INT32),
        offset=integer(offset, "offset", INT64),
        max_bytes=integer(max_bytes, "max_bytes", _COUNT),
    )


def _fetch_answer(answer: FetchResponse) -> Body:
    return {
        "topics": [
            [
                topic.name,
                [
                    [
                        p.partition,
                        int(p.error),
                        p.high_watermark,
                        p.last_stable_offset,
                        p.log_start_offset,
                        [[aborted.producer_id, aborted.first_offset] for aborted in p.aborted or ()],
                        p.records.size,
                    ]
                    for p in topic.partitions
                ],
            ]
            for topic in answer.topics
        ]
    }


def _list_offsets(body: Body) -> ListOffsetsRequest:
    topics = topics_of(field(body, "topics"), ListOffsetsTopic, _list_offsets_partition)
    isolation = integer(field(body, "isolation", READ_UNCOMMITTED), "isolation", _ISOLATION)
    return ListOffsetsRequest(isolation=isolation, topics=topics)


def _list_offsets_partition(entry: Any) -> ListOffsetsPartition:
    partition, timestamp = row(entry, "partitions[]", 2)
    return ListOffsetsPartition(
        partition=integer(partition, "partition", INT32), timestamp=integer(timestamp, "timestamp", INT64)
    )


def _list_offsets_answer(answer: ListOffsetsResponse) -> Body:
    return {
        "topics": [
            [topic.name, [[p.partition, int(p.error), p.offset, p.timestamp, p.leader_epoch] for p in topic.partitions]]
            for topic in answer.topics
        ]
    }


class NativeBodies(NamedTuple):
    """An API's decoder of requests, which only for Produce takes the records, and its encoder of answers."""

    decode_request: Callable[..., Any]
    encode_response: Callable[[Any], Body]


SERVED: Final[dict[int, NativeBodies]] = {
    ApiKey.PRODUCE: NativeBodies(decode_produce, _produce_answer),
    ApiKey.FETCH: NativeBodies(_fetch, _fetch_answer),
    ApiKey.LIST_OFFSETS: NativeBodies(_list_offsets, _list_offsets_answer),
    ApiKey.METADATA: NativeBodies(_metadata, _metadata_answer),
    ApiKey.SASL_HANDSHAKE: NativeBodies(_handshake, _handshake_answer),
    ApiKey.API_VERSIONS: NativeBodies(_hello, _hello_answer),
    ApiKey.SASL_AUTHENTICATE: NativeBodies(_authenticate, _authenticate_answer),
}
