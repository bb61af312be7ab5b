"""`barnabas explain space`: the forecast by calculation, and the command on a daemon."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from barnabas.commands.main import main
from barnabas.explanation.space_findings import DAY_MS, FileSystem, explain_space
from barnabas.protocol.messages.topics.explain_topic import (
    ExplainedPartition,
    ExplainedSegment,
    ExplainTopicResponse,
    SettingValue,
)
from tests.support.daemon import start_daemon
from tests.support.storage.bench import sized_batch
from tests.support.wire import WireClient

NOW_MS = 1_700_000_000_000
GB = 10**9
DIRECTORY = "/data"


def segment(size: int, first_days_ago: float, last_days_ago: float) -> ExplainedSegment:
    first, last = (NOW_MS - round(each * DAY_MS) for each in (first_days_ago, last_days_ago))
    return ExplainedSegment(0, 1, size, last, first, None, None, None, None, (), None)


def topic(policy: str, retention_ms: int, retention_bytes: int, *segments: ExplainedSegment) -> ExplainTopicResponse:
    values = {
        "cleanup.policy": policy,
        "retention.ms": str(retention_ms),
        "retention.bytes": str(retention_bytes),
        "segment.bytes": str(GB),
    }
    settings = [SettingValue(name, value, "DEFAULT_CONFIG", "default") for name, value in values.items()]
    partition = ExplainedPartition(0, DIRECTORY, 0, 1, 1, 1, 0, 300_000, segments)
    return ExplainTopicResponse(now_ms=NOW_MS, settings=settings, partitions=[partition])


@pytest.mark.parametrize(
    ("explained", "rate", "steady", "usable", "days"),
    [
        (topic("delete", 7 * DAY_MS, -1, segment(2 * GB, 1, 0)), 2 * GB, 15 * GB, 8 * GB, 4.0),
        (topic("delete", 7 * DAY_MS, -1, segment(2 * GB, 1, 0)), 2 * GB, 15 * GB, 20 * GB, None),
        (topic("delete", 7 * DAY_MS, -1, segment(4 * GB, 2, 0)), 2 * GB, 15 * GB, 20 * GB, None),
        (topic("delete", 7 * DAY_MS, 3 * GB, segment(2 * GB, 1, 0)), 2 * GB, 4 * GB, 1 * GB, 0.5),
        (topic("delete", -1, -1, segment(2 * GB, 1, 0)), 2 * GB, None, 20 * GB, 10.0),
        (topic("compact", 7 * DAY_MS, -1, segment(2 * GB, 1, 0)), 2 * GB, None, 20 * GB, 10.0),
        (topic("delete", 7 * DAY_MS, -1, segment(2 * GB, 3, 2)), 0, 0, 1 * GB, None),
        (topic("delete", 7 * DAY_MS, -1), 0, 0, 1 * GB, None),
    ],
    ids=["time", "never full", "half a segment", "size", "no limit", "compacted", "no growth", "empty"],
)
def test_a_topic_grows_to_its_steady_size_or_until_the_disk_is_full(
    explained: ExplainTopicResponse, rate: int, steady: int | None, usable: int, days: float | None
) -> None:
    (found,) = explain_space([FileSystem((DIRECTORY,), 100 * GB, usable)], {"t": explained})
    assert round(found.topics[0].bytes_per_day) == rate
    assert found.topics[0].steady_bytes == steady
    assert (found.full_in_days is None) == (days is None)
    assert found.full_in_days == (None if days is None else pytest.approx(days))


def test_a_topic_that_nothing_deletes_from_has_no_limit() -> None:
    kept = topic("delete", 7 * DAY_MS, -1)
    kept.settings = [*kept.settings[1:], SettingValue("cleanup.policy", "archive", "X", "x", "archive is no policy")]
    explained = {
        "deletes nothing": topic("", 7 * DAY_MS, -1),
        "compacts": topic("compact", 7 * DAY_MS, -1),
        "kept": kept,
    }
    (found,) = explain_space([FileSystem((DIRECTORY,), GB, GB)], explained)
    assert {each.topic: (each.steady_bytes, each.limit) for each in found.topics} == {
        "deletes nothing": (None, "no limit: cleanup.policy is empty"),
        "compacts": (None, "cleanup.policy=compact: compaction decides, by the number of keys"),
        "kept": (None, "no limit: cleanup.policy=archive is not understood"),
    }


def test_topics_that_stop_growing_leave_the_rest_to_the_others() -> None:
    soon = topic("delete", 7 * DAY_MS, 2 * GB, segment(2 * GB, 1, 0))  # 1 GB of room at 2 GB a day: half a day
    endless = topic("delete", -1, -1, segment(1 * GB, 1, 0))
    (found,) = explain_space([FileSystem((DIRECTORY,), 100 * GB, 5 * GB)], {"soon": soon, "endless": endless})
    assert found.full_in_days == pytest.approx(0.5 + (5 - 1 - 0.5) / 1)
    assert found.steady_bytes is None


def test_other_directories_are_another_disk() -> None:
    explained = {"t": topic("delete", -1, -1, segment(2 * GB, 1, 0))}
    here, there = explain_space([FileSystem((DIRECTORY,), GB, GB), FileSystem(("/other",), GB, GB)], explained)
    assert (here.size_bytes, there.size_bytes, there.full_in_days) == (2 * GB, 0, None)


def test_the_command_names_the_largest_topic_first(tmp_path: Path) -> None:
    with start_daemon(tmp_path) as daemon:
        with WireClient(daemon.host, daemon.port) as wire:
            for name, count in (("small", 1), ("large", 3)):
                wire.create_topic(name, 1, retention_ms=str(7 * DAY_MS))
                for _ in range(count):
                    assert wire.produce(name, bytes(sized_batch(1000, time.time_ns() // 1_000_000))).error == 0

        def run(*arguments: str) -> str:
            result = CliRunner().invoke(main, ["explain", "space", "--bootstrap", daemon.bootstrap, *arguments])
            assert result.exit_code == 0, result.output
            return result.stdout

        (told,) = json.loads(run("--json"))["file_systems"]
        assert told["log_dirs"] == [str(daemon.data_directory)]
        assert (told["size_bytes"], told["bytes_per_day"]) == (4000, 4000)
        assert [(each["topic"], each["size_bytes"]) for each in told["topics"]] == [("large", 3000), ("small", 1000)]
        assert 0 < told["usable_bytes"] < told["total_bytes"]
        lines = run().splitlines()
        assert lines[0].startswith(f"{daemon.data_directory}: 4.0 kB in 2 topics, ")
        assert lines[2].startswith("  large: 3.0 kB, 3.0 kB a day; grows to at most 1.1 GB (retention.ms=604800000, ")
