"""Task attempts in transactions whose driver moves on, or whose broker dies, at every moment of the attempt."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from barnabas import ProducerConfig
from barnabas.clients.errors import ClientError
from barnabas.clients.producer.prepared import PreparedTransaction, PreparedTransactions
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.sink.decisions import commit_run, recover
from barnabas.pipeline.sink.rows import SinkRecord
from barnabas.pipeline.sink.run_files import Commit, RunFiles, TransactionFiles, WrittenBatch
from barnabas.pipeline.sink.transactional_task import Prepared, register_attempt, write_prepared
from tests.support.daemon import Daemon, start_daemon
from tests.support.topics import create_topics, has_open_transactions, read_committed_topic

PARTITIONS = 2
RECORDS = 2000


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with start_daemon(tmp_path_factory.mktemp("broker"), "transaction.two.phase.commit.enable=true") as running:
        yield running


def rows(topic: str, at: int = -1, then: Callable[[], None] | None = None) -> Iterator[SinkRecord]:
    """Yield rows; at one of them, call `then` first."""
    for number in range(RECORDS):
        if number == at and then is not None:
            then()
        yield SinkRecord(topic, None, b"%04d" % number, [], number % PARTITIONS, None)


def config(daemon: Daemon) -> ProducerConfig:
    return ProducerConfig(bootstrap=daemon.bootstrap, batch_size=1000)


async def write(daemon: Daemon, run: RunFiles, name: str, records: Iterator[SinkRecord]) -> Prepared:
    return await write_prepared(config(daemon), None, records, register_attempt(run, 0, name, name, None), run)


def driver(daemon: Daemon, files: TransactionFiles) -> None:
    """Start a new driver, which recovers, in another thread."""

    async def restart() -> None:
        async with PreparedTransactions(config(daemon)) as ending:
            await recover(files, ending)

    thread = threading.Thread(target=lambda: asyncio.run(restart()))
    thread.start()
    thread.join()


async def begin(daemon: Daemon, checkpoint: Path, run: str) -> tuple[TransactionFiles, RunFiles]:
    files = TransactionFiles(str(checkpoint))
    async with PreparedTransactions(config(daemon)) as ending:
        files.run(run).begin(ending.cluster_id)
    return files, files.run(run)


async def commit(daemon: Daemon, files: TransactionFiles, run: RunFiles, *transactions: PreparedTransaction) -> None:
    async with PreparedTransactions(config(daemon)) as ending:
        await commit_run(files, run, Commit(WrittenBatch(0, "q", ending.cluster_id), transactions), ending)


async def values(daemon: Daemon, topic: str) -> list[bytes]:
    assert not await has_open_transactions(daemon.bootstrap, topic, PARTITIONS)
    return sorted(record.value or b"" for record in await read_committed_topic(daemon.bootstrap, topic, PARTITIONS))


async def test_of_two_attempts_the_decided_one_is_committed_and_the_other_aborted(
    daemon: Daemon, tmp_path: Path
) -> None:
    await create_topics(daemon.bootstrap, "two", partitions=PARTITIONS)
    files, run = await begin(daemon, tmp_path, "r")
    one, other = await asyncio.gather(write(daemon, run, "one", rows("two")), write(daemon, run, "other", rows("two")))
    assert one.transaction is not None
    assert other.transaction is not None
    assert await read_committed_topic(daemon.bootstrap, "two", PARTITIONS) == []
    assert await has_open_transactions(daemon.bootstrap, "two", PARTITIONS)
    await commit(daemon, files, run, other.transaction)
    assert await values(daemon, "two") == [b"%04d" % number for number in range(RECORDS)]


async def test_an_attempt_that_outlives_its_driver_leaves_nothing(daemon: Daemon, tmp_path: Path) -> None:
    await create_topics(daemon.bootstrap, "late", partitions=PARTITIONS)
    files, run = await begin(daemon, tmp_path, "r")
    with pytest.raises(ClientError):  # its producer is fenced
        await write(daemon, run, "half", rows("late", RECORDS // 2, lambda: driver(daemon, files)))
    assert await values(daemon, "late") == []
    with pytest.raises(PipelineError, match="the driver has ended this run"):
        await write(daemon, run, "after", rows("late"))
    assert await values(daemon, "late") == []


async def test_a_broker_killed_between_the_decision_and_the_commit_commits_after_its_restart(tmp_path: Path) -> None:
    with start_daemon(tmp_path / "broker", "transaction.two.phase.commit.enable=true") as own:
        await create_topics(own.bootstrap, "killed", partitions=PARTITIONS)
        files, run = await begin(own, tmp_path / "checkpoint", "r")
        prepared = await write(own, run, "one", rows("killed"))
        lost = await write(own, run, "lost", rows("killed"))
        assert prepared.transaction is not None
        assert lost.transaction is not None
        outcome = Commit(WrittenBatch(0, "q", prepared.cluster), (prepared.transaction,))
        assert run.decide(outcome) == outcome
        own.restart(clean=False)
        assert await has_open_transactions(own.bootstrap, "killed", PARTITIONS)
        async with PreparedTransactions(config(own)) as ending:
            await recover(files, ending)
        assert await values(own, "killed") == [b"%04d" % number for number in range(RECORDS)]
        assert files.runs() == []


async def test_a_transaction_that_timed_out_before_the_decision_is_noticed(tmp_path: Path) -> None:
    with start_daemon(tmp_path / "broker", "transaction.abort.timed.out.transaction.cleanup.interval.ms=50") as own:
        await create_topics(own.bootstrap, "slow", partitions=PARTITIONS)
        files, run = await begin(own, tmp_path / "checkpoint", "r")
        attempt = register_attempt(run, 0, "one", "one", None)
        prepared = await write_prepared(config(own), 1000, rows("slow"), attempt, run)
        assert prepared.transaction is not None
        while await has_open_transactions(own.bootstrap, "slow", PARTITIONS):
            await asyncio.sleep(0.05)
        with pytest.raises(PipelineError, match="the micro-batch is not committed, start the query again"):
            await commit(own, files, run, prepared.transaction)
        assert run.is_open()
        assert await values(own, "slow") == []
