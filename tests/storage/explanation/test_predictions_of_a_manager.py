"""What explain says of a log that other work holds, against what a LogManager then does, with a driven clock."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.broker.groups.explanation.lag import CommittedAt, read_lag
from barnabas.broker.storage.cleaning.cleaner_facts import CleanerFacts
from barnabas.broker.storage.cleaning.cleaner_manager import CleanerManager
from barnabas.broker.storage.explanation.compaction import WaitsFor
from barnabas.broker.storage.explanation.retention_findings import KeptBy
from barnabas.broker.storage.explanation.topic_explanation import deciding_settings, explain_partitions
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.broker.storage.log.readable_log import ReadableLog
from barnabas.broker.storage.log_manager import LogManager
from barnabas.explanation.group import retention_sentence
from barnabas.explanation.group_findings import PartitionFinding, Verdict, explain_partition
from barnabas.explanation.topic import sentences_of
from barnabas.protocol.messages.topics.explain_topic import (
    ExplainedCompaction,
    ExplainedCopy,
    ExplainedPartition,
    ExplainTopicResponse,
)
from tests.support.storage.bench import (
    START_MS,
    TOPIC_ID,
    TP,
    ManualClock,
    StepScheduler,
    append,
    broker_config,
    keyed_batch,
)

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
DELAY_MS = 5000


class Node:
    """A manager with one partition, whose batches have 100 bytes, ten to a segment, and are a second apart."""

    def __init__(self, root: Path, batches: int, **settings: object) -> None:
        self.other = root / "other"
        self.clock = ManualClock()
        self.scheduler = StepScheduler(self.clock)
        defaults = {
            "log_dirs": f"{root / 'data'},{self.other}",
            "log_segment_bytes": 1024,
            "log_segment_delete_delay_ms": DELAY_MS,
            "log_retention_ms": -1,
            "log_message_timestamp_after_max_ms": 2**62,
        }
        config = broker_config(**{**defaults, **settings})
        self.manager = LogManager(config, clock=self.clock, scheduler=self.scheduler)
        self.manager.open_directories()
        self.manager.load_logs(lambda _: config.log_config, assign_directory=lambda log, log_dir: None)
        self.log: PartitionLog = self.manager.get_or_create(TP, TOPIC_ID, log_dir=root / "data")
        for number in range(batches):
            append(self.log, keyed_batch(100, START_MS + 1000 * number))
        self.cleaner.checkpoints.open([root / "data"])

    @property
    def cleaner(self) -> CleanerManager:
        assert self.manager.cleaner is not None
        return self.manager.cleaner

    def answer(self) -> ExplainTopicResponse:
        """What a broker answers."""

        def facts(log: ReadableLog) -> CleanerFacts:
            return self.cleaner.facts(log)

        def copy_of(log: ReadableLog) -> ExplainedCopy | None:
            copy = self.manager.moves.copy_of(log)
            return None if copy is None else ExplainedCopy(str(copy.log_dir), copy.size_bytes)

        config, now_ms = self.manager.config, self.clock.now_ms
        partitions = explain_partitions([self.log], config, facts, now_ms, copy_of=copy_of)
        return ExplainTopicResponse(now_ms=now_ms, settings=deciding_settings(config, {}), partitions=partitions)

    def explained(self) -> ExplainedPartition:
        (partition,) = self.answer().partitions
        return partition

    def overtaking(self) -> PartitionFinding:
        """What retention does to a group that has read the first record."""
        now_ms = self.clock.now_ms
        lag = read_lag(self.log, CommittedAt(*TP, 1, now_ms), self.manager, now_ms=now_ms)
        return explain_partition(lag, now_ms=now_ms)

    def compaction(self) -> ExplainedCompaction:
        found = self.explained().compaction
        assert found is not None
        return found

    def text(self) -> str:
        return "\n".join(sentences_of(TP.topic, self.answer()))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "other").mkdir()
    return tmp_path


def test_retention_waits_for_a_move_and_then_deletes_what_was_due(root: Path) -> None:
    node = Node(root, 25, log_retention_ms=10 * MINUTE_MS)
    node.clock.now_ms = START_MS + 9000 + 10 * MINUTE_MS + 1  # the first segment is due, the second one not yet
    assert node.manager.move(TP, node.other)
    first, second, active = node.explained().segments
    assert (first.kept_by, first.deleted_earliest_ms, first.deleted_latest_ms, first.rule) == (
        (KeptBy.MOVE_UNDER_WAY,),
        node.clock.now_ms,
        None,
        "retention.ms",
    )
    assert (second.kept_by, second.deleted_earliest_ms) == (
        (KeptBy.WITHIN_RETENTION,),
        START_MS + 19_000 + 10 * MINUTE_MS + 1,
    )
    assert active.held_by is None
    assert "and not before the partition's move is over" in node.text()
    assert "the partition is being moved to another log directory" in node.text()
    assert f"a move to {node.other} has copied 0 of 2,500 bytes" in node.text()
    assert node.manager.maintenance.run_retention() == 0

    node.scheduler.run_due()
    assert node.explained().segments[0].kept_by == (KeptBy.CHECK_INTERVAL,)
    assert node.manager.maintenance.run_retention() == 1


def test_a_group_is_not_overtaken_before_a_move_is_over(root: Path) -> None:
    node = Node(root, 25, log_retention_ms=10 * MINUTE_MS)
    node.clock.now_ms = START_MS + 9000 + 10 * MINUTE_MS + 1
    assert node.manager.move(TP, node.other)
    finding = node.overtaking()
    assert (finding.verdict, finding.at_risk, finding.overtaken_latest_ms) == (Verdict.OVERTAKEN, 9, None)
    sentence = "9 unread records, up to offset 9, at its next check, but not before the partition's move to another"
    assert sentence in retention_sentence(finding, node.clock.now_ms)
    assert node.manager.maintenance.run_retention() == 0

    node.scheduler.run_due()
    assert node.overtaking().overtaken_latest_ms is not None
    assert node.manager.maintenance.run_retention() == 1
    assert node.overtaking().lost == 9


def test_a_log_that_the_cleaner_gave_up_overtakes_no_group(root: Path) -> None:
    settings = {"log_cleanup_policy": "compact,delete", "log_retention_ms": 1000}
    node = Node(root, 25, **settings, log_cleaner_min_cleanable_ratio=1)
    node.clock.now_ms += HOUR_MS
    assert (node.overtaking().verdict, node.overtaking().at_risk) == (Verdict.OVERTAKEN, 9)
    node.cleaner.uncleanable.mark(node.log.log_dir, TP, "a batch is torn")
    assert (node.overtaking().verdict, node.overtaking().at_risk) == (Verdict.KEPT, 0)


def test_a_compacted_log_that_the_cleaner_gave_up_keeps_what_retention_would_delete(root: Path) -> None:
    settings = {"log_cleanup_policy": "compact,delete", "log_retention_ms": 1000}
    node = Node(root, 25, **settings, log_cleaner_min_cleanable_ratio=1)
    node.clock.now_ms += HOUR_MS
    assert [each.kept_by for each in node.explained().segments] == [(KeptBy.CHECK_INTERVAL,)] * 3
    node.cleaner.uncleanable.mark(node.log.log_dir, TP, "a batch is torn")
    explained = node.explained()
    assert [(each.kept_by, each.deleted_earliest_ms) for each in explained.segments] == [
        ((KeptBy.UNCLEANABLE,), None)
    ] * 3
    assert node.compaction().waits_for == (WaitsFor.UNCLEANABLE,)
    assert "the cleaner deletes from compacted logs, and has given this one up" in node.text()
    node.cleaner.run_pass()
    assert len(node.log.segments) == 3


def test_deleted_files_use_the_disk_until_the_delay_is_over(root: Path) -> None:
    node = Node(root, 25, log_retention_bytes=500)
    assert node.explained().removable_segments == 0
    assert node.manager.maintenance.run_retention() == 2
    explained = node.explained()
    assert (explained.removable_segments, explained.removable_bytes) == (2, 2000)
    told = "2 segments (2,000 bytes) left the log and still use the disk: files"
    told += f" are removed file.delete.delay.ms={DELAY_MS}"
    assert told in node.text()
    node.scheduler.advance(DELAY_MS - 1)
    assert node.explained().removable_segments == 2
    node.scheduler.advance(1)
    assert node.explained().removable_segments == 0


def test_the_active_segment_rolls_at_the_moment_that_was_said(root: Path) -> None:
    node = Node(root, 2, log_roll_ms=HOUR_MS, log_roll_jitter_ms=0)
    after_ms = node.explained().segments[-1].roll_after_ms
    assert after_ms == START_MS + HOUR_MS
    append(node.log, keyed_batch(100, after_ms))
    assert len(node.log.segments) == 1
    append(node.log, keyed_batch(100, after_ms + 1))
    assert [each.base_offset for each in node.log.segments] == [0, 3]


def test_records_become_old_enough_for_the_cleaner_at_the_moment_that_was_said(root: Path) -> None:
    node = Node(root, 25, log_cleanup_policy="compact", log_cleaner_min_compaction_lag_ms=HOUR_MS)
    node.clock.now_ms = START_MS + MINUTE_MS
    found = node.compaction()
    assert found.waits_for == (WaitsFor.MIN_COMPACTION_LAG, WaitsFor.ACTIVE_SEGMENT)
    assert found.old_enough_ms == START_MS + 9000 + HOUR_MS
    assert "those of the next segment are old enough at 2023-11-14T23:13:29.000Z" in node.text()
    node.clock.now_ms = found.old_enough_ms - 1
    assert not node.cleaner.run_pass()
    node.clock.now_ms += 1
    assert node.cleaner.run_pass()
    assert (node.compaction().first_dirty_offset, node.compaction().old_enough_ms) == (10, START_MS + 19_000 + HOUR_MS)


def test_a_log_is_compacted_at_the_latest_at_the_moment_that_was_said(root: Path) -> None:
    lag = {"log_cleaner_max_compaction_lag_ms": HOUR_MS, "log_cleaner_min_cleanable_ratio": 1}
    node = Node(root, 25, log_cleanup_policy="compact", log_roll_ms=2**62, **lag)
    due_ms = node.compaction().due_latest_ms
    assert due_ms == START_MS + HOUR_MS + 1
    node.clock.now_ms = due_ms - 1
    assert not node.cleaner.run_pass()
    node.clock.now_ms = due_ms
    assert node.cleaner.run_pass()
    assert node.compaction().first_dirty_offset == 20
