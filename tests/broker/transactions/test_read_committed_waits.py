"""A fetch that waits under read_committed is woken by bytes up to the last stable offset, not by open transactions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.broker.partitions.delayed_fetch import DelayedFetch
from barnabas.broker.partitions.partition import Partition
from barnabas.broker.probes import TopicProbe
from barnabas.broker.storage.log.append import TransactionEnd
from barnabas.protocol.messages.data.fetch import FetchResponse
from barnabas.protocol.records.end_marker import MARKER_BATCH_BYTES, EndMarker
from barnabas.protocol.records.layout import LOG_OVERHEAD
from tests.support.storage.bench import START_MS, LogBench, batch

COMMIT = EndMarker(is_commit=True, coordinator_epoch=0)


class Bench:
    """A partition with waiting fetches; counts their reads."""

    def __init__(self, tmp_path: Path, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.files = LogBench(tmp_path)
        self.partition = Partition(self.files.open(), 0, bytes(16), TopicProbe(), loop)
        self.reads = 0

    def restart(self) -> None:
        """Load the log again, as at a start of the broker."""
        log = self.partition.writable_log
        assert log is not None
        log.close()
        self.partition = Partition(self.files.open(), 0, bytes(16), TopicProbe(), self.loop)

    def wait(self, missing_bytes: int = 1, *, committed_only: bool = True) -> DelayedFetch:
        """Begin to wait, without a time limit that a test could reach."""

        def read() -> FetchResponse:
            self.reads += 1
            return FetchResponse(topics=[])

        return DelayedFetch(
            [self.partition],
            missing_bytes=missing_bytes,
            committed_only=committed_only,
            max_wait_seconds=3600,
            loop=self.loop,
            read=read,
            ended=lambda _: None,
        )

    def turn(self) -> None:
        """Run what the appends have scheduled."""
        self.loop.run_until_complete(asyncio.sleep(0))

    def send(self, producer_id: int, sequence: int = 0) -> int:
        """Append a batch of a transaction; return its size."""
        records = batch(
            (START_MS, b"k", b"v" * 100),
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
            is_transactional=True,
        )
        self.partition.append_in_transaction(records)
        self.turn()
        return len(records)

    def plain(self) -> None:
        self.partition.append(batch((START_MS, b"k", b"v")))
        self.turn()

    def commit(self, producer_id: int) -> None:
        self.partition.append_marker(TransactionEnd(producer_id, 0, COMMIT, 0))
        self.turn()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    loop = asyncio.new_event_loop()
    yield Bench(tmp_path, loop)
    loop.close()


def test_the_marker_answers_the_fetch_and_nothing_before_it_reads(bench: Bench) -> None:
    waiting = bench.wait()
    for sequence in range(5):
        bench.send(7, sequence)
    bench.plain()
    assert (bench.reads, waiting.response.done) == (0, False)
    bench.commit(7)
    assert (bench.reads, waiting.response.done) == (1, True)


def test_read_uncommitted_is_answered_by_the_first_append(bench: Bench) -> None:
    waiting = bench.wait(committed_only=False)
    bench.send(7)
    assert waiting.response.done


def test_only_the_bytes_up_to_the_next_open_transaction_count(bench: Bench) -> None:
    size = bench.send(1)
    waiting = bench.wait(size + 1)
    exact = bench.wait(size)
    bench.send(2)
    bench.commit(1)  # the log goes on with transaction 2 and this marker, which are not stable
    assert (exact.response.done, waiting.response.done) == (True, False)
    bench.commit(2)
    assert waiting.response.done


def test_a_fetch_behind_an_open_transaction_waits_for_its_end(bench: Bench) -> None:
    bench.send(1)
    waiting = bench.wait()
    bench.plain()
    assert not waiting.response.done
    bench.commit(1)
    assert waiting.response.done


def test_a_transaction_from_before_the_start_ends_the_wait_with_its_marker(bench: Bench) -> None:
    bench.send(1)
    bench.restart()
    waiting = bench.wait()
    bench.plain()
    bench.send(2)
    assert not waiting.response.done
    bench.commit(1)
    assert waiting.response.done


def test_the_notes_about_ended_transactions_go(bench: Bench) -> None:
    for producer_id in range(20):
        bench.send(producer_id)
    for producer_id in range(1, 20):
        bench.commit(producer_id)
    assert len(bench.partition._transaction_marks) == 1  # also while an old transaction stays open
    bench.commit(0)
    assert bench.partition._transaction_marks == {}
    bench.plain()
    assert bench.partition.stable_bytes == bench.partition.appended_bytes > 20 * (MARKER_BATCH_BYTES + LOG_OVERHEAD)
