"""The native dialect: what its seven APIs mean, that docs/native.md names their fields, and what hostile bytes do."""

from __future__ import annotations

import random
import re
import struct
from pathlib import Path
from typing import Any

import msgpack
import pytest

from barnabas.protocol.errors import BrokerError, DecodeError, ErrorCode
from barnabas.protocol.framing import NATIVE_MAGIC, FrameError, frame_size
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.cluster.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.data.fetch import (
    AbortedTransaction,
    FetchPartition,
    FetchPartitionResult,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    FetchTopicResult,
)
from barnabas.protocol.messages.data.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResult,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
    ListOffsetsTopicResult,
)
from barnabas.protocol.messages.data.produce import (
    ProducePartition,
    ProducePartitionResult,
    ProduceRequest,
    ProduceResponse,
    ProduceTopic,
    ProduceTopicResult,
)
from barnabas.protocol.messages.nodes import BrokerAddress
from barnabas.protocol.messages.security.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from barnabas.protocol.messages.topics.metadata import (
    MetadataRequest,
    MetadataResponse,
    PartitionMetadata,
    TopicMetadata,
)
from barnabas.protocol.native import dialect
from barnabas.protocol.native.bodies import SERVED
from barnabas.protocol.wire.pieces import RecordBytes

PAGE = (Path(__file__).parents[2] / "docs" / "native.md").read_text(encoding="utf-8")
MUTANTS = 1500

Exchange = tuple[ApiKey, dict[str, Any], bytes, Any, Any, dict[str, Any]]

EXCHANGES: list[Exchange] = [
    (
        ApiKey.API_VERSIONS,
        {"client": "me", "client_version": "1"},
        b"",
        ApiVersionsRequest(client="me", client_version="1"),
        ApiVersionsResponse(server="barnabas", server_version="0", cluster_id="c", node_id=1, max_frame_bytes=100),
        {
            "server": "barnabas",
            "server_version": "0",
            "cluster_id": "c",
            "node_id": 1,
            "apis": [[api, 0, 0] for api in (0, 1, 2, 3, 17, 18, 36)],
            "max_frame_bytes": 100,
        },
    ),
    (
        ApiKey.SASL_HANDSHAKE,
        {"mechanism": "PLAIN"},
        b"",
        SaslHandshakeRequest(mechanism="PLAIN"),
        SaslHandshakeResponse(error=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=("SCRAM-SHA-256",)),
        {"error": 33, "mechanisms": ["SCRAM-SHA-256"]},
    ),
    (
        ApiKey.SASL_AUTHENTICATE,
        {"auth_bytes": b"\0alice\0secret"},
        b"",
        SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"),
        SaslAuthenticateResponse(auth_bytes=b"v=", session_lifetime_ms=1 << 40),
        {"error": 0, "message": None, "auth_bytes": b"v=", "session_lifetime_ms": 1 << 40},
    ),
    (
        ApiKey.METADATA,
        {"topics": ["t"], "allow_auto_creation": True},
        b"",
        MetadataRequest.of_names(["t"], allow_auto_creation=True),
        MetadataResponse(
            cluster_id="c",
            brokers=[BrokerAddress(1, "localhost", 9092)],
            topics=[
                TopicMetadata(
                    name="t",
                    topic_id=bytes(15) + b"\x03",
                    partitions=[PartitionMetadata(partition=4, leader=1, leader_epoch=2)],
                ),
                TopicMetadata(name="u", error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ],
        ),
        {
            "cluster_id": "c",
            "brokers": [[1, "localhost", 9092]],
            "topics": [[0, "t", "A" * 21 + "w", [[0, 4, 1, 2]]], [3, "u", "A" * 22, []]],
        },
    ),
    (
        ApiKey.PRODUCE,
        {
            "acks": -1,
            "timeout_ms": 1000,
            "topics": [["t", [[0, 3], [7, 0]]], ["u", [[-1, 2]]]],
            "transactional_id": "x",
        },
        b"abcde",
        ProduceRequest(
            acks=-1,
            timeout_ms=1000,
            topics=[
                ProduceTopic(
                    name="t",
                    partitions=[ProducePartition(0, memoryview(b"abc")), ProducePartition(7, memoryview(b""))],
                ),
                ProduceTopic(name="u", partitions=[ProducePartition(-1, memoryview(b"de"))]),
            ],
            transactional_id="x",
        ),
        ProduceResponse(
            topics=[
                ProduceTopicResult(
                    name="t",
                    partitions=[
                        ProducePartitionResult(0, base_offset=1 << 40, log_append_time_ms=5, log_start_offset=6),
                        ProducePartitionResult(7, ErrorCode.CORRUPT_MESSAGE, message="why"),
                    ],
                )
            ]
        ),
        {"topics": [["t", [[0, 0, None, 1 << 40, 5, 6], [7, 2, "why", -1, -1, -1]]]]},
    ),
    (
        ApiKey.FETCH,
        {
            "max_wait_ms": 500,
            "min_bytes": 2,
            "max_bytes": 1 << 20,
            "isolation": 1,
            "topics": [["t", [[0, 1 << 40, 1 << 19]]]],
        },
        b"",
        FetchRequest(
            max_wait_ms=500,
            min_bytes=2,
            max_bytes=1 << 20,
            isolation=1,
            topics=[FetchTopic(name="t", partitions=[FetchPartition(partition=0, offset=1 << 40, max_bytes=1 << 19)])],
        ),
        FetchResponse(
            topics=[
                FetchTopicResult(
                    name="t",
                    partitions=[
                        FetchPartitionResult(
                            partition=0,
                            high_watermark=9,
                            last_stable_offset=8,
                            log_start_offset=7,
                            aborted=[AbortedTransaction(producer_id=5, first_offset=6)],
                            records=RecordBytes(b"xyz"),
                        ),
                        FetchPartitionResult(partition=1, error=ErrorCode.OFFSET_OUT_OF_RANGE),
                    ],
                )
            ]
        ),
        {"topics": [["t", [[0, 0, 9, 8, 7, [[5, 6]], 3], [1, 1, -1, -1, -1, [], 0]]]]},
    ),
    (
        ApiKey.LIST_OFFSETS,
        {"isolation": 1, "topics": [["t", [[0, -2]]]]},
        b"",
        ListOffsetsRequest(
            isolation=1,
            topics=[ListOffsetsTopic(name="t", partitions=[ListOffsetsPartition(partition=0, timestamp=-2)])],
        ),
        ListOffsetsResponse(
            topics=[
                ListOffsetsTopicResult(
                    name="t",
                    partitions=[ListOffsetsPartitionResult(partition=0, offset=3, timestamp=4, leader_epoch=5)],
                )
            ]
        ),
        {"topics": [["t", [[0, 0, 3, 4, 5]]]]},
    ),
]
LABELS = [exchange[0].label for exchange in EXCHANGES]


def frame_of(api: int, body: Any, records: bytes = b"", client_id: str | None = "me") -> memoryview:
    packed = msgpack.packb([api, 0, 42, client_id, body])
    return memoryview(struct.pack(">I", NATIVE_MAGIC << 24 | len(packed)) + packed + records)


def decoded(frame: memoryview) -> Any:
    header = dialect.read_request(frame)
    return dialect.decode_body(header) if dialect.is_supported(header, unstable=True) else None


def test_every_api_has_an_exchange_here() -> None:
    assert {exchange[0] for exchange in EXCHANGES} == set(SERVED)


@pytest.mark.parametrize("exchange", EXCHANGES, ids=LABELS)
def test_an_exchange_is_what_the_page_says(exchange: Exchange) -> None:
    api, body, records, request, response, answer = exchange
    header = dialect.read_request(frame_of(api, body, records))
    assert (header.api, header.version, header.correlation_id, header.client_id) == (api, 0, 42, "me")
    assert dialect.is_supported(header, unstable=True)
    assert dialect.decode_body(header) == request

    frame, parts = dialect.encode_response(header, response)
    size, magic_and_size = struct.unpack_from(">iI", frame)
    assert msgpack.unpackb(frame[8:]) == [api, 0, 42, 0, answer]
    assert magic_and_size == NATIVE_MAGIC << 24 | (len(frame) - 8)
    assert size == len(frame) - 4 + sum(part.size for part in parts)
    assert [part.size for part in parts] == ([3] if api is ApiKey.FETCH else [])

    (section,) = re.findall(rf"^### (?:\d+ \w+, )?{int(api)} .*?(?=^##)", PAGE, flags=re.DOTALL | re.MULTILINE)
    named = [
        each for row in re.findall(r"^\| (`.*?`) \|", section, re.MULTILINE) for each in re.findall(r"`(\w+)`", row)
    ]
    pair = api in {ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}
    assert set(named) >= {*body, *answer}
    assert pair or set(named) == {*body, *answer}


@pytest.mark.parametrize("exchange", EXCHANGES, ids=LABELS)
def test_mutated_requests_raise_what_closes_or_answers_and_nothing_else(exchange: Exchange) -> None:
    api, body, records, *_ = exchange
    seed = f"native-{api.label}"
    generator = random.Random(seed)
    original = frame_of(api, body, records)
    for turn in range(MUTANTS):
        frame = bytearray(original)
        for _ in range(generator.randint(1, 4)):
            frame[generator.randrange(len(frame))] = generator.randrange(256)
        if generator.random() < 0.3:
            del frame[generator.randrange(1, len(frame)) :]
        try:
            decoded(memoryview(frame))
        except (DecodeError, BrokerError):
            continue
        except Exception as error:
            error.add_note(f"seed {seed} turn {turn}")
            raise


@pytest.mark.parametrize(
    ("api", "body", "sentence"),
    [
        (ApiKey.FETCH, {}, "topics is missing"),
        (ApiKey.FETCH, {"topics": 5}, "topics is of type int, not an array"),
        (ApiKey.FETCH, {"topics": [["t", [[0, 1]]]]}, "partitions[] is an array of 2 values"),
        (ApiKey.FETCH, {"topics": [], "max_bytes": -1}, "max_bytes=-1 is outside"),
        (ApiKey.FETCH, {"topics": [], "isolation": 2}, "isolation=2 is outside"),
        (ApiKey.PRODUCE, {"acks": True, "topics": []}, "acks is of type bool"),
        (ApiKey.PRODUCE, {"acks": 1, "topics": [["t", [[0, 5]]]]}, "the sizes add up to more than the 0 bytes"),
        (ApiKey.PRODUCE, {"acks": 1, "topics": [["t", [[0, -5]]]]}, "size=-5 is outside"),
        (ApiKey.METADATA, {"topics": [b"raw"]}, "topics[] is of type bytes"),
        (ApiKey.METADATA, {"allow_auto_creation": 1}, "allow_auto_creation is of type int, not a boolean"),
        (ApiKey.SASL_AUTHENTICATE, {"auth_bytes": "text"}, "auth_bytes is of type str, not binary"),
        (ApiKey.SASL_HANDSHAKE, {"mechanism": "\u20ac" * 20000}, "mechanism has more than 32767 bytes as UTF-8"),
        (ApiKey.LIST_OFFSETS, [], "body is an array of 0 values, not a map"),
    ],
)
def test_a_field_that_is_missing_or_wrong_is_named(api: ApiKey, body: Any, sentence: str) -> None:
    with pytest.raises(BrokerError, match=re.escape(sentence)) as refused:
        decoded(frame_of(api, body))
    assert refused.value.code is ErrorCode.INVALID_REQUEST


def test_records_after_the_body_of_an_api_without_records_are_refused() -> None:
    with pytest.raises(BrokerError, match="5 bytes follow the header"):
        decoded(frame_of(ApiKey.METADATA, {}, b"stray"))


@pytest.mark.parametrize(
    ("frame", "sentence"),
    [
        (b"\xb7\x00", "no header size"),
        (b"\x50OST", "magic 0x50"),
        (b"\xb7\x00\x00\x05abc", "longer than its frame"),
        (b"\xb7\x00\x00\x01\xc1", "not msgpack"),
        (b"\xb7\x00\x00\x02\x90\x90", "not msgpack"),
        (b"\xb7\x00\x00\x01\x90", "not an array of 5"),
        (b"\xb7\x00\x00\x06\x95\xc0\x00\x00\xc0\x80", "does not begin with the integers"),
        (b"\xb7\x00\x00\x06\x95\x00\x00\x00\x07\x80", "client_id"),
        (b"\xb7\x00\x20\x08\x95\x00\x00\x00\xda\x20\x00" + b"x" * 8192 + b"\x80", "client_id has 8192"),
    ],
)
def test_broken_framing_is_a_frame_error(frame: bytes, sentence: str) -> None:
    with pytest.raises(FrameError, match=sentence):
        dialect.read_request(memoryview(frame))


@pytest.mark.parametrize(("size", "sentence"), [(0, "not positive"), (-7, "not positive"), (101, "above socket")])
def test_an_impossible_frame_size_is_refused(size: int, sentence: str) -> None:
    with pytest.raises(FrameError, match=sentence):
        frame_size(bytearray(struct.pack(">i", size)), 0, 100)
    assert frame_size(bytearray(struct.pack(">i", 100)), 0, 100) == 100


@pytest.mark.parametrize(
    ("body", "sentence"),
    [({"client": "x" * (3 << 20)}, "is above 2097152"), ({"topics": [0] * 250_001}, "more than 250000 values")],
)
def test_a_requests_header_is_limited(body: dict[str, Any], sentence: str) -> None:
    with pytest.raises(FrameError, match=sentence):
        dialect.read_request(frame_of(ApiKey.METADATA, body))


def test_keys_from_the_future_are_ignored() -> None:
    assert decoded(frame_of(ApiKey.METADATA, {"topics": None, "novelty": [1]})) == MetadataRequest.of_names(None)


def test_other_apis_and_versions_are_refused_and_hello_is_named() -> None:
    header = dialect.read_request(frame_of(19, {}))
    answer, _ = dialect.refuse_unknown(header)
    assert not dialect.is_supported(header, unstable=True)
    message = "api 19 version 0 is not served here; hello lists what is"
    assert msgpack.unpackb(answer[8:]) == [19, 0, 42, 35, {"message": message}]
    assert not dialect.is_supported(header._replace(api=3, version=1), unstable=True)


def test_a_throttled_answer_keeps_the_size_of_its_records() -> None:
    header = dialect.read_request(frame_of(ApiKey.FETCH, {}))
    response = next(response for api, _, _, _, response, _ in EXCHANGES if api is ApiKey.FETCH)
    frame, _ = dialect.encode_response(header, response)
    throttled = dialect.with_throttle(header, frame, 250)
    assert msgpack.unpackb(throttled[8:])[4] == {**msgpack.unpackb(frame[8:])[4], "throttle_ms": 250}
    assert struct.unpack_from(">i", throttled)[0] == len(throttled) - 4 + 3


def test_an_answer_too_large_for_its_size_fields_is_refused() -> None:
    class ManyBytes(RecordBytes):
        size = 1 << 31

    header = dialect.read_request(frame_of(ApiKey.METADATA, {}))
    partition = FetchPartitionResult(partition=0, records=ManyBytes())
    fetched = FetchResponse(topics=[FetchTopicResult(name="t", partitions=[partition])])
    for api, response in (
        (ApiKey.METADATA, MetadataResponse(cluster_id="x" * (1 << 24))),
        (ApiKey.FETCH, fetched),
    ):
        with pytest.raises(BrokerError, match="ask for less at a time") as refused:
            dialect.encode_response(header._replace(api=api), response)
        assert refused.value.code is ErrorCode.INVALID_REQUEST
