"""The client's side of this dialect: requests, and the responses to them, for tools that query a broker.

    frame             := int32 size | int16 api key | int16 version | int32 correlation id | string client id | body
    response          := int32 size | int32 correlation id | body
    string            := int16 size (-1 = null) | UTF-8
    array             := int32 count (-1 = null) | items

    ApiVersions v0    request: nothing
                      response: int16 error | array of (int16 key | int16 lowest | int16 highest)
    Metadata v4       request: array of topic names (empty: none, null: all) | boolean whether to create missing topics
                      response: int32 throttle ms | array of brokers (int32 node id | string host | int32 port |
                      string rack) | string cluster id | int32 controller | array of topics (int16 error | string name |
                      boolean internal | array of (int16 error | int32 partition | int32 leader | array of int32
                      replicas | array of int32 in-sync replicas))
    Metadata v8       request: as v4, then boolean cluster operations | boolean topic operations
                      response: as v4 with each topic (int16 error | string name | boolean internal | partitions |
                      int32 operations) | int32 cluster operations

Written by hand because they are small, in classic versions that every broker since Kafka 0.11 answers.
Source: Kafka's message definitions.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeVar

from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.nodes import BrokerAddress
from barnabas.protocol.primitives import Reader
from barnabas.protocol.wire.source import known_error

Item = TypeVar("Item")

_REQUEST_HEADER = struct.Struct(">hhih")
_SIZE = struct.Struct(">i")
_API_VERSIONS_VERSION = 0
_METADATA_VERSION = 4
OPERATIONS_VERSION: Final = 8
"""The version of Metadata with authorized operations."""

_LENGTH = struct.Struct(">h")
_ALL_TOPICS = b"\xff\xff\xff\xff\x00"  # a null array, and create nothing
_NO_TOPICS = b"\x00\x00\x00\x00\x00"  # an empty array, and create nothing
_OPERATIONS_WANTED = b"\x00\x01\x01"  # create no topics; operations on the cluster and on topics
_PARTITION_FIELDS = 2 + 3 * 4  # error, partition, leader, leader epoch
_NODE_ARRAYS = 3  # replicas, in-sync replicas, offline replicas


class ClusterView(NamedTuple):
    """The cluster as described by Metadata."""

    cluster_id: str | None
    brokers: tuple[BrokerAddress, ...]


class TopicAccess(NamedTuple):
    """A topic's error and the operations that this client may perform on it, as Kafka's bit field."""

    name: str
    error: ErrorCode
    operations: int


class AccessView(NamedTuple):
    """The operations that this client may perform on the cluster, as Kafka's bit field, and on topics."""

    cluster: int
    topics: tuple[TopicAccess, ...]


def api_versions_request(correlation_id: int, client_id: str) -> bytes:
    """Return an ApiVersions request as a whole frame."""
    return request_frame(ApiKey.API_VERSIONS, _API_VERSIONS_VERSION, correlation_id, client_id, b"")


def api_versions_answer(correlation_id: int, answer: bytes) -> dict[int, tuple[int, int]]:
    """Read a response without its size field; return the version range of each API key. Raises DecodeError."""
    reader = answer_body(correlation_id, answer)
    if error := reader.int16():
        raise DecodeError(f"ApiVersions was answered with error {error}")
    return dict(_array(reader, lambda: (reader.int16(), (reader.int16(), reader.int16()))))


def metadata_request(correlation_id: int, client_id: str) -> bytes:
    """Return a Metadata request without topics as a whole frame."""
    return request_frame(ApiKey.METADATA, _METADATA_VERSION, correlation_id, client_id, _NO_TOPICS)


def metadata_answer(correlation_id: int, answer: bytes) -> ClusterView:
    """Read a response without its size field; return the cluster. Raises DecodeError."""
    return _cluster(answer_body(correlation_id, answer))


def leaders_request(correlation_id: int, client_id: str) -> bytes:
    """Return a Metadata request for all topics as a whole frame."""
    return request_frame(ApiKey.METADATA, _METADATA_VERSION, correlation_id, client_id, _ALL_TOPICS)


def leaders_answer(correlation_id: int, answer: bytes) -> list[str]:
    """Read a response without its size field; return the names of partitions without a leader. Raises DecodeError."""
    reader = answer_body(correlation_id, answer)
    _cluster(reader)
    reader.int32()
    found: list[str] = []

    def topic() -> None:
        reader.int16()
        name = _string(reader) or ""
        reader.raw(1)

        def partition() -> None:
            reader.int16()
            number, leader = reader.int32(), reader.int32()
            _array(reader, reader.int32)
            _array(reader, reader.int32)
            if leader < 0:
                found.append(f"{name}-{number}")

        _array(reader, partition)

    _array(reader, topic)
    return found


def access_request(correlation_id: int, client_id: str, topics: Sequence[str]) -> bytes:
    """Return a Metadata request for authorized operations on the cluster and on `topics` as a whole frame."""
    names = b"".join(map(_string_bytes, topics))
    body = _SIZE.pack(len(topics)) + names + _OPERATIONS_WANTED
    return request_frame(ApiKey.METADATA, OPERATIONS_VERSION, correlation_id, client_id, body)


def access_answer(correlation_id: int, answer: bytes) -> AccessView:
    """Read a response without its size field. Raises DecodeError."""
    reader = answer_body(correlation_id, answer)
    _cluster(reader)
    reader.int32()

    def partition() -> None:
        reader.raw(_PARTITION_FIELDS)
        for _ in range(_NODE_ARRAYS):
            _array(reader, reader.int32)

    def topic() -> TopicAccess:
        error, name = known_error(reader.int16()), _string(reader) or ""
        reader.raw(1)
        _array(reader, partition)
        return TopicAccess(name, error, reader.int32())

    topics = tuple(_array(reader, topic))
    return AccessView(reader.int32(), topics)


def request_frame(api: ApiKey, version: int, correlation_id: int, client_id: str, body: bytes) -> bytes:
    """Return a request as a whole frame. In flexible versions `body` begins with the header's tagged fields."""
    client = client_id.encode()
    header = _REQUEST_HEADER.pack(api, version, correlation_id, len(client)) + client
    return _SIZE.pack(len(header) + len(body)) + header + body


def answer_body(correlation_id: int, answer: bytes) -> Reader:
    """Return a reader of a response after its correlation id; `answer` has no size field. Raises DecodeError."""
    reader = Reader(answer)
    found = reader.int32()
    if found != correlation_id:
        raise DecodeError(f"the answer has correlation id {found}, not {correlation_id}")
    return reader


def _cluster(reader: Reader) -> ClusterView:
    """Read a Metadata response as far as the cluster id."""
    reader.int32()

    def broker() -> BrokerAddress:
        address = BrokerAddress(reader.int32(), _string(reader) or "", reader.int32())
        _string(reader)
        return address

    brokers = tuple(_array(reader, broker))
    return ClusterView(_string(reader), brokers)


def _string_bytes(text: str) -> bytes:
    data = text.encode()
    return _LENGTH.pack(len(data)) + data


def _string(reader: Reader) -> str | None:
    size = reader.int16()
    if size < 0:
        return None
    try:
        return reader.raw(size).decode()
    except UnicodeDecodeError as error:
        raise DecodeError(f"a string is not UTF-8: {error}") from error


def _array(reader: Reader, read_item: Callable[[], Item]) -> list[Item]:
    count = max(0, reader.int32())
    if count > reader.remaining:  # every item has a byte at least: a lie allocates nothing
        raise DecodeError(f"an array of {count} items in {reader.remaining} bytes")
    return [read_item() for _ in range(count)]
