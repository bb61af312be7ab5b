"""The features that every client with transactions is tested for.

The outcome of each transaction is read from the segment files: batches, and the control batch that ends them.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from typing import Self

from confluent_kafka import Consumer, Producer, TopicPartition

from tests.interop.clients.driver import Driver, DriverError, Unsupported
from tests.interop.clients.features import Check, Feature, Trial
from tests.support.eventually import eventually
from tests.support.storage.committed_records import committed_records

PARTITIONS = 2
TIMEOUT_S = 30.0
# Twice the session timeout of the consumer protocol (45 s): a transformer that fails and begins again without a
# goodbye waits for it.
_TRANSFORM_TIMEOUT_S = 120.0
_FENCED = re.compile(r"fenced|epoch|\b90\b", re.IGNORECASE)  # sarama has no text for PRODUCER_FENCED (90)
_PACE_S = 0.001


class Instance:
    """A transactional producer of the client under test; a second one with the same id fences the first."""

    def __init__(self, driver: Driver, name: str, transactional_id: str) -> None:
        self._driver = driver
        self._name = name
        self._call("txn_open", transactional_id=transactional_id)

    def send(self, topic: str, *values: str, partition: int = 0) -> None:
        """Produce the values and wait for their acknowledgement; begin a transaction if none is open."""
        self._call("txn_send", topic=topic, partition=partition, values=list(values))

    def send_offset(self, group: str, topic: str, offset: int) -> None:
        """Commit an offset of partition 0 in the transaction."""
        self._call("txn_offsets", group=group, topic=topic, partition=0, offset=offset)

    def commit(self) -> None:
        """Commit the transaction."""
        self._call("txn_end", commit=True)

    def abort(self) -> None:
        """Abort the transaction."""
        self._call("txn_end", commit=False)

    def close(self) -> None:
        """Close the producer."""
        self._call("txn_close")

    def _call(self, operation: str, **fields: object) -> None:
        self._driver.call(operation, name=self._name, **fields)


@contextmanager
def instance_of(trial: Trial, name: str = "first") -> Iterator[Instance]:
    """Open a producer with a transactional id for this trial, and close it if the block succeeds."""
    found = Instance(trial.driver, name, f"id-{trial.topic}")
    yield found
    found.close()


def committed(trial: Trial, topic: str, partition: int = 0) -> list[str]:
    """Return the committed values in the segment files."""
    records = committed_records(trial.target.log_directory, topic, partition)
    return [(record.value or b"").decode() for record in records]


def read(trial: Trial, count: int, *, is_committed: bool = True, partition: int = 0) -> list[str]:
    """Read `count` values with the client itself, and those that arrive shortly after."""
    fields = {"topic": trial.topic, "partition": partition, "committed": is_committed, "count": count}
    values: list[str] = trial.driver.call("read_values", **fields)["values"]
    return values


def committed_offset(trial: Trial, group: str) -> int:
    """Return the group's committed offset of partition 0, without pending ones; negative if there is none."""
    settings = {"bootstrap.servers": trial.target.bootstrap, "group.id": group, "isolation.level": "read_uncommitted"}
    consumer = Consumer(settings)
    (found,) = consumer.committed([TopicPartition(trial.topic, 0)], TIMEOUT_S)
    consumer.close()
    offset: int = found.offset
    return offset


def a_commit_shows_all(trial: Trial) -> None:
    """Records in two partitions are hidden from read_committed until the commit, and visible together after it."""
    trial.create(PARTITIONS)
    with instance_of(trial) as producer:
        for partition in range(PARTITIONS):
            producer.send(trial.topic, "a", "b", partition=partition)
        assert all(batch.is_transactional for batch, _ in trial.stored())
        assert read(trial, 2, is_committed=False) == ["a", "b"]
        assert read(trial, 0) == []
        producer.commit()
        for partition in range(PARTITIONS):
            assert read(trial, 2, partition=partition) == ["a", "b"]
            assert committed(trial, trial.topic, partition) == ["a", "b"]
        producer.send(trial.topic, "c")
        producer.commit()
    assert read(trial, 3) == ["a", "b", "c"]


def an_abort_hides_all(trial: Trial) -> None:
    """Aborted records are never read by read_committed; the next transaction of the same producer is."""
    trial.create(PARTITIONS)
    with instance_of(trial) as producer:
        for partition in range(PARTITIONS):
            producer.send(trial.topic, "aborted", partition=partition)
        producer.abort()
        for partition in range(PARTITIONS):
            producer.send(trial.topic, "committed", partition=partition)
        producer.commit()
    for partition in range(PARTITIONS):
        assert read(trial, 1, partition=partition) == ["committed"]
        assert read(trial, 2, partition=partition, is_committed=False) == ["aborted", "committed"]
        assert committed(trial, trial.topic, partition) == ["committed"]


def a_second_instance_fences_the_first(trial: Trial) -> None:
    """The first instance's open transaction is aborted, and its commit fails with an error that names the reason."""
    trial.create()
    first = Instance(trial.driver, "first", f"id-{trial.topic}")
    first.send(trial.topic, "first")
    with instance_of(trial, "second") as second:
        error = ""
        try:
            first.commit()
        except DriverError as raised:
            error = str(raised)
        assert _FENCED.search(error.partition("\n")[0]), error or "the commit of the fenced producer succeeded"
        second.send(trial.topic, "second")
        second.commit()
    first.close()
    assert read(trial, 1) == committed(trial, trial.topic) == ["second"]


def offsets_are_part_of_the_transaction(trial: Trial) -> None:
    """A group's offset is committed by the commit, and not by an abort."""
    trial.create()
    group = f"group-{trial.topic}"
    with instance_of(trial) as producer:
        producer.send(trial.topic, "aborted")
        producer.send_offset(group, trial.topic, 3)
        assert committed_offset(trial, group) < 0
        producer.abort()
        producer.send(trial.topic, "committed")
        producer.send_offset(group, trial.topic, 5)
        assert committed_offset(trial, group) < 0
        producer.commit()
    # Kafka answers a commit before it writes the markers.
    eventually(lambda: committed_offset(trial, group) == 5 or None, what="offset 5", timeout_s=TIMEOUT_S)
    assert committed(trial, trial.topic) == ["committed"]


class Feeder:
    """Produces numbers to the partitions of a topic in turn, on a thread, while the context is open."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.values: list[list[str]] = [[] for _ in range(PARTITIONS)]
        self._topic = topic
        self._stopping = threading.Event()
        settings = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "reconnect.backoff.max.ms": 200}
        self._producer = Producer(settings)
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Produce no more, and wait until all records are acknowledged."""
        self._stopping.set()
        self._thread.join(TIMEOUT_S)
        assert self._producer.flush(TIMEOUT_S) == 0

    def _run(self) -> None:
        number = 0
        while not self._stopping.wait(_PACE_S):
            partition = number % PARTITIONS
            self._producer.produce(self._topic, str(number), partition=partition)
            self.values[partition].append(str(number))
            self._producer.poll(0)
            number += 1


def consume_transform_produce(trial: Trial) -> None:
    """The broker is killed twice and the client once, with kill -9; each record is in the output exactly once."""
    transform_through_restarts(trial, "classic", kills_client=True)


def a_group_that_the_broker_assigns(trial: Trial) -> None:
    """The same in a group of the consumer protocol, whose member epochs TxnOffsetCommit checks.

    The client is not killed: its successor would wait 45 s, the broker's session timeout, for the partitions.
    """
    if "consumer" not in trial.driver.limits.assignors:
        raise Unsupported("it does not have the newer protocol")
    transform_through_restarts(trial, "consumer", kills_client=False)


def transform_through_restarts(trial: Trial, protocol: str, *, kills_client: bool) -> None:
    """Consume, transform and produce while the target restarts twice; each record is in the output exactly once."""
    assert trial.start is not None
    output = f"{trial.topic}-output"
    trial.create(PARTITIONS)
    trial.target.create_topic(output, PARTITIONS)
    names = {
        "output": output,
        "group": f"group-{trial.topic}",
        "transactional_id": f"id-{trial.topic}",
        "protocol": protocol,
    }

    def is_complete() -> bool | None:
        return [committed(trial, output, partition) for partition in range(PARTITIONS)] == feeder.values or None

    with ExitStack() as stack, Feeder(trial.target.bootstrap, trial.topic) as feeder:
        client = stack.enter_context(closing(trial.start()))
        run = client.transform(trial.topic, **names)
        run.wait_for_progress()
        trial.target.restart()
        run.wait_for_progress()
        if kills_client:
            client.kill()
            client = stack.enter_context(closing(trial.start()))
            run = client.transform(trial.topic, **names)
            run.wait_for_progress()
        trial.target.restart()
        run.wait_for_progress()
        feeder.stop()
        eventually(is_complete, what="every record in the output, once and in order", timeout_s=_TRANSFORM_TIMEOUT_S)
        run.finish()
    assert is_complete()


_CHECKS: dict[str, Check] = {
    "transactions: a commit shows all of its records": a_commit_shows_all,
    "transactions: an abort hides all of its records": an_abort_hides_all,
    "transactions: a second instance fences the first": a_second_instance_fences_the_first,
    "transactions: offsets are committed with the records": offsets_are_part_of_the_transaction,
    "transactions: consume, transform, produce; client and broker killed, exactly once": consume_transform_produce,
    "transactions: the same in a group of the newer protocol (KIP-848), broker killed": a_group_that_the_broker_assigns,
}

TRANSACTION_FEATURES = [Feature(check.__name__.replace("_", "-"), title, check) for title, check in _CHECKS.items()]
