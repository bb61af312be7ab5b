"""The client's tables: every field of every version as kio and Kafka have it, the values read, hostile answers."""

from __future__ import annotations

import pkgutil
import random
from datetime import timedelta
from importlib import import_module
from typing import Any
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode as KafkaError

from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.kafka import client
from barnabas.protocol.kafka.apis import KAFKA_APIS
from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.kafka.client.api_versions import API_VERSIONS
from barnabas.protocol.kafka.client.fetch import FETCH
from barnabas.protocol.kafka.client.metadata import METADATA
from barnabas.protocol.kafka.client.share_members import (
    SHARE_FETCH,
    AcquiredOffsets,
    FetchedSharePartition,
    FetchedShareTopic,
    ShareFetchAnswer,
)
from barnabas.protocol.kafka.schema import Message
from barnabas.protocol.messages.share.share_acknowledge import (
    AcknowledgementBatch,
    AcknowledgePartition,
    AcknowledgeTopic,
)
from barnabas.protocol.messages.share.share_fetch import ForgottenTopic as ForgottenShareTopic
from barnabas.protocol.messages.share.share_fetch import ShareFetchRequest
from barnabas.protocol.primitives import Reader
from tests.support.kafka.declared import DECLARED
from tests.support.kafka.definitions import NEWEST
from tests.support.kafka.drawing import drawn
from tests.support.kafka.kafka_wire import message_type, schema, written
from tests.support.kafka.routes import ROUTES
from tests.support.kafka.shapes import JUDGES, shape_of_message, shape_of_table

ID = bytes(range(16))
APIS = {
    id(each): each
    for module in pkgutil.iter_modules(client.__path__)
    for each in vars(import_module(f"{client.__name__}.{module.name}")).values()
    if isinstance(each, ClientApi) and isinstance(each.request, Message)
}.values()
VERSIONS = [
    pytest.param(api, version, id=f"{api.key.label}-v{version}")
    for api in APIS
    if isinstance(api.request, Message)  # the others: tests/protocol/wire/test_declared_messages.py
    for version in range(api.lowest, api.highest + 1)
]
TABLES = [
    pytest.param(api, version, id=f"{api.key.label}-v{version}")
    for api in APIS
    if api.key not in DECLARED
    for version in range(api.lowest, api.highest + 1)
]
UNUSED_TAGS = {
    "cluster_id",
    "replica_state",
    "replica_directory_id",
    "topic_config_error_code",
    "snapshot_id",
    "supported_features",
    "finalized_features",
    "finalized_features_epoch",
    "zk_migration_ready",
}
"""Tagged fields that the client neither writes nor reads."""


def body_of(api: ClientApi, version: int, request: Any) -> memoryview:
    """The body of a request frame, after checks of its header."""
    frame = api.frame(version, 77, "clientä", request)
    header = Reader(frame)
    assert header.int32() == len(frame) - 4
    assert (header.int16(), header.int16(), header.int32()) == (api.key, version, 77)
    assert header.raw(header.int16()).decode() == "clientä"
    if version >= api.request.flexible_from:
        assert header.tagged_fields() == {}
    return memoryview(frame)[header.position :]


def read_by(api: ClientApi, version: int, body: bytes) -> Any:
    has_tags = version >= api.answer.flexible_from and api is not API_VERSIONS
    return api.read(version, memoryview((b"\x01\x05\x01x" if has_tags else b"") + body))


@pytest.mark.parametrize("kind", ["request", "answer"])
@pytest.mark.parametrize(("api", "version"), TABLES)
def test_every_field_is_that_of_kafkas_definition(api: ClientApi, version: int, kind: str) -> None:
    message = getattr(api, kind)
    ours = shape_of_table(message.body, version), version >= message.flexible_from
    for judge in JUDGES:
        theirs = shape_of_message(judge, api.key.label, version, kind.replace("answer", "response"), UNUSED_TAGS)
        assert ours == theirs, judge


@pytest.mark.parametrize(("api", "version"), VERSIONS)
def test_every_answer_is_read_to_its_end(api: ClientApi, version: int) -> None:
    rng = random.Random(f"{api.key} {version}")
    for turn in range(20):
        body = drawn(JUDGES[turn % len(JUDGES)], api.key.label, version, "response", rng)
        read_by(api, version, body)
        for end in rng.sample(range(len(body)), min(3, len(body))):
            with pytest.raises(DecodeError):
                read_by(api, version, body[:end])


def test_mutated_answers_raise_decode_errors_and_nothing_else() -> None:
    rng = random.Random("answers")
    for param in VERSIONS:
        api, version = param.values
        assert isinstance(api, ClientApi)
        assert isinstance(version, int)
        original = drawn(NEWEST, api.key.label, version, "response", rng)
        for turn in range(30):
            data = bytearray(original)
            for _ in range(rng.randint(1, 3)):
                if data:
                    data[rng.randrange(len(data))] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
            try:
                read_by(api, version, bytes(data))
            except DecodeError:
                continue
            except Exception as error:
                error.add_note(f"{api.key.label} v{version} turn {turn}: {bytes(data)!r}")
                raise


_BATCH = AcknowledgementBatch(first_offset=5, last_offset=7, types=[1, 2, 0])
_ACKNOWLEDGED = [
    AcknowledgeTopic(topic_id=bytes(range(16)), partitions=[AcknowledgePartition(partition=3, batches=[_BATCH])])
]
REQUESTS: list[tuple[ClientApi, Any, dict[str, int]]] = [
    (
        SHARE_FETCH,
        ShareFetchRequest(
            "g", "m", 7, 500, 1, 2**20, 300, 200, _ACKNOWLEDGED, [ForgottenShareTopic(bytes(range(16)), [9])], 1
        ),
        {"acquire_mode": 2, "may_renew": 3},
    ),
]
"""Requests in neutral form, with the first version of fields that older versions leave out."""


@pytest.mark.parametrize(("api", "request_", "since"), REQUESTS)
def test_the_broker_reads_the_request_that_was_written(api: ClientApi, request_: Any, since: dict[str, int]) -> None:
    (served,) = (each for each in KAFKA_APIS if each.key == api.key)
    for version in range(max(api.lowest, served.lowest), api.highest + 1):
        found = ROUTES[api.key, version].decode(version, body_of(api, version, request_))
        for name in type(request_).__slots__ if hasattr(type(request_), "__slots__") else type(request_)._fields:
            if version < since.get(name, 0):
                continue
            expected = getattr(request_, name)
            assert getattr(found, name) == expected, (version, name)


ANSWERS: list[tuple[ClientApi, Any]] = []
MISSING_FIELDS = {
    "offset_fetch": [(8, "group_id='g'", "group_id=''"), (5, "leader_epoch=6", "leader_epoch=-1")],
}
"""Fields that versions before a first one leave out: how they are shown with and without."""


@pytest.mark.parametrize(("api", "answer"), ANSWERS)
def test_the_client_reads_the_answer_that_the_broker_wrote(api: ClientApi, answer: Any) -> None:
    (served,) = (each for each in KAFKA_APIS if each.key == api.key)
    for version in range(max(api.lowest, served.lowest), api.highest + 1):
        expected = repr(answer)
        for first, with_field, without in MISSING_FIELDS.get(api.key.label, []):
            if version < first:
                assert with_field in expected or "NOT_COORDINATOR" in expected or "wait" in expected
                expected = expected.replace(with_field, without)
        body: Any = ROUTES[api.key, version].encode(answer)
        found = read_by(api, version, body)
        assert repr(found) == expected, version


def test_metadata_without_cluster_id_or_with_an_error() -> None:
    kio = message_type("metadata", 13, "response")
    body = written(kio(throttle_time=_ms(0), brokers=(), cluster_id=None, topics=(), error_code=KafkaError(129)))
    found = read_by(METADATA, 13, body)
    assert (found.cluster_id, found.error) == (None, ErrorCode.UNKNOWN_SERVER_ERROR)


@pytest.mark.parametrize("version", [1, 2])
def test_share_fetches_have_acquired_offsets_and_records(version: int) -> None:
    kio = schema("share_fetch", version, "response")
    leader = kio.LeaderIdAndEpoch(leader_id=9, leader_epoch=10)
    partition = kio.PartitionData(
        partition_index=3,
        error_code=KafkaError(6),
        error_message="moved",
        acknowledge_error_code=KafkaError(121),
        acknowledge_error_message=None,
        current_leader=leader,
        records=b"batches",
        acquired_records=(kio.AcquiredRecords(first_offset=2**40, last_offset=2**41, delivery_count=4),),
    )
    topics = (kio.ShareFetchableTopicResponse(topic_id=UUID(int=5), partitions=(partition,)),)
    endpoints = (kio.NodeEndpoint(node_id=9, host="h", port=1, rack="r"),)
    body = written(
        kio.ShareFetchResponse(
            throttle_time=_ms(7),
            error_code=KafkaError(122),
            error_message="none",
            acquisition_lock_timeout=_ms(30_000),
            responses=topics,
            node_endpoints=endpoints,
        )
    )
    assert read_by(SHARE_FETCH, version, body) == ShareFetchAnswer(
        ErrorCode.SHARE_SESSION_NOT_FOUND,
        "none",
        30_000,
        [
            FetchedShareTopic(
                UUID(int=5).bytes,
                [
                    FetchedSharePartition(
                        3,
                        ErrorCode.NOT_LEADER_OR_FOLLOWER,
                        "moved",
                        ErrorCode.INVALID_RECORD_STATE,
                        None,
                        memoryview(b"batches"),
                        [AcquiredOffsets(2**40, 2**41, 4)],
                    )
                ],
            )
        ],
    )


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
