"""The APIs of Kafka's protocol that kio writes: every version both ways, and the table that says which there are."""

from __future__ import annotations

import struct
from contextlib import nullcontext
from typing import Any
from uuid import UUID

import pytest
from kio.schema.index import schema_name_map

from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.kafka import dialect
from barnabas.protocol.kafka.apis import KAFKA_APIS, KafkaApi
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.cluster.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.data.init_producer_id import InitProducerIdResponse
from barnabas.protocol.messages.data.list_offsets import ListOffsetsRequest
from barnabas.protocol.messages.topics.metadata import (
    MetadataRequest,
)
from tests.support.kafka.kafka_wire import message_type, read, schema, written
from tests.support.kafka.routes import ROUTES

TOPIC_ID = bytes(range(16))


def body(entity: Any) -> memoryview:
    return memoryview(bytearray(written(entity)))


def answer(api: str, version: int, data: Any) -> Any:
    return read(message_type(api, version, "response"), data)


@pytest.mark.parametrize("api", KAFKA_APIS, ids=lambda api: api.key.label)
def test_every_row_of_the_table_agrees_with_kio(api: KafkaApi) -> None:
    versions = schema_name_map[api.key.label]
    for version in range(api.lowest, api.highest + 1):
        assert version in versions
        request = message_type(api.key.label, version, "request")
        assert request.__api_key__ == api.key
        assert request.__flexible__ == (version >= api.flexible_from)
        header = message_type(api.key.label, version, "response").__header_schema__
        route = ROUTES[int(api.key), version]
        assert header.__flexible__ == route.response_is_flexible


@pytest.mark.parametrize("version", range(5))
def test_a_client_of_api_versions_has_a_proper_name_from_version_3_on(version: int) -> None:
    request = ApiVersionsRequest(client="a b", client_version="1", version=version)
    with pytest.raises(BrokerError, match="not well formed") if version >= 3 else nullcontext():
        request.check()


def test_api_versions_names_its_own_versions_to_a_client_with_another() -> None:
    (api,) = (each for each in KAFKA_APIS if each.key is ApiKey.API_VERSIONS)
    refusal = ApiVersionsRequest().refused(ErrorCode.UNSUPPORTED_VERSION, "")
    assert refusal.ranges == {18: (api.lowest, api.highest)}
    assert ApiVersionsRequest().refused(ErrorCode.INVALID_REQUEST, "").ranges == {}


METADATA_VERSIONS = range(14)


@pytest.mark.parametrize("version", METADATA_VERSIONS)
def test_a_metadata_request_for_all_for_none_and_for_some_topics(version: int) -> None:
    kio = schema("metadata", version, "request")
    kind = kio.MetadataRequest
    flags = {
        name: False
        for name in ("include_cluster_authorized_operations", "include_topic_authorized_operations")
        if name in kind.__dataclass_fields__
    }
    key = {"topic_id": None} if version >= 10 else {}
    some = (kio.MetadataRequestTopic(name="a", **key), kio.MetadataRequestTopic(name="ä", **key))
    assert MetadataRequest.decode(version, body(kind(topics=some, **flags))).names == ["a", "ä"]
    none = MetadataRequest.decode(version, body(kind(topics=(), **flags)))
    assert none.names == ([] if version > 0 else None)
    if version > 0:
        assert MetadataRequest.decode(version, body(kind(topics=None, **flags))).names is None
    if version >= 4:
        refused = MetadataRequest.decode(version, body(kind(topics=some, allow_auto_topic_creation=False, **flags)))
        assert not refused.allow_auto_creation
    assert none.allow_auto_creation
    assert (none.include_topic_operations, none.include_cluster_operations) == (False, False)
    for name in flags:
        asked = MetadataRequest.decode(version, body(kind(topics=some, **{**flags, name: True})))
        assert asked.include_topic_operations == ("topic" in name)
        assert asked.include_cluster_operations == ("cluster" in name)


@pytest.mark.parametrize("version", [10, 11, 12, 13])
def test_topics_are_requested_by_id_from_version_12_on(version: int) -> None:
    kio = schema("metadata", version, "request")
    flags = {"include_cluster_authorized_operations": False} if version < 11 else {}
    topics = (kio.MetadataRequestTopic(topic_id=UUID(bytes=TOPIC_ID), name=None),)
    data = body(kio.MetadataRequest(topics=topics, include_topic_authorized_operations=False, **flags))
    if version >= 12:
        assert MetadataRequest.decode(version, data).topic_ids == [TOPIC_ID]
    else:
        asked = MetadataRequest.decode(version, data)
        with pytest.raises(BrokerError, match=f"Metadata version {version} takes names, no ids"):
            _ = asked.topic_ids
        error = asked.refused(ErrorCode.INVALID_REQUEST, "no ids").encode(version)
        assert [each.error_code for each in answer("metadata", version, error).topics] == [ErrorCode.INVALID_REQUEST]


@pytest.mark.parametrize("version", METADATA_VERSIONS)
def test_metadata_refused_as_a_whole_has_the_code_for_every_topic(version: int) -> None:
    refused = MetadataRequest.of_names(["a", "b"]).refused(ErrorCode.UNKNOWN_SERVER_ERROR, "a bug")
    data = refused.encode(version)
    found = answer("metadata", version, data)
    assert [(each.name, each.error_code) for each in found.topics] == [("a", -1), ("b", -1)]
    if version >= 13:
        assert found.error_code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_special_timestamp_has_a_meaning_from_its_version_on() -> None:
    for version in range(1, 12):
        request = ListOffsetsRequest(version=version, topics=())
        known = [each for each in (0, 1_700_000_000_000, -1, -2, -3, -4, -5, -6, -7) if request.knows(each)]
        assert (
            known
            == [0, 1_700_000_000_000, -1, -2, -3, -4, -5, -6][: 4 + sum(version >= each for each in (7, 8, 9, 11))]
        )


# Golden frames, taken apart by hand from Kafka's message definitions.


def test_the_golden_frame_of_a_classic_request_header() -> None:
    header = dialect.read_request(memoryview(bytes.fromhex("000300010000002a00026d65ffffffff")))
    assert header[:4] == (3, 1, 42, "me")
    assert dialect.decode_body(header).topics is None


def test_the_golden_frame_of_a_flexible_request_header() -> None:
    header = dialect.read_request(memoryview(bytes.fromhex("0003000c0000002affff0001010000")))
    assert header[:4] == (3, 12, 42, None)
    assert dialect.decode_body(header).topics == []


def test_the_golden_frames_of_answers_to_init_producer_id() -> None:
    response = InitProducerIdResponse(producer_id=7, producer_epoch=0)
    for version, golden in (
        (1, "000000140000002a00000000000000000000000000070000"),
        (2, "000000160000002a000000000000000000000000000007000000"),
    ):
        tail = b"\xff\xff\x00\x00\x00\x00" if version == 1 else b"\x00\x00\x00\x00\x00\x00"
        header = dialect.read_request(
            memoryview(struct.pack(">hhih", 22, version, 42, -1) + (b"" if version == 1 else b"\x00") + tail)
        )
        assert dialect.encode_response(header, response) == (bytes.fromhex(golden), ())
