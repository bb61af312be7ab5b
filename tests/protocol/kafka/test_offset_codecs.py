"""What versions of OffsetCommit and OffsetFetch mean; their bytes are those of Kafka's definitions (tests/.../wire)."""

from __future__ import annotations

import pytest

from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.kafka.apis import KAFKA_APIS
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.groups.offset_commit import (
    OffsetCommitPartition,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitTopic,
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

TOPIC_ID = bytes(range(16))
ERROR = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
COMMITS, FETCHES = (
    [version for api in KAFKA_APIS if api.key is key for version in range(api.lowest, api.highest + 1)]
    for key in (ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH)
)


@pytest.mark.parametrize("version", COMMITS)
def test_a_refused_commit_has_the_code_for_every_partition(version: int) -> None:
    partitions = [OffsetCommitPartition(partition=number, offset=5) for number in range(2)]
    asked = OffsetCommitRequest(
        group_id="g",
        topics=[
            OffsetCommitTopic(name=name, topic_id=TOPIC_ID, partitions=each)
            for name, each in (("t", partitions), ("e", []))
        ],
    )
    request = OffsetCommitRequest.decode(version, asked.encode(version))
    assert request.knows_unknown_groups is (version >= 9)
    assert request.is_by_id is (version >= 10)
    answer = OffsetCommitResponse.decode(version, request.refused(ERROR).encode(version))
    found = [
        (each.name, each.topic_id, [(row.partition, row.error) for row in each.partitions]) for each in answer.topics
    ]
    key = ("", TOPIC_ID) if version >= 10 else ("t", ZERO_UUID)
    assert found == [(*key, [(0, ERROR), (1, ERROR)]), ("" if version >= 10 else "e", key[1], [])]


@pytest.mark.parametrize("version", FETCHES)
def test_a_refused_fetch_has_the_code_for_the_group_or_before_that_for_each_partition(version: int) -> None:
    topic = OffsetFetchTopic(name="t", topic_id=TOPIC_ID, partitions=[0, 7])
    groups = [OffsetFetchGroup(group_id="g", topics=[topic]), OffsetFetchGroup(group_id="h", topics=[topic])]
    asked = OffsetFetchRequest.of_groups(groups)
    request = OffsetFetchRequest.decode(version, asked.encode(version))
    assert [each.group_id for each in request.asked_groups] == (["g", "h"] if version >= 8 else ["g"])
    assert request.is_by_id is (version >= 10)
    answer = OffsetFetchResponse.decode(version, request.refused(ERROR, "no").encode(version))
    if version >= 2:
        assert [each.group_id for each in answer.results] == (["g", "h"] if version >= 8 else [""])
        assert {(len(each.topics), each.error) for each in answer.results} == {(0, ERROR)}
    else:
        (group,) = answer.results
        assert [(each.partition, each.offset, each.error) for each in group.topics[0].partitions] == [
            (0, -1, ERROR),
            (7, -1, ERROR),
        ]


@pytest.mark.parametrize("version", FETCHES)
def test_the_groups_that_were_found_are_answered_in_every_version(version: int) -> None:
    topics = [OffsetFetchTopicResult(name="t", partitions=[OffsetFetchPartitionResult(0, 5, 7, "x")])]
    found = [OffsetFetchGroupResult(group_id="g", topics=topics)]
    request = OffsetFetchRequest.of_groups([OffsetFetchGroup(group_id="g", topics=())])
    request.version = version
    answer = OffsetFetchResponse.decode(version, request.answered(found).encode(version))
    ((row,),) = [topic.partitions for group in answer.results for topic in group.topics]
    assert row == OffsetFetchPartitionResult(0, 5, 7 if version >= 5 else -1, "x")


@pytest.mark.parametrize("version", FETCHES)
@pytest.mark.parametrize(("metadata", "fits"), [("x" * 32_767, True), ("x" * 32_768, False), ("🎈" * 8_192, False)])
def test_metadata_fits_a_classic_string_or_any_flexible_one(version: int, metadata: str, fits: bool) -> None:
    request = OffsetFetchRequest(version=version)
    assert request.fits(metadata) is (fits or version >= 6)
    answer = OffsetFetchTopicResult(name="t", partitions=[OffsetFetchPartitionResult(0, metadata=metadata)])
    if fits:
        assert OffsetFetchResponse(topics=[answer]).encode(5)


def test_null_topics_mean_all_from_version_2_on() -> None:
    for version in FETCHES[1:]:
        asked = OffsetFetchRequest.of_groups([OffsetFetchGroup(group_id="g", topics=None)])
        (group,) = OffsetFetchRequest.decode(version, asked.encode(version)).asked_groups
        assert group.topics is None
    with pytest.raises(DecodeError, match="null"):
        OffsetFetchRequest.decode(1, b"\x00\x01g\xff\xff\xff\xff")
