"""OffsetCommit and OffsetFetch in Kafka's protocol, by hand here and by kio as the judge; hostile bytes do no harm."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.kafka import hot_fields
from barnabas.protocol.kafka.groups import offset_commit, offset_fetch
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.groups.offset_commit import (
    DEFAULT_RETENTION,
    OffsetCommitPartition,
    OffsetCommitPartitionResult,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitTopic,
    OffsetCommitTopicResult,
)
from barnabas.protocol.messages.groups.offset_fetch import (
    OffsetFetchGroup,
    OffsetFetchGroupResult,
    OffsetFetchPartitionResult,
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchTopic,
    OffsetFetchTopicResult,
)
from barnabas.protocol.uuids import ZERO_UUID
from tests.protocol.kafka.codecs import decoded, encoded, refused, row, subset, versions_of
from tests.support.kafka.kafka_wire import written

COMMIT, FETCH = ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH
TOPIC_ID = bytes(range(16))
LONG_TEXT = "grüße " * 50
BY_ID_FROM = 10


def commit_values(version: int) -> dict[str, Any]:
    partitions = tuple(
        row(
            COMMIT,
            version,
            "OffsetCommitRequestPartition",
            partition_index=number,
            committed_offset=(1 << 40) + number,
            committed_leader_epoch=7,
            committed_metadata=metadata,
        )
        for number, metadata in enumerate((None, "", LONG_TEXT))
    )
    topics = tuple(
        row(COMMIT, version, "OffsetCommitRequestTopic", name=name, topic_id=UUID(bytes=TOPIC_ID), partitions=each)
        for name, each in (("t", partitions), ("empty", ()))
    )
    return {
        "group_id": "grüppe",
        "generation_id_or_member_epoch": 3,
        "member_id": "m",
        "group_instance_id": "i",
        "retention_time": timedelta(milliseconds=12_345),
        "topics": topics,
    }


@pytest.mark.parametrize(("api", "version"), versions_of(COMMIT))
def test_a_commit_both_ways(api: ApiKey, version: int) -> None:
    epoch = 7 if version >= 6 else -1
    partitions = [
        OffsetCommitPartition(number, (1 << 40) + number, epoch, metadata)
        for number, metadata in enumerate((None, "", LONG_TEXT))
    ]
    by_id = version >= BY_ID_FROM
    request = decoded(api, version, **commit_values(version))
    assert request == OffsetCommitRequest(
        "grüppe",
        [
            OffsetCommitTopic("" if by_id else name, each, TOPIC_ID if by_id else None)
            for name, each in (("t", partitions), ("empty", []))
        ],
        3,
        "m",
        "i" if version >= 7 else None,
        12_345 if version <= 4 else DEFAULT_RETENTION,
        knows_unknown_groups=version >= 9,
    )
    results = [OffsetCommitPartitionResult(0), OffsetCommitPartitionResult(1, ErrorCode.OFFSET_METADATA_TOO_LARGE)]
    answer = encoded(api, version, OffsetCommitResponse([OffsetCommitTopicResult("t", results, TOPIC_ID)]))
    assert answer.get("throttle_time", timedelta(0)) == timedelta(0)
    (topic,) = answer["topics"]
    assert topic == subset(
        {
            "name": "t",
            "topic_id": UUID(bytes=TOPIC_ID),
            "partitions": [{"partition_index": 0, "error_code": 0}, {"partition_index": 1, "error_code": 12}],
        },
        topic,
    )
    refusal = refused(api, version, request, ErrorCode.UNKNOWN_MEMBER_ID, "no")
    assert [[each["error_code"] for each in topic["partitions"]] for topic in refusal["topics"]] == [[25] * 3, []]


def fetch_values(version: int) -> dict[str, Any]:
    kind = "OffsetFetchRequestTopics" if version >= 8 else "OffsetFetchRequestTopic"
    topics = tuple(
        row(FETCH, version, kind, name=name, topic_id=UUID(bytes=TOPIC_ID), partition_indexes=each)
        for name, each in (("t", (0, 5, -1)), ("empty", ()))
    )
    values: dict[str, Any] = {"group_id": "grüppe", "topics": topics, "require_stable": True}
    if version >= 8:
        values["groups"] = tuple(
            row(FETCH, version, "OffsetFetchRequestGroup", group_id=group, topics=each, member_id="m", member_epoch=4)
            for group, each in (("grüppe", topics), ("all", None))
        )
    return values


@pytest.mark.parametrize(("api", "version"), versions_of(FETCH))
def test_a_fetch_of_offsets_both_ways(api: ApiKey, version: int) -> None:
    by_id = version >= BY_ID_FROM
    member = ("m", 4) if version >= 9 else (None, -1)
    topics = [
        OffsetFetchTopic("" if by_id else name, each, TOPIC_ID if by_id else None)
        for name, each in (("t", (0, 5, -1)), ("empty", ()))
    ]
    request = decoded(api, version, **fetch_values(version))
    groups = [OffsetFetchGroup("grüppe", topics, *member)]
    if version >= 8:
        groups.append(OffsetFetchGroup("all", None, *member))
    assert request == OffsetFetchRequest(groups, version >= 7, by_id)
    results = [
        OffsetFetchPartitionResult(0, ErrorCode.NONE, 1 << 40, 7, LONG_TEXT),
        OffsetFetchPartitionResult(1, ErrorCode.UNKNOWN_TOPIC_ID),
    ]
    found = [OffsetFetchGroupResult("g", [OffsetFetchTopicResult("t", results, TOPIC_ID)], ErrorCode.NONE)]
    if version >= 8:
        found.append(OffsetFetchGroupResult("h", [], ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
    answer = encoded(api, version, OffsetFetchResponse(found))
    first = answer
    if version >= 8:
        first, second = answer["groups"]
        assert second == {"group_id": "h", "topics": [], "error_code": 14}
    assert first.get("error_code", 0) == 0
    (topic,) = first["topics"]
    rows = [
        {"committed_offset": 1 << 40, "committed_leader_epoch": 7, "metadata": LONG_TEXT, "error_code": 0},
        {"committed_offset": -1, "committed_leader_epoch": -1, "metadata": "", "error_code": 100},
    ]
    expected = [subset({"partition_index": index, **each}, topic["partitions"][0]) for index, each in enumerate(rows)]
    assert topic == subset({"name": "t", "topic_id": UUID(bytes=TOPIC_ID), "partitions": expected}, topic)
    refusal = refused(api, version, request, ErrorCode.COORDINATOR_NOT_AVAILABLE, "no")
    for group in refusal["groups"] if version >= 8 else [refusal]:
        assert group.get("error_code", 15) == 15


@pytest.mark.parametrize(("api", "version"), versions_of(FETCH))
@pytest.mark.parametrize(("metadata", "fits"), [("x" * 32_767, True), ("x" * 32_768, False), ("🎈" * 8_192, False)])
def test_metadata_too_long_for_an_old_version_is_an_error_of_its_partition_only(
    api: ApiKey, version: int, metadata: str, fits: bool
) -> None:
    results = [
        OffsetFetchPartitionResult(0, ErrorCode.NONE, 5, 7, metadata),
        OffsetFetchPartitionResult(1, ErrorCode.NONE, 6, 7, "short"),
    ]
    found = [OffsetFetchGroupResult("g", [OffsetFetchTopicResult("t", results, TOPIC_ID)], ErrorCode.NONE)]
    answer = encoded(api, version, OffsetFetchResponse(found))
    (topic,) = (answer["groups"][0] if version >= 8 else answer)["topics"]
    got = [(each["committed_offset"], each["metadata"], each["error_code"]) for each in topic["partitions"]]
    assert got[1] == (6, "short", 0)
    assert got[0] == ((5, metadata, 0) if fits or version >= 6 else (-1, "", 12))


@pytest.mark.parametrize(("api", "version"), [each for each in versions_of(FETCH) if 2 <= each[1] <= 7])
def test_null_topics_mean_all_from_version_2_on(api: ApiKey, version: int) -> None:
    assert decoded(api, version, group_id="g", topics=None).groups == [OffsetFetchGroup("g", None)]


def test_null_topics_are_refused_in_version_1() -> None:
    with pytest.raises(DecodeError, match="null"):
        offset_fetch.decode_request(1, memoryview(b"\x00\x01g\xff\xff\xff\xff"))


@pytest.mark.parametrize("version", [10])
def test_a_topic_without_an_id_is_written_with_the_zero_id(version: int) -> None:
    response = OffsetCommitResponse([OffsetCommitTopicResult("t", [], None)])
    assert encoded(COMMIT, version, response)["topics"][0]["topic_id"] is None
    assert ZERO_UUID in offset_commit.encode_response(version, response)


def bodies() -> list[Any]:
    """Every version of both requests, as kio writes them."""
    found = []
    for codec, values_of in ((offset_commit, commit_values), (offset_fetch, fetch_values)):
        key = COMMIT if codec is offset_commit else FETCH
        for _, version in versions_of(key):
            kind = "OffsetCommitRequest" if codec is offset_commit else "OffsetFetchRequest"
            body = bytes(written(row(key, version, kind, **values_of(version))))
            found.append(pytest.param(codec, version, body, id=f"{key.name.lower()}-{version}"))
    return found


@pytest.mark.parametrize(("codec", "version", "body"), bodies())
def test_a_body_that_is_cut_short_does_not_decode(codec: Any, version: int, body: bytes) -> None:
    codec.decode_request(version, memoryview(body))
    for size in range(len(body)):
        with pytest.raises(DecodeError):
            codec.decode_request(version, memoryview(body)[:size])


@pytest.mark.parametrize(("codec", "version", "body"), bodies())
@given(data=st.data())
def test_damaged_bodies_raise_decode_errors_and_nothing_else(
    codec: Any, version: int, body: bytes, data: st.DataObject
) -> None:
    spoiled = bytearray(body)
    for _ in range(data.draw(st.integers(1, 3))):
        spoiled[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    with suppress(DecodeError):
        codec.decode_request(version, memoryview(spoiled))


@pytest.mark.parametrize(("codec", "version"), [(offset_commit, 8), (offset_fetch, 7)])
def test_partitions_beyond_the_limit_of_a_request_are_refused(
    codec: Any, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = commit_values(version) if codec is offset_commit else fetch_values(version)
    key, kind = (COMMIT, "OffsetCommitRequest") if codec is offset_commit else (FETCH, "OffsetFetchRequest")
    body = memoryview(written(row(key, version, kind, **values)))
    monkeypatch.setattr(hot_fields, "MAX_ITEMS", 5)
    codec.decode_request(version, body)
    monkeypatch.setattr(hot_fields, "MAX_ITEMS", 4)
    with pytest.raises(DecodeError, match="more than"):
        codec.decode_request(version, body)


@pytest.mark.parametrize(
    ("codec", "data"), [(offset_commit, b"\x00" * 30), (offset_fetch, b"\x02\x00\x00" + b"\x00" * 30)]
)
def test_a_null_group_id_does_not_decode(codec: Any, data: bytes) -> None:
    with pytest.raises(DecodeError, match="group id is null"):
        codec.decode_request(8, memoryview(data))
