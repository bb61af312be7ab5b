"""The loop that copies from one leader: several partitions, failures, changes of the leader, cancellation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
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
from barnabas.broker.mirrors.partition_copier import EpochEnd, FetchedPartition
from barnabas.broker.mirrors.source import FetchFrom, OffsetRange
from barnabas.broker.mirrors.status import PartitionCopyState
from barnabas.broker.partitions.partition import Partition
from barnabas.broker.probes import TopicProbe
from barnabas.broker.storage.log_manager import LogManager
from barnabas.clients.errors import BrokerConnectionError
from barnabas.config.log_config import LogConfig
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.mirrors.source_log import SourceLog, TruncatingManager, assert_equal
from tests.support.storage.bench import TOPIC_ID, LogBench, log_config

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
        self.fetches = 0
        self.is_down = False
        self.changed = asyncio.Event()

    async def fetch(
        self, partitions: Mapping[TopicPartition, FetchFrom], *, max_wait_ms: int, max_bytes: int
    ) -> Mapping[TopicPartition, FetchedPartition]:
        self.fetches += 1
        if self.is_down:
            raise BrokerConnectionError("down")
        found = self._fetch(partitions, max_bytes)
        if not any(len(each.records) or each.error or each.diverging for each in found.values()):
            self.changed.clear()
            try:
                async with asyncio.timeout(max_wait_ms / 1000):
                    await self.changed.wait()
            except TimeoutError:
                pass
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


async def test_the_comparison_of_batches_finds_the_common_end_or_the_error_of_the_source(
    tmp_path: Path, executor: ThreadPoolExecutor
) -> None:
    async with running(tmp_path, executor, 1) as mirror:
        (key,) = mirror.keys
        mirror.append(key, 10)
        await mirror.until_equal()
    copy, source, node = mirror.copies[key], mirror.sources[key], mirror.node
    assert await find_common_end(node, copy) == CommonEnd(10, 10)
    source.log.delete_records(3)
    source.log.truncate_to(6)
    source.append(77)
    source.append(77)
    assert await find_common_end(node, copy) == CommonEnd(6, 8)
    node.errors[key] = ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert await find_common_end(node, copy) is ErrorCode.NOT_LEADER_OR_FOLLOWER


async def test_a_rate_limits_the_bytes_per_second(tmp_path: Path, executor: ThreadPoolExecutor) -> None:
    clock = [100.0]
    rate = ByteRate(1000, lambda: clock[0])
    assert rate.seconds_after(500) == 0.5
    clock[0] += 0.25
    assert rate.seconds_after(250) == 0.5
    clock[0] += 10
    assert rate.seconds_after(100) == pytest.approx(0.1)
    assert ByteRate(None, lambda: clock[0]).seconds_after(1 << 40) == 0
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
