"""The loop that copies from one leader: several partitions, failures, changes of the leader, cancellation."""

from __future__ import annotations

import asyncio
import errno
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from barnabas.broker.mirrors import leader_fetcher
from barnabas.broker.mirrors.byte_rate import ByteRate
from barnabas.broker.mirrors.common_end import CommonEnd, find_common_end
from barnabas.broker.mirrors.copied_log import CopiedLog
from barnabas.broker.mirrors.leader_fetcher import LeaderFetcher
from barnabas.broker.mirrors.mirrored_partition import MirroredPartition
from barnabas.broker.mirrors.partition_copier import EpochEnd, FetchedPartition, Restart, Truncate
from barnabas.broker.mirrors.source import FetchFrom, OffsetRange
from barnabas.broker.mirrors.status import PartitionCopyState
from barnabas.broker.partitions.partition import Partition
from barnabas.broker.probes import TopicProbe
from barnabas.broker.storage.files.leader_epoch import LeaderEpochFile
from barnabas.broker.storage.log_manager import LogManager
from barnabas.clients.errors import BrokerConnectionError
from barnabas.config.log_config import LogConfig
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.mirrors.definition import LATEST
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.mirrors.source_log import SourceLog, TruncatingManager, assert_equal
from tests.support.storage.bench import START_MS, TOPIC_ID, LogBench, append, log_config, sized_batch

_CONFIG = log_config(segment_bytes=1200, index_interval_bytes=200)


class Node:
    """A broker of the source with the logs of some partitions."""

    def __init__(self, logs: Mapping[TopicPartition, SourceLog]) -> None:
        self.logs = logs
        self.errors: dict[TopicPartition, ErrorCode] = {}
        self.epoch_errors: list[ErrorCode] = []
        """Of the next questions for ends of epochs."""
        self.compared: list[set[TopicPartition]] = []
        """Partitions of each question for ends of epochs."""
        self.fetches = self.comparisons = 0
        self.range_failures: list[Exception] = []
        """Of the next questions for offsets."""
        self.is_down = self.is_waiting = False
        self.changed = asyncio.Event()

    async def fetch(
        self,
        partitions: Mapping[TopicPartition, FetchFrom],
        *,
        max_wait_ms: int,
        max_bytes: int,
        compares: bool = False,
    ) -> Mapping[TopicPartition, FetchedPartition]:
        self.fetches += 1
        self.comparisons += compares
        if self.is_down:
            raise BrokerConnectionError("down")
        found = self._fetch(partitions, max_bytes)
        if not any(len(each.records) or each.error or each.diverging for each in found.values()):
            self.changed.clear()
            self.is_waiting = True
            try:
                async with asyncio.timeout(max_wait_ms / 1000):
                    await self.changed.wait()
            except TimeoutError:
                pass
            finally:
                self.is_waiting = False
            found = self._fetch(partitions, max_bytes)
        return found

    def _fetch(
        self, partitions: Mapping[TopicPartition, FetchFrom], max_bytes: int
    ) -> dict[TopicPartition, FetchedPartition]:
        answers = {}
        for key, asked in partitions.items():
            error = self.errors.get(key, ErrorCode.NONE)
            answers[key] = (
                FetchedPartition(error)
                if error
                else self.logs[key].fetch(asked.offset, asked.last_fetched_epoch, min(max_bytes, asked.max_bytes))
            )
        return answers

    async def offset_ranges(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, OffsetRange]:
        if self.range_failures:
            raise self.range_failures.pop()
        return {
            key: OffsetRange(ErrorCode.NONE, self.logs[key].log.log_start_offset, self.logs[key].log.log_end_offset)
            for key in partitions
        }

    async def offsets_at(self, _: object, timestamp_ms: int) -> Mapping[TopicPartition, OffsetRange]:
        raise NotImplementedError

    async def epoch_ends(
        self, epochs: Mapping[TopicPartition, int], _: object
    ) -> Mapping[TopicPartition, EpochEnd | ErrorCode]:
        self.compared.append(set(epochs))
        if self.epoch_errors:
            return dict.fromkeys(epochs, self.epoch_errors.pop(0))
        return {key: self.logs[key].end_of_epoch(epoch) for key, epoch in epochs.items()}

    def close(self) -> None:
        pass


class LateNode(Node):
    """A broker that answers a question for the end of an epoch late, and has lost all but two records."""

    def __init__(self, logs: Mapping[TopicPartition, SourceLog], late: asyncio.Event) -> None:
        super().__init__(logs)
        self._late = late
        self.has_answered = False

    async def epoch_ends(
        self, epochs: Mapping[TopicPartition, int], _: object
    ) -> Mapping[TopicPartition, EpochEnd | ErrorCode]:
        self.compared.append(set(epochs))
        await self._late.wait()
        self.has_answered = True
        return {key: EpochEnd(0, 2) for key in epochs}


class QuestionedNode(Node):
    """A broker that answers the comparison of the copy's epoch, and what follows only when it may."""

    def __init__(self, logs: Mapping[TopicPartition, SourceLog], answer: EpochEnd | None = None) -> None:
        """`answer`: to the first question that had to wait."""
        super().__init__(logs)
        self._answer = answer
        self.is_questioned, self.may_answer = asyncio.Event(), asyncio.Event()
        self.has_answered = False

    async def connect(self) -> QuestionedNode:
        return self

    async def epoch_ends(
        self, epochs: Mapping[TopicPartition, int], leader_epochs: object
    ) -> Mapping[TopicPartition, EpochEnd | ErrorCode]:
        found = await super().epoch_ends(epochs, leader_epochs)
        if len(self.compared) == 1:
            return found
        self.is_questioned.set()
        await self.may_answer.wait()
        self.has_answered = True
        answer, self._answer = self._answer, None
        return found if answer is None else dict.fromkeys(epochs, answer)


class Mirror:
    """Sources and copies of some partitions, and a fetcher that runs."""

    def __init__(
        self,
        path: Path,
        count: int,
        executor: ThreadPoolExecutor,
        bytes_per_second: int | None = None,
        interval_seconds: float = 0.0,
        config: LogConfig = _CONFIG,
        *,
        follows_epochs: bool = False,
    ) -> None:
        """`config` is that of the copies."""
        self.keys = [TopicPartition("t", number) for number in range(count)]
        self.sources: dict[TopicPartition, SourceLog] = {}
        self.copies: dict[TopicPartition, MirroredPartition] = {}
        loop = asyncio.get_running_loop()
        for key in self.keys:
            places = [path / side / str(key.partition) for side in ("source", "copy")]
            for place in places:
                place.mkdir(parents=True)
            source, log = LogBench(places[0]).open(_CONFIG), LogBench(places[1]).open(config)
            self.sources[key] = SourceLog(source, compares_epochs=True)
            partition = Partition(log, 0, TOPIC_ID, TopicProbe(), loop)
            manager = cast(LogManager, TruncatingManager(log))
            self.copies[key] = MirroredPartition(
                key, None, CopiedLog(partition, log, manager, keeps_cut=False), loop.time()
            )
        self.node = Node(self.sources)
        self.lost = 0
        self.fetcher = LeaderFetcher(
            self._connect,
            executor,
            ByteRate(bytes_per_second, loop.time),
            on_lost=self._count_lost,
            interval_seconds=interval_seconds,
            copies_anew=True,
            follows_epochs=follows_epochs,
        )
        for each in self.copies.values():
            self.fetcher.add(each)

    def append(self, key: TopicPartition, count: int, size: int = 100) -> None:
        for _ in range(count):
            self.sources[key].append(size)
        self.node.changed.set()

    async def until_equal(self) -> None:
        async with asyncio.timeout(20):
            while any(
                each.log.end != self.sources[key].log.log_end_offset or each.state is not PartitionCopyState.CAUGHT_UP
                for key, each in self.copies.items()
            ):
                await asyncio.sleep(0.005)
        for key, each in self.copies.items():
            assert_equal(self.sources[key].log, each.log)

    async def _connect(self) -> Node:
        if self.node.is_down:
            raise BrokerConnectionError("nobody listens")
        return self.node

    def _count_lost(self) -> None:
        self.lost += 1


@pytest.fixture
def executor() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as executor:
        yield executor


@asynccontextmanager
async def running(path: Path, executor: ThreadPoolExecutor, count: int = 3, **limits: Any) -> AsyncIterator[Mirror]:
    mirror = Mirror(path, count, executor, **limits)
    task = asyncio.create_task(mirror.fetcher.run())
    try:
        yield mirror
    finally:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_all_partitions_of_a_leader_are_copied(tmp_path: Path, executor: ThreadPoolExecutor) -> None:
    async with running(tmp_path, executor) as mirror:
        for number, key in enumerate(mirror.keys):
            mirror.append(key, 10 * number)
        await mirror.until_equal()
        fetches = mirror.node.fetches
        mirror.append(mirror.keys[1], 5)
        await mirror.until_equal()
        assert mirror.node.fetches <= fetches + 4
        assert sum(each.bytes_copied for each in mirror.copies.values()) == 3500


async def test_a_partition_with_an_error_does_not_stop_the_others(tmp_path: Path, executor: ThreadPoolExecutor) -> None:
    async with running(tmp_path, executor) as mirror:
        bad, good = mirror.keys[:2]
        mirror.node.errors[bad] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        for key in mirror.keys:
            mirror.append(key, 3)
        async with asyncio.timeout(20):
            while mirror.copies[bad].state is not PartitionCopyState.FAILED or mirror.copies[good].log.end != 3:
                await asyncio.sleep(0.005)
        assert "TOPIC_AUTHORIZATION_FAILED" in str(mirror.copies[bad].error)
        mirror.node.errors.clear()
        mirror.copies[bad].resume_at = 0.0
        await mirror.until_equal()
        assert mirror.copies[bad].error is None


async def test_a_lost_leader_is_reported_and_copying_goes_on_when_it_is_back(
    tmp_path: Path, executor: ThreadPoolExecutor
) -> None:
    async with running(tmp_path, executor) as mirror:
        mirror.append(mirror.keys[0], 3)
        await mirror.until_equal()
        mirror.node.is_down = True
        mirror.node.changed.set()
        async with asyncio.timeout(20):
            while mirror.fetcher.error is None:
                await asyncio.sleep(0.005)
        assert mirror.lost >= 1
        mirror.append(mirror.keys[2], 4)
        mirror.node.is_down = False
        await mirror.until_equal()
        assert mirror.fetcher.error is None


@pytest.mark.parametrize(
    ("config", "has_gap", "is_copied_anew"),
    [
        (log_config(compact=True, delete_retention_ms=1), True, True),
        (log_config(compact=True, delete_retention_ms=1), False, False),
        (log_config(compact=True, delete_retention_ms=60_000), True, False),
        (log_config(compact=False, delete_retention_ms=1), True, False),
    ],
    ids=["late", "no gap", "in time", "not compacted"],
)
async def test_a_compacted_partition_that_was_behind_for_too_long_is_copied_anew(
    tmp_path: Path,
    executor: ThreadPoolExecutor,
    caplog: pytest.LogCaptureFixture,
    config: LogConfig,
    has_gap: bool,
    is_copied_anew: bool,
) -> None:
    async with running(tmp_path, executor, 1, config=config) as mirror:
        (key,) = mirror.keys
        source, copy = mirror.sources[key], mirror.copies[key]
        source.skip(2)  # a gap from before the copy began changes nothing
        mirror.append(key, 3)
        await mirror.until_equal()
        copied = copy.bytes_copied
        mirror.node.is_down = True
        mirror.node.changed.set()
        async with asyncio.timeout(20):
            while mirror.fetcher.error is None:
                await asyncio.sleep(0.005)
        if has_gap:
            source.skip(2)
        mirror.append(key, 1)
        mirror.node.is_down = False
        await mirror.until_equal()
        assert (copy.bytes_copied >= 2 * copied) == is_copied_anew
        assert ("is copied anew, it was behind for" in caplog.text) == is_copied_anew
        mirror.append(key, 1)
        await mirror.until_equal()
        assert caplog.text.count("copied anew") == is_copied_anew


async def test_a_copy_that_cannot_be_begun_anew_is_begun_anew_later(
    tmp_path: Path, executor: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusals = ["too many open files"]
    restart = TruncatingManager.restart

    def refused_once(self: TruncatingManager, key: object, offset: int) -> None:
        if refusals:
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, refusals.pop())
        restart(self, key, offset)

    config = log_config(compact=True, delete_retention_ms=1)
    async with running(tmp_path, executor, 1, config=config) as mirror:
        (key,) = mirror.keys
        source, copy = mirror.sources[key], mirror.copies[key]
        mirror.append(key, 3)
        await mirror.until_equal()
        copied = copy.bytes_copied
        mirror.node.is_down = True
        mirror.node.changed.set()
        await until(lambda: mirror.fetcher.error is not None)
        monkeypatch.setattr(TruncatingManager, "restart", refused_once)
        source.skip(2)
        mirror.node.is_down = False
        await until(lambda: copy.state is PartitionCopyState.FAILED)
        assert "too many open files" in str(copy.error)
        copy.resume_at = 0.0
        mirror.fetcher.add(copy)
        await mirror.until_equal()
        assert copy.bytes_copied >= 2 * copied


async def test_records_are_kept_aside_once_although_the_cut_is_tried_several_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = LogBench(tmp_path).open(_CONFIG)
    partition = Partition(log, 0, TOPIC_ID, TopicProbe(), asyncio.get_running_loop())
    copied = CopiedLog(partition, log, cast(LogManager, TruncatingManager(log)), keeps_cut=True)
    for _ in range(5):
        append(log, sized_batch(100))

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def refused(*_: object) -> None:
        raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, "too many open files")

    for action in (Truncate(3, "diverged"), Restart(9, 0)):
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", full)
            with pytest.raises(OSError, match="No space"):
                copied.carry_out([action])
        with monkeypatch.context() as patched:
            patched.setattr(TruncatingManager, "truncate", refused)
            patched.setattr(TruncatingManager, "restart", refused)
            with pytest.raises(BrokerError):
                copied.carry_out([action])
        assert list(tmp_path.glob("*.cut-*")) == []
        copied.carry_out([action])
        (kept,) = tmp_path.glob("*.cut-*")
        assert kept.stat().st_size > 0
        kept.unlink()


async def test_a_diverged_copy_that_cannot_be_cut_gets_no_more_records(
    tmp_path: Path, executor: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have the same epochs: only the comparison of batches shows the difference."""
    truncate, is_refused = TruncatingManager.truncate, True

    def refused(self: TruncatingManager, key: object, offset: int) -> None:
        if is_refused:
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, "too many open files")
        truncate(self, key, offset)

    monkeypatch.setattr(TruncatingManager, "truncate", refused)
    async with running(tmp_path, executor, 1) as mirror:
        (key,) = mirror.keys
        source, copy = mirror.sources[key], mirror.copies[key]
        mirror.append(key, 9)
        await mirror.until_equal()
        mirror.fetcher.remove(key)
        source.log.truncate_to(4)
        mirror.append(key, 8, 150)
        copy._compares_batches = True
        for _ in range(2):
            mirror.fetcher.add(copy)
            await until(lambda: copy.state is PartitionCopyState.FAILED)
            assert copy.log.end == 9
            copy.state, copy.resume_at = PartitionCopyState.COPYING, 0.0
        is_refused = False
        mirror.fetcher._changed.set()
        await mirror.until_equal()


async def test_one_request_compares_the_epochs_of_all_partitions(tmp_path: Path, executor: ThreadPoolExecutor) -> None:
    async with running(tmp_path, executor, 3) as mirror:
        for key in mirror.keys:
            mirror.append(key, 9)
        await mirror.until_equal()
        mirror.node.compared.clear()
        mirror.node.is_down = True
        mirror.node.changed.set()
        async with asyncio.timeout(20):
            while mirror.fetcher.error is None:
                await asyncio.sleep(0.005)
        diverged = mirror.sources[mirror.keys[1]]
        diverged.log.truncate_to(4)
        diverged.epoch += 1
        mirror.append(mirror.keys[1], 8, 150)
        mirror.node.is_down = False
        async with asyncio.timeout(20):
            while mirror.copies[mirror.keys[1]].log.end != diverged.log.log_end_offset:
                await asyncio.sleep(0.005)
        await mirror.until_equal()
        assert mirror.node.compared[0] == set(mirror.keys)


async def test_a_diverged_copy_is_cut_and_follows(tmp_path: Path, executor: ThreadPoolExecutor) -> None:
    async with running(tmp_path, executor, 1) as mirror:
        (key,) = mirror.keys
        mirror.append(key, 9)
        await mirror.until_equal()
        source = mirror.sources[key]
        source.log.truncate_to(4)
        source.epoch += 1
        mirror.append(key, 8, 150)
        await mirror.until_equal()


async def test_a_refused_comparison_is_repeated_before_anything_is_fetched(
    tmp_path: Path, executor: ThreadPoolExecutor
) -> None:
    """The source does not compare the epochs of fetches, as Barnabas, and is longer than the copy again."""
    async with running(tmp_path, executor, 1) as mirror:
        (key,) = mirror.keys
        source = mirror.sources[key]
        source._compares_epochs = False
        mirror.append(key, 9)
        await mirror.until_equal()
        mirror.node.is_down = True
        mirror.node.changed.set()
        async with asyncio.timeout(20):
            while mirror.fetcher.error is None:
                await asyncio.sleep(0.005)
        source.log.truncate_to(4)
        source.epoch += 1
        mirror.append(key, 8, 150)
        mirror.node.epoch_errors = [ErrorCode.FENCED_LEADER_EPOCH]
        mirror.node.is_down = False
        async with asyncio.timeout(20):
            while mirror.copies[key].log.end != source.log.log_end_offset:
                await asyncio.sleep(0.005)
        await mirror.until_equal()


async def test_batches_are_compared_where_no_epoch_is_common(tmp_path: Path, executor: ThreadPoolExecutor) -> None:
    async with running(tmp_path, executor, 1) as mirror:
        (key,) = mirror.keys
        source = mirror.sources[key]
        source.epoch = 5
        mirror.append(key, 23)
        await mirror.until_equal()
        source.log.truncate_to(17)
        source.log.core.epochs.clear()
        source.log.core.latest_epoch = -1
        source.epoch = 2
        mirror.append(key, 9, 150)
        copy = mirror.copies[key]
        async with asyncio.timeout(20):
            while copy.log.end != 26 or copy.log.entry_at(17).crc != source_crc(source, 17):  # type: ignore[union-attr]
                await asyncio.sleep(0.005)


async def test_the_lag_in_bytes_is_that_of_records_of_the_mean_size(
    tmp_path: Path, executor: ThreadPoolExecutor
) -> None:
    async with running(tmp_path, executor, 1) as mirror:
        (key,) = mirror.keys
        copy = mirror.copies[key]
        assert copy.status(0.0).lag_bytes is None, "nothing is known"
        mirror.append(key, 10)
        await mirror.until_equal()
        size = mirror.sources[key].log.size_bytes
        copy.source_offset = copy.log.end + 5
        assert copy.status(0.0).lag_bytes == round(size / 10 * 5)
        copy.source_offset = copy.log.end
        assert copy.status(0.0).lag_bytes == 0


async def test_a_source_without_epochs_that_lost_its_tail_and_grew_is_noticed(
    tmp_path: Path, executor: ThreadPoolExecutor, caplog: pytest.LogCaptureFixture
) -> None:
    """Record formats before 2 have no leader epochs, so neither side can name the diverging one."""
    async with running(tmp_path, executor, 1) as mirror:
        (key,) = mirror.keys
        source = mirror.sources[key]
        source.epoch = -1
        mirror.append(key, 9)
        await mirror.until_equal()
        mirror.node.is_down = True
        mirror.node.changed.set()
        async with asyncio.timeout(20):
            while mirror.fetcher.error is None:
                await asyncio.sleep(0.005)
        source.log.truncate_to(4)
        mirror.append(key, 20, 150)
        mirror.node.is_down = False
        async with asyncio.timeout(20):
            while mirror.copies[key].log.end != 24:
                await asyncio.sleep(0.005)
        await mirror.until_equal()
    assert "the source has other batches from offset 4 on" in caplog.text


async def test_the_comparison_of_batches_finds_the_common_end_or_the_error_of_the_source(
    tmp_path: Path, executor: ThreadPoolExecutor
) -> None:
    async with running(tmp_path, executor, 1) as mirror:
        (key,) = mirror.keys
        mirror.append(key, 10)
        await mirror.until_equal()
    copy, source, node = mirror.copies[key], mirror.sources[key], mirror.node
    before = node.fetches
    assert await find_common_end(node, copy) == CommonEnd(10, 10)
    source.log.delete_records(3)
    source.log.truncate_to(6)
    source.append(77)
    source.append(77)
    assert await find_common_end(node, copy) == CommonEnd(6, 8)
    node.errors[key] = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert await find_common_end(node, copy) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert node.comparisons == node.fetches - before


async def test_a_batch_that_both_sides_of_a_split_got_at_the_same_offset_does_not_hide_others_before_it(
    tmp_path: Path, executor: ThreadPoolExecutor
) -> None:
    """A producer without an answer repeats its batch at the broker that has taken over."""
    async with running(tmp_path, executor, 1) as mirror:
        (key,) = mirror.keys
        mirror.append(key, 6)
        await mirror.until_equal()
    copy, source = mirror.copies[key], mirror.sources[key]
    repeated = source_crc(source, 5)
    source.log.truncate_to(4)
    source.epoch, source.timestamp = 1, START_MS + 5
    source.append(150)
    source.timestamp = START_MS + 5
    source.append(100)
    assert source_crc(source, 5) == repeated
    assert await find_common_end(mirror.node, copy) == CommonEnd(4, 6)


async def test_epochs_whose_first_records_compaction_has_taken_begin_where_they_do_at_the_source(
    tmp_path: Path, executor: ThreadPoolExecutor
) -> None:
    async with running(tmp_path, executor, 1, follows_epochs=True) as mirror:
        (key,) = mirror.keys
        source, copied = mirror.sources[key], mirror.copies[key].log.partition.log.core
        mirror.append(key, 5)
        for epoch in (2, 3):
            source.epoch = epoch
            source.log.assign_epoch_start_offset(epoch, source.log.log_end_offset)
            source.skip(4)
        source.log.assign_epoch_start_offset(7, source.log.log_end_offset)
        mirror.copies[key].leader_epoch = 7
        mirror.append(key, 0)
        expected = ((0, 0), (2, 5), (3, 10), (7, 15))
        await until(lambda: copied.latest_epoch == 7)  # which changes last, after the file
        assert copied.epochs.entries == expected
        assert LeaderEpochFile.read(copied.directory).entries == expected
        source.epoch = 7
        mirror.append(key, 2)
        await mirror.until_equal()
        assert copied.epochs.entries == expected


@pytest.mark.parametrize("inline_bytes", [0, 1 << 20])
async def test_with_flush_messages_a_fetch_says_only_what_is_on_disk(
    tmp_path: Path, executor: ThreadPoolExecutor, inline_bytes: int
) -> None:
    """A standby's offset is an acknowledgement. Its event loop makes only appends that are not synced."""
    config = log_config(segment_bytes=1200, index_interval_bytes=200, flush_messages=1)
    async with running(tmp_path, executor, 1, config=config) as mirror:
        (key,) = mirror.keys
        core, fetch = mirror.copies[key].log.partition.log.core, mirror.node.fetch
        mirror.fetcher._inline_bytes = inline_bytes
        asked: list[tuple[int, int]] = []

        async def watched(partitions: Mapping[TopicPartition, FetchFrom], **limits: Any) -> Any:
            asked.extend((each.offset, core.durable_offset) for each in partitions.values())
            return await fetch(partitions, **limits)

        mirror.node.fetch = watched  # type: ignore[method-assign]
        for _ in range(3):
            mirror.append(key, 3)
            await mirror.until_equal()
        await until(lambda: asked[-1][0] == 9)
        assert all(offset <= durable for offset, durable in asked), asked


async def test_a_connection_that_is_lost_before_the_start_is_known_does_not_move_the_start(
    tmp_path: Path, executor: ThreadPoolExecutor
) -> None:
    async with running(tmp_path, executor, 1) as mirror:
        (key,) = mirror.keys
        copy = mirror.copies[key]
        copy.starts_at = LATEST
        mirror.node.range_failures = [BrokerConnectionError("lost")]
        mirror.append(key, 5)
        await until(lambda: copy.state is PartitionCopyState.CAUGHT_UP)
        assert (copy.log.start, copy.log.end) == (5, 5)


async def test_an_answer_for_a_topic_that_was_deleted_meanwhile_is_not_appended_to_the_new_one(
    tmp_path: Path, executor: ThreadPoolExecutor
) -> None:
    async with running(tmp_path, executor, 1) as mirror:
        (key,) = mirror.keys
        mirror.append(key, 5)
        await mirror.until_equal()
        await until(lambda: mirror.node.is_waiting)
        (tmp_path / "again").mkdir()
        log = LogBench(tmp_path / "again").open(_CONFIG)
        served = Partition(log, 0, TOPIC_ID, TopicProbe(), asyncio.get_running_loop())
        copied = CopiedLog(served, log, cast(LogManager, TruncatingManager(log)), keeps_cut=False)
        mirror.fetcher.remove(key)
        mirror.copies[key] = MirroredPartition(key, None, copied, 0.0)
        mirror.fetcher.add(mirror.copies[key])
        mirror.append(key, 3)
        await mirror.until_equal()


async def test_a_leader_that_was_replaced_while_it_answered_changes_nothing(
    tmp_path: Path, executor: ThreadPoolExecutor
) -> None:
    """Its fetcher and the next leader's would change the same log."""
    async with running(tmp_path, executor, 1) as mirror:
        (key,) = mirror.keys
        mirror.append(key, 5)
        await mirror.until_equal()
        copy, late = mirror.copies[key], asyncio.Event()
        earlier = LateNode(mirror.sources, late)

        async def connect() -> Node:
            return earlier

        fetcher = LeaderFetcher(connect, executor, ByteRate(None, lambda: 0.0), on_lost=lambda: None)
        task = asyncio.create_task(fetcher.run())
        mirror.fetcher.remove(key)
        fetcher.add(copy)
        await until(lambda: bool(earlier.compared))
        fetcher.remove(key)
        mirror.fetcher.add(copy)
        mirror.append(key, 3)
        await mirror.until_equal()
        late.set()
        await until(lambda: earlier.has_answered)
        mirror.append(key, 3)
        await mirror.until_equal()
        task.cancel()
        await asyncio.wait([task])
        assert copy.log.partition.log.core.truncations == 0


class OldEpochNode(Node):
    """A broker that answers one question late, and as if it ended at offset 2."""

    def __init__(self, logs: Mapping[TopicPartition, SourceLog], late: str) -> None:
        """`late`: what the question is about, "offsets" or "epochs"."""
        super().__init__(logs)
        self._late: str | None = late
        self.is_questioned, self.may_answer = asyncio.Event(), asyncio.Event()

    async def connect(self) -> OldEpochNode:
        return self

    async def offset_ranges(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, OffsetRange]:
        if await self._waits("offsets"):
            return dict.fromkeys(partitions, OffsetRange(ErrorCode.NONE, 0, 2))
        return await super().offset_ranges(partitions)

    async def epoch_ends(
        self, epochs: Mapping[TopicPartition, int], leader_epochs: object
    ) -> Mapping[TopicPartition, EpochEnd | ErrorCode]:
        if await self._waits("epochs"):
            return dict.fromkeys(epochs, EpochEnd(0, 2))
        return await super().epoch_ends(epochs, leader_epochs)

    async def _waits(self, question: str) -> bool:
        if self._late != question:
            return False
        self._late = None
        self.is_questioned.set()
        await self.may_answer.wait()
        return True


@pytest.mark.parametrize("late", ["epochs", "offsets"])
async def test_an_answer_for_an_earlier_epoch_of_the_same_leader_cuts_nothing(
    tmp_path: Path, executor: ThreadPoolExecutor, late: str
) -> None:
    async with running(tmp_path, executor, 1) as mirror:
        (key,) = mirror.keys
        mirror.append(key, 5)
        await mirror.until_equal()
        mirror.fetcher.remove(key)
        copy, node = mirror.copies[key], OldEpochNode(mirror.sources, late)
        if late == "offsets":
            node.errors[key] = ErrorCode.OFFSET_OUT_OF_RANGE  # after which it is asked for its offsets
        fetcher = LeaderFetcher(node.connect, executor, ByteRate(None, lambda: 0.0), on_lost=lambda: None)
        task = asyncio.create_task(fetcher.run())
        fetcher.add(copy)
        await until(node.is_questioned.is_set)
        fetcher.remove(key)
        fetcher.add(copy)
        node.errors.clear()
        node.may_answer.set()
        await until(lambda: node.is_waiting)
        assert copy.log.end == 5
        assert copy.log.partition.log.core.truncations == 0
        task.cancel()
        await asyncio.wait([task])


async def test_an_answer_to_a_replaced_leaders_question_is_not_taken_for_the_next_leaders(
    tmp_path: Path, executor: ThreadPoolExecutor
) -> None:
    """The next leader has been asked the same by then."""
    async with running(tmp_path, executor, 1, follows_epochs=True) as mirror:
        (key,) = mirror.keys
        source, copy = mirror.sources[key], mirror.copies[key]
        mirror.append(key, 5)
        for epoch in (2, 3):
            source.epoch = epoch
            source.log.assign_epoch_start_offset(epoch, source.log.log_end_offset)
            source.skip(4)
        core = copy.log.partition.log.core
        await until(lambda: core.epochs.entries == ((0, 0), (2, 5), (3, 10)) and not copy.is_changing)
        mirror.fetcher.remove(key)
        source.log.assign_epoch_start_offset(7, source.log.log_end_offset)
        copy.leader_epoch = 7
        earlier, later = QuestionedNode(mirror.sources, EpochEnd(3, 12)), QuestionedNode(mirror.sources)
        fetchers = [
            LeaderFetcher(
                each.connect, executor, ByteRate(None, lambda: 0.0), on_lost=lambda: None, follows_epochs=True
            )
            for each in (earlier, later)
        ]
        tasks = [asyncio.create_task(each.run()) for each in fetchers]
        for node, fetcher, replaced in zip((earlier, later), fetchers, (None, fetchers[0]), strict=True):
            if replaced is not None:
                replaced.remove(key)
            fetcher.add(copy)
            await until(node.is_questioned.is_set)
        earlier.may_answer.set()
        await until(lambda: earlier.has_answered)
        later.may_answer.set()
        await until(lambda: core.latest_epoch == 7)
        assert core.epochs.entries == ((0, 0), (2, 5), (3, 10), (7, 15))
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def test_epochs_of_a_leader_that_was_replaced_before_they_are_written_are_not_written(
    tmp_path: Path, executor: ThreadPoolExecutor
) -> None:
    async with running(tmp_path, executor, 1, follows_epochs=True) as mirror:
        (key,) = mirror.keys
        source, copy = mirror.sources[key], mirror.copies[key]
        mirror.append(key, 5)
        await mirror.until_equal()
        await until(lambda: not copy.is_changing)
        mirror.fetcher.remove(key)
        source.log.assign_epoch_start_offset(7, 5)
        copy.leader_epoch = 7
        may_write = threading.Event()
        executor.submit(may_write.wait, 20)
        mirror.fetcher.add(copy)
        await until(lambda: copy.is_changing)
        mirror.fetcher.remove(key)
        copy.begin()
        may_write.set()
        await until(lambda: not copy.is_changing)
        assert copy.log.partition.log.core.epochs.entries == ((0, 0),)
        mirror.fetcher.add(copy)
        await until(lambda: copy.log.partition.log.core.epochs.entries == ((0, 0), (7, 5)))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.005)


async def test_a_rate_limits_the_bytes_per_second(tmp_path: Path, executor: ThreadPoolExecutor) -> None:
    clock = [100.0]
    rate = ByteRate(1000, lambda: clock[0])
    assert rate.seconds_after(500, clock[0]) == 0.5
    clock[0] += 0.25
    assert rate.seconds_after(250, clock[0]) == 0.5
    clock[0] += 10
    assert rate.seconds_after(100, clock[0]) == pytest.approx(0.1)
    clock[0] += 10
    assert rate.seconds_after(500, clock[0] - 0.25) == pytest.approx(0.25)  # the request itself has lasted
    assert rate.seconds_after(500, clock[0]) == pytest.approx(0.75)
    assert rate.seconds_after(0, clock[0] - 9) == pytest.approx(0.75)
    assert ByteRate(None, lambda: clock[0]).seconds_after(1 << 40, clock[0]) == 0
    async with running(tmp_path, executor, 1, bytes_per_second=1 << 30) as mirror:
        mirror.append(mirror.keys[0], 20)
        await mirror.until_equal()


async def test_after_a_small_answer_the_next_request_waits(tmp_path: Path, executor: ThreadPoolExecutor) -> None:
    async with running(tmp_path, executor, 1, interval_seconds=3600) as mirror:
        mirror.append(mirror.keys[0], 1)
        await mirror.until_equal()
        for _ in range(10):
            await asyncio.sleep(0)
        assert mirror.node.fetches == 1


async def test_after_a_large_answer_the_next_request_does_not_wait(
    tmp_path: Path, executor: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leader_fetcher, "_SMALL_BYTES", 1)
    async with running(tmp_path, executor, 1, interval_seconds=3600) as mirror:
        for _ in range(2):
            mirror.append(mirror.keys[0], 1)
            await mirror.until_equal()


def source_crc(source: SourceLog, offset: int) -> int:
    answer = source.fetch(offset, -1, 1)
    from barnabas.broker.mirrors.stored_entries import iter_entries

    return next(iter_entries(answer.records)).crc


async def test_a_copy_that_cannot_be_read_for_the_comparison_of_batches_has_failed_and_is_tried_again(
    tmp_path: Path, executor: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path, executor, 1) as mirror:
        (key,) = mirror.keys
        mirror.append(key, 3)
        await mirror.until_equal()
        copy = mirror.copies[key]
        failing = True
        entry_at = CopiedLog.entry_at

        def refused_once(self: CopiedLog, offset: int) -> object:
            nonlocal failing
            if failing:
                raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, "the disk is gone")
            return entry_at(self, offset)

        monkeypatch.setattr(CopiedLog, "entry_at", refused_once)
        copy._compares_batches = True
        mirror.fetcher.remove(key)
        mirror.fetcher.add(copy)
        async with asyncio.timeout(20):
            while copy.state is not PartitionCopyState.FAILED:
                await asyncio.sleep(0.005)
        assert (copy.error, mirror.fetcher.error) == ("KAFKA_STORAGE_ERROR: the disk is gone", None)
        failing = False
        mirror.append(key, 1)
        copy.resume_at = 0.0
        mirror.fetcher.add(copy)
        await mirror.until_equal()
    assert "a bug" not in caplog.text
