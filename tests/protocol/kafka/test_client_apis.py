"""The client's side of Kafka's APIs: frames, versions that both sides speak, errors that name the API."""

from __future__ import annotations

from datetime import timedelta

import pytest
from kio.schema.errors import ErrorCode as KafkaError

from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.kafka.client.api_versions import API_VERSIONS
from barnabas.protocol.kafka.client.metadata import METADATA
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.data.fetch import FetchRequest, FetchResponse
from barnabas.protocol.messages.topics.metadata import MetadataRequest
from barnabas.protocol.primitives import Reader
from tests.support.kafka.kafka_wire import message_type, schema, written

FETCH = ClientApi(ApiKey.FETCH, 4, 17, FetchRequest, FetchResponse)


@pytest.mark.parametrize("version", [8, 9])
def test_a_request_is_a_frame_with_a_header(version: int) -> None:
    request = MetadataRequest.of_names(["t"])
    frame = METADATA.frame(version, 77, "clientä", request)
    header = Reader(frame)
    assert header.int32() == len(frame) - 4
    assert (header.int16(), header.int16(), header.int32()) == (METADATA.key, version, 77)
    assert header.raw(header.int16()).decode() == "clientä"
    if version >= 9:
        assert header.tagged_fields() == {}
    assert frame[header.position :] == request.encode(version)


def test_metadata_without_cluster_id_or_with_an_error() -> None:
    kio = message_type("metadata", 13, "response")
    body = written(kio(throttle_time=_ms(0), brokers=(), cluster_id=None, topics=(), error_code=KafkaError(129)))
    found = METADATA.read(13, memoryview(b"\x01\x05\x01x" + body))  # after a tagged field of the header
    assert (found.cluster_id, found.error) == (None, ErrorCode.UNKNOWN_SERVER_ERROR)


@pytest.mark.parametrize("version", [0, 3])
def test_versions_of_a_broker_are_ranges_by_key(version: int) -> None:
    kio = schema("api_versions", version, "response")
    keys = tuple(kio.ApiVersion(api_key=key, min_version=low, max_version=9) for key, low in ((1, 4), (999, 0)))
    throttle = {"throttle_time": _ms(0)} if version else {}
    found = API_VERSIONS.read(
        version, memoryview(written(kio.ApiVersionsResponse(error_code=KafkaError(0), api_keys=keys, **throttle)))
    )
    assert (found.error, found.ranges) == (ErrorCode.NONE, {1: (4, 9), 999: (0, 9)})


@pytest.mark.parametrize(
    ("served", "highest", "version"),
    [
        ({1: (0, 99)}, None, 17),
        ({1: (0, 99)}, 12, 12),
        ({1: (0, 11)}, None, 11),
        ({1: (0, 3)}, None, None),
        ({1: (18, 20)}, None, None),
        ({1: (13, 20)}, 12, None),
        ({}, None, None),
    ],
)
def test_the_highest_version_of_both_sides_is_spoken(
    served: dict[int, tuple[int, int]], highest: int | None, version: int | None
) -> None:
    assert FETCH.version_at(served, highest) == version


HOSTILE = [
    (FETCH, 4, b"\0\0\0\0\x7f\xff\xff\xff", "fetch: topics: an array of 2147483647 items, but 0 bytes are left"),
    (
        FETCH,
        4,
        b"\0\0\0\0\0\0\0\1\0\1t\0\0\0\1" + bytes(22) + bytes(4) + b"\0\0\0\x09abc",
        "fetch: topics: partitions: records: 9 bytes asked",
    ),
    (METADATA, 4, b"\0\0\0\0\0\0\0\1\0\0\0\1\xff\xff" + bytes(8), "metadata: brokers: host: a string that is null"),
    (METADATA, 9, b"\0\0\0\0\0\xff\xff\xff\xff\x0f", "metadata: brokers: an array of 4294967294 items"),
    (FETCH, 16, b"\0" + bytes(10) + b"\x01\x01\0\x02\x02\0", "fetch: endpoints: "),
]


@pytest.mark.parametrize(("api", "version", "data", "sentence"), HOSTILE)
def test_a_hostile_answer_is_a_decode_error_that_names_api_and_field(
    api: ClientApi, version: int, data: bytes, sentence: str
) -> None:
    with pytest.raises(DecodeError) as caught:
        api.read(version, memoryview(data))
    assert str(caught.value).startswith(sentence)


def _ms(milliseconds: int) -> timedelta:
    return timedelta(milliseconds=milliseconds)
