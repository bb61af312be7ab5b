"""`exactlyOnce=transactions` with protocol=kafka, from options to committed rows, against a Barnabas broker."""

from __future__ import annotations

import asyncio
import gc
import pickle
import uuid
from collections.abc import Callable, Coroutine, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pytest
from confluent_kafka import Producer

from barnabas.clients.errors import PreparedTransactionLostError
from barnabas.clients.producer.partitioner import partition_for_key
from barnabas.clients.producer.prepared import PreparedTransaction
from barnabas.pipeline.errors import OptionError, PipelineError, SourceError, WriteNotBegunError
from barnabas.pipeline.sink.decisions import commit_run, recover
from barnabas.pipeline.sink.kafka.attempt import write_prepared
from barnabas.pipeline.sink.kafka.transactions import KafkaTransactions
from barnabas.pipeline.sink.options import SinkOptions, sink_options
from barnabas.pipeline.sink.rows import SinkRecord
from barnabas.pipeline.sink.run_files import Commit, RunFiles, TransactionFiles, WrittenBatch
from barnabas.pipeline.sink.transactional_task import Attempt, Prepared
from barnabas.pipeline.sink.transactional_write import TransactionalWrite, TransactionCommit
from barnabas.protocol.errors import ErrorCode
from tests.support.daemon import Daemon, start_daemon
from tests.support.topics import create_topics, has_open_transactions, read_committed_topic

PARTITIONS = 3
QUERY = "q"

T = TypeVar("T")


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with start_daemon(tmp_path_factory.mktemp("broker"), "log.initial.task.delay.ms=0") as running:
        yield running


@pytest.fixture
def topic(daemon: Daemon) -> str:
    name = f"topic-{uuid.uuid4().hex}"
    asyncio.run(create_topics(daemon.bootstrap, name, partitions=PARTITIONS))
    return name


def options_of(daemon: Daemon, topic: str, checkpoint: Path, **more: str) -> SinkOptions:
    given = {"kafka.bootstrap.servers": daemon.bootstrap, "topic": topic, "checkpointLocation": str(checkpoint)}
    return sink_options(given | {"exactlyOnce": "transactions", "protocol": "kafka"} | more, streaming=True)


def begun(options: SinkOptions) -> TransactionalWrite:
    """Begin a write on the driver, and return it as its tasks receive it."""
    write = TransactionalWrite(options)
    write.begin()
    received: TransactionalWrite = pickle.loads(pickle.dumps(write))
    return received


def write_task(write: TransactionalWrite, *values: str, batch: int = 0) -> TransactionCommit:
    return write.write(iter([pa.RecordBatch.from_pydict({"value": list(values)})]), batch, QUERY)


def values_of(daemon: Daemon, topic: str) -> list[str]:
    records = asyncio.run(read_committed_topic(daemon.bootstrap, topic, PARTITIONS))
    return sorted((each.value or b"").decode() for each in records)


def is_held_back(daemon: Daemon, topic: str) -> bool:
    return asyncio.run(has_open_transactions(daemon.bootstrap, topic, PARTITIONS))


def with_transactions(options: SinkOptions, work: Callable[[KafkaTransactions], Coroutine[Any, Any, T]]) -> T:
    async def run() -> T:
        async with KafkaTransactions(options.producer) as transactions:
            return await work(transactions)

    return asyncio.run(run())


def prepared_of(
    options: SinkOptions, records: Iterable[SinkRecord], name: str, run: RunFiles | None = None
) -> Prepared:
    return write_prepared(options.producer, 60_000, records, Attempt(0, name), run)


def record(topic: str, value: bytes, timestamp_ms: int | None = None) -> SinkRecord:
    return SinkRecord(topic, None, value, [], 0, timestamp_ms)


def test_records_are_written_as_the_rows_give_them(daemon: Daemon, topic: str, tmp_path: Path) -> None:
    free = [each for each in range(PARTITIONS) if each != partition_for_key(b"key", PARTITIONS)]
    records = [
        SinkRecord(topic, b"key", b"value", [("a", b"1"), ("a", None)], None, 1_700_000_000_000),
        SinkRecord(topic, b"", b"", [], free[0], -5),
        SinkRecord(topic, None, None, [], free[1], None),
    ]
    options = options_of(daemon, topic, tmp_path)
    prepared = prepared_of(options, records, f"{topic}-id")
    gc.collect()
    assert prepared.sent == 3
    assert values_of(daemon, topic) == []
    assert is_held_back(daemon, topic)  # released, the producer left its transaction open
    transaction = prepared.transaction
    assert transaction is not None

    async def commit_twice(transactions: KafkaTransactions) -> None:
        assert transactions.cluster_id == prepared.cluster != ""
        await transactions.ensure_open([transaction])
        await transactions.commit(transaction)
        await transactions.commit(transaction)  # by the next driver, which cannot know
        with pytest.raises(PreparedTransactionLostError):
            await transactions.ensure_open([transaction])

    with_transactions(options, commit_twice)
    found = {each.partition: each for each in asyncio.run(read_committed_topic(daemon.bootstrap, topic, PARTITIONS))}
    keyed = found[partition_for_key(b"key", PARTITIONS)]
    assert keyed[4:] == (0, b"key", b"value", (("a", b"1"), ("a", None)))
    assert keyed.timestamp == 1_700_000_000_000
    assert (found[free[0]].key, found[free[0]].value, found[free[0]].timestamp) == (b"", b"", -5)
    assert (found[free[1]].key, found[free[1]].value) == (None, None)


def test_keys_go_to_the_partitions_of_javas_producer(daemon: Daemon, topic: str, tmp_path: Path) -> None:
    options = options_of(daemon, topic, tmp_path)
    keys = [b"%d" % number for number in range(50)]
    prepared = prepared_of(options, [SinkRecord(topic, key, b"", [], None, None) for key in keys], f"{topic}-id")
    transaction = prepared.transaction
    assert transaction is not None
    with_transactions(options, lambda transactions: transactions.commit(transaction))
    found = asyncio.run(read_committed_topic(daemon.bootstrap, topic, PARTITIONS))
    assert {each.key: each.partition for each in found} == {key: partition_for_key(key, PARTITIONS) for key in keys}


def test_micro_batches_are_committed_and_reuse_the_ids_of_their_tasks(
    daemon: Daemon, topic: str, tmp_path: Path
) -> None:
    options = options_of(daemon, topic, tmp_path)
    ids = set()
    for batch in range(3):
        write = begun(options)
        commits = [write_task(write, f"{batch}-{number}", batch=batch) for number in range(2)]
        TransactionalWrite(options).commit(commits[:1] if batch == 1 else commits[1:], batch)
        ids |= {each.free_id for each in commits}
    assert values_of(daemon, topic) == ["0-1", "1-0", "2-1"]  # task 0 each time; the other attempt was not chosen
    assert not is_held_back(daemon, topic)
    assert len(ids) == 4  # one reused, one new for each attempt beside it


def test_a_decided_micro_batch_is_committed_by_the_next_driver_and_not_written_again(
    daemon: Daemon, topic: str, tmp_path: Path
) -> None:
    options = options_of(daemon, topic, tmp_path)
    commit = write_task(begun(options), "decided")
    assert commit.transaction is not None
    cluster = with_transactions(options, lambda transactions: _cluster_of(transactions))
    files = TransactionFiles(str(tmp_path))
    files.run(commit.run).decide(Commit(WrittenBatch(0, QUERY, cluster), (commit.transaction,)))
    undecided = write_task(begun(options), "undecided", batch=1)  # a new driver: it recovers first
    assert values_of(daemon, topic) == ["decided"]
    replayed = begun(options)
    assert not is_held_back(daemon, topic)
    assert write_task(replayed, "replayed").already_there == 1
    assert undecided.sent == 1
    assert values_of(daemon, topic) == ["decided"]
    assert not is_held_back(daemon, topic)


async def _cluster_of(transactions: KafkaTransactions) -> str:
    return transactions.cluster_id


def test_a_producer_that_the_driver_has_fenced_writes_no_more(daemon: Daemon, topic: str, tmp_path: Path) -> None:
    options = options_of(daemon, topic, tmp_path)

    def rows() -> Iterator[SinkRecord]:
        yield from (record(topic, b"%d" % number) for number in range(10))
        with_transactions(options, lambda transactions: transactions.abort(f"{topic}-id"))
        yield from (record(topic, b"%d" % number) for number in range(2000))

    before = librdkafka_producers()
    with pytest.raises(PipelineError):
        prepared_of(options, rows(), f"{topic}-id")
    assert librdkafka_producers() <= before  # else it would connect to the broker's address for ever
    assert not is_held_back(daemon, topic)
    assert values_of(daemon, topic) == []


def librdkafka_producers() -> int:
    """Return how many of them this process has: each has a main thread."""
    names = [path.read_text() for path in Path("/proc/self/task").glob("*/comm")]
    return sum(name.startswith("rdk:main") for name in names)


def test_a_failing_task_aborts_its_transaction(daemon: Daemon, topic: str, tmp_path: Path) -> None:
    options = options_of(daemon, topic, tmp_path)

    def rows() -> Iterator[SinkRecord]:
        yield record(topic, b"first")
        raise RuntimeError("of the query")

    with pytest.raises(RuntimeError, match="of the query"):
        prepared_of(options, rows(), f"{topic}-id")
    with pytest.raises(PipelineError, match="timestamp is 1970-01-01"):
        prepared_of(options, [record(topic, b"first"), record(topic, b"second", 0)], f"{topic}-id")
    with pytest.raises(SourceError, match="a record was not delivered"):
        prepared_of(options, [record(topic, b"first"), SinkRecord(topic, None, b"", [], 99, None)], f"{topic}-id")
    assert not is_held_back(daemon, topic)
    assert values_of(daemon, topic) == []


def test_an_attempt_of_a_decided_run_writes_nothing(daemon: Daemon, topic: str, tmp_path: Path) -> None:
    options = options_of(daemon, topic, tmp_path)
    run = TransactionFiles(str(tmp_path)).run("r")  # it never began
    with pytest.raises(PipelineError, match="the driver has ended this run"):
        prepared_of(options, [record(topic, b"late")], f"{topic}-id", run)
    assert not is_held_back(daemon, topic)


@pytest.mark.parametrize("decided", [False, True])
def test_a_transaction_that_timed_out_is_refused_before_the_decision_and_fatal_after_it(
    daemon: Daemon, topic: str, tmp_path: Path, decided: bool
) -> None:
    options = options_of(daemon, topic, tmp_path)
    files = TransactionFiles(str(tmp_path))
    prepared = prepared_of(options, [record(topic, b"late")], f"{topic}-id")
    lost = prepared.transaction
    assert lost is not None
    with_transactions(options, lambda transactions: transactions.abort(lost.transactional_id))  # as the timeout does
    run = files.run("r")
    run.begin(prepared.cluster)
    run.register(0, "a", lost.transactional_id)
    commit = Commit(WrittenBatch(0, QUERY, prepared.cluster), (lost,))
    if decided:
        run.decide(commit)
        with pytest.raises(PipelineError, match=r"cannot be committed any more.*rows of a micro-batch are missing"):
            with_transactions(options, lambda transactions: recover(files, transactions))
    else:
        with pytest.raises(PipelineError, match=r"cannot be committed any more.*start the query again to repeat"):
            with_transactions(options, lambda transactions: commit_run(files, run, commit, transactions))
        with_transactions(options, lambda transactions: recover(files, transactions))
        assert files.runs() == []
    assert values_of(daemon, topic) == []


def test_an_unknown_transactional_id_has_no_transaction(daemon: Daemon, tmp_path: Path) -> None:
    options = options_of(daemon, "t", tmp_path)
    unknown = PreparedTransaction("never-used", 1, 0)
    for work in (
        lambda transactions: transactions.ensure_open([unknown]),
        lambda transactions: transactions.commit(unknown),
        lambda transactions: transactions.prepared("never-used"),
    ):
        with pytest.raises(PreparedTransactionLostError) as error:
            with_transactions(options, work)
        assert error.value.code in (ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, ErrorCode.INVALID_PRODUCER_ID_MAPPING)


def test_a_timeout_above_the_brokers_limit_names_both(daemon: Daemon, topic: str, tmp_path: Path) -> None:
    options = options_of(daemon, topic, tmp_path, **{"kafka.transaction.timeout.ms": "900001"})
    with pytest.raises(OptionError, match=r"kafka\.transaction\.timeout\.ms=900001 is above .*max\.timeout\.ms"):
        write_task(begun(options), "row")


def test_options_that_exclude_each_other(daemon: Daemon, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"protocol=kafka needs exactlyOnce=transactions"):
        sink_options({"kafka.bootstrap.servers": "h:1", "protocol": "kafka"}, streaming=False)
    with pytest.raises(OptionError, match=r"option protocol must be native or kafka"):
        options_of(daemon, "t", tmp_path, protocol="tls")
    with pytest.raises(OptionError, match=r"kafka\.transaction\.timeout\.ms must be a whole number between 1000"):
        options_of(daemon, "t", tmp_path, **{"kafka.transaction.timeout.ms": "999"})
    assert options_of(daemon, "t", tmp_path).transaction_timeout_ms == 900_000


def test_a_closed_port_is_named(tmp_path: Path, daemon: Daemon) -> None:
    options = options_of(daemon, "t", tmp_path, **{"kafka.bootstrap.servers": "127.0.0.1:1"})
    object.__setattr__(options.producer, "api_timeout_ms", 300)
    with pytest.raises(WriteNotBegunError, match=r"127\.0\.0\.1:1"):
        TransactionalWrite(options).begin()


def test_a_released_producer_leaves_its_transaction_open_and_a_closed_one_aborts_it(
    daemon: Daemon, topic: str, tmp_path: Path
) -> None:
    """What write_prepared relies on in librdkafka."""
    producer = Producer({"bootstrap.servers": daemon.bootstrap, "transactional.id": f"{topic}-id"})
    producer.init_transactions(10)
    producer.begin_transaction()
    producer.produce(topic, b"row")
    assert producer.flush(10) == 0
    assert is_held_back(daemon, topic)
    producer.close()
    assert not is_held_back(daemon, topic)


def test_a_missing_package_is_named(
    daemon: Daemon, topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.pipeline.sink.target.find_spec", lambda name: None)
    with pytest.raises(OptionError, match="needs the package confluent-kafka on every executor"):
        write_task(begun(options_of(daemon, topic, tmp_path)), "row")
