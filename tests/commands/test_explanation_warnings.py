"""Which findings of `barnabas explain` are warnings, by the thresholds of the alert rules."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.config.log_config import KEPT
from barnabas.explanation.group_findings import explain_group
from barnabas.explanation.space import forecast_sentence
from barnabas.explanation.space_findings import FileSystem, FileSystemSpace
from barnabas.explanation.warnings import (
    compaction_warnings,
    config_warnings,
    group_warnings,
    mirror_warnings,
    shortened,
    space_warnings,
)
from barnabas.protocol.messages.cluster.mirrors import MirrorDescription, MirroredPartition, MirrorProblem
from barnabas.protocol.messages.groups.explain_group import Deletion, ExplainGroupResponse, PartitionLag
from barnabas.protocol.messages.topics.explain_topic import (
    ExplainedCompaction,
    ExplainedPartition,
    ExplainTopicResponse,
    SettingValue,
)

NOW_MS = 1_700_000_000_000


@pytest.mark.parametrize(
    ("days", "expected"),
    [(0.5, ["/a, /b: at this rate it is full in 12.0 hours"]), (1.5, []), (None, [])],
)
def test_a_file_system_that_is_full_within_a_day_is_a_warning(days: float | None, expected: list[str]) -> None:
    assert list(space_warnings(FileSystemSpace(FileSystem(("/a", "/b"), 100, 50), (), days))) == expected


@pytest.mark.parametrize(
    ("days", "expected"),
    [(30.0, "full in 30 days"), (1e7, "not full within ten years"), (None, "never full")],
)
def test_a_forecast_names_no_day_that_nobody_plans_for(days: float | None, expected: str) -> None:
    found = FileSystemSpace(FileSystem(("/a",), 100, 50), (), days)
    assert forecast_sentence(found) == f"at this rate it is {expected}"


HOUR_MS = 3600 * 1000


@pytest.mark.parametrize(
    ("committed", "deleted_in_ms", "expected"),
    [
        (5, HOUR_MS // 2, "group g, t-0: retention deletes 5 unread records, up to offset 9, in 30m "),
        (5, 2 * HOUR_MS, None),
        (5, None, None),
        (10, HOUR_MS // 2, None),
        (1, None, "group g, t-0: retention has overtaken the group: 1 record from 1 to 1 "),
    ],
    ids=["within the hour", "later", "never", "caught up", "lost"],
)
def test_a_group_that_retention_overtakes_within_the_hour_is_a_warning(
    committed: int, deleted_in_ms: int | None, expected: str | None
) -> None:
    at_ms = None if deleted_in_ms is None else NOW_MS + deleted_in_ms
    deletion = Deletion(10, at_ms, at_ms, None if at_ms is None else "retention.ms")
    lag = PartitionLag("t", 0, committed, NOW_MS, 2, 10, 100, NOW_MS, [deletion])
    found = list(group_warnings(explain_group("g", ExplainGroupResponse(now_ms=NOW_MS, partitions=[lag]))))
    assert len(found) == (expected is not None)
    assert all(each.startswith(expected or "") for each in found)


def test_a_stored_config_that_is_not_understood_is_a_warning() -> None:
    of_group = ExplainGroupResponse(problems=["consumer.session.timeout.ms=soon is not understood"])
    assert list(group_warnings(explain_group("g", of_group))) == [
        "group g: consumer.session.timeout.ms=soon is not understood"
    ]
    settings = [
        SettingValue("retention.ms", "5", "DYNAMIC_TOPIC_CONFIG", "x"),
        SettingValue("segment.ms", "soon", "DYNAMIC_DEFAULT_BROKER_CONFIG", "x", "not a long"),
    ]
    assert list(config_warnings("t", ExplainTopicResponse(settings=settings))) == [
        f"topic t: segment.ms=soon from the dynamic default of all brokers is not understood, not a long: {KEPT}"
    ]


@pytest.mark.parametrize(("error", "count"), [(None, 0), ("a record is torn", 1)])
def test_a_compaction_that_failed_is_a_warning(error: str | None, count: int) -> None:
    compaction = ExplainedCompaction(0, 1, 0, 1, 1.0, 0, None, (), error, None, None)
    partition = ExplainedPartition(3, "/a", 0, 1, 1, 1, 0, None, (), compaction)
    found = list(compaction_warnings("t", ExplainTopicResponse(partitions=[partition])))
    assert len(found) == count
    assert all(each.startswith(f"t-3: it is not cleaned any more, because a round failed: {error}; ") for each in found)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"lag_records": 0, "lag_seconds": 0.0}, None),
        ({"lag_records": 5, "lag_seconds": 299.0}, None),
        ({"lag_records": 5, "lag_seconds": 301.0}, "mirror m: t-0 is being copied; 5 records are missing"),
        ({"error": "refused"}, "mirror m: t-0 is not copied: refused; it is tried again"),
    ],
    ids=["up to date", "a little behind", "far behind", "failed"],
)
def test_a_mirror_that_failed_or_is_far_behind_is_a_warning(fields: dict[str, Any], expected: str | None) -> None:
    partition = MirroredPartition("t", 0, "copying", 5, 10, **fields)
    found = list(mirror_warnings(MirrorDescription(name="m", state="running", partitions=[partition])))
    assert len(found) == (expected is not None)
    assert all(each.startswith(expected or "") for each in found)


def test_what_a_mirror_says_of_itself_and_of_its_topics_is_a_warning() -> None:
    problems = [MirrorProblem("t", "exists here")]
    mirror = MirrorDescription(name="m", state="running", error="unreachable", problems=problems)
    assert list(mirror_warnings(mirror)) == [
        "mirror m makes no progress: unreachable",
        "mirror m, topic t: exists here",
    ]


def test_more_than_ten_warnings_of_one_kind_are_counted() -> None:
    sentences = [f"partition {number}" for number in range(12)]
    assert shortened(sentences[:10], "partition") == sentences[:10]
    assert shortened(sentences, "partition") == [*sentences[:10], "and 2 partitions more"]
    assert shortened(sentences[:11], "partition")[-1] == "and 1 partition more"
