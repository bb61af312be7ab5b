"""Apache Kafka and Barnabas take turns on one directory: Kafka, Barnabas, Kafka, Barnabas, Kafka.

In each turn a client produces (plain and idempotent, every codec), a group continues from its offsets, topics are
created, altered and deleted, records are deleted, a topic is compacted. At the end of a turn the state visible to
clients is recorded, and the next broker must show the same: stored batches byte for byte, offsets, log start offsets,
configs, topic ids, the group's offsets.
"""

from __future__ import annotations

import itertools
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from tests.support.compacted_topic import active_base, clean_offset
from tests.support.free_ports import free_port
from tests.support.kafka.apache_kafka import need_kafka
from tests.support.kafka.turns import Address, BarnabasTurns, KafkaTurns, Program, observe

pytestmark = pytest.mark.timeout(300)
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
VERSIONS = ("3.9.1", "4.3.0")
BY_HAND = os.environ.get("BARNABAS_INTEROP_TURNS", "").split()
"""Further versions, one and a half minutes each: BARNABAS_INTEROP_TURNS="3.7.2 3.8.1 4.0.0 4.2.0"."""
GROUP = "workers"
WAIT_S = 60.0
RECORDS_PER_PRODUCER = 12
ORDERS_PARTITIONS = 3
COMPACTED_RECORDS = 300


class Turns:
    """A client's actions in each turn; `work` and `go_on` raise if the broker misbehaves."""

    def __init__(self, log_dirs: Sequence[Path], version: str) -> None:
        self._log_dirs = log_dirs
        self._small = "segment.bytes" if version < "4.1" else "internal.segment.bytes"
        self._turn = 0
        self.written: list[tuple[int, int]] = []
        """(partition, offset) of every acknowledged record in `orders`."""
        self.consumed: set[tuple[int, int]] = set()
        """(partition, offset) of every record that the group has read and committed."""

    def prepare(self, address: Address) -> None:
        """Create the topics of the first turn."""
        keep = {"retention.ms": "-1"}
        compact = {"cleanup.policy": "compact", self._small: "16384", "min.cleanable.dirty.ratio": "0.01"}
        topics = [
            NewTopic("orders", ORDERS_PARTITIONS, 1, config={**keep, "segment.bytes": "1048576"}),
            NewTopic("trimmed", 1, 1, config=keep),
            NewTopic("last.values", 1, 1, config=compact),
        ]
        # Bound to a name, because a garbage-collected client fails its pending calls.
        admin = AdminClient({"bootstrap.servers": address.bootstrap})
        self._done(admin.create_topics(topics))
        self._await_directories("orders-0", "orders-1", "orders-2", "trimmed-0", "last.values-0")

    def work(self, address: Address) -> None:
        """Make one turn's changes."""
        self._turn += 1
        for codec, idempotent in itertools.product(CODECS, (False, True)):
            self._produce(address, codec, idempotent=idempotent)
        self._consume_in_group(address)
        self._change_topics(address)
        self._trim(address)
        self._compact(address)

    def _produce(self, address: Address, codec: str, *, idempotent: bool) -> None:
        producer = Producer(
            {
                "bootstrap.servers": address.bootstrap,
                "compression.type": codec,
                "enable.idempotence": idempotent,
                "linger.ms": 20,
            }
        )
        for number in range(RECORDS_PER_PRODUCER):
            producer.produce(
                "orders",
                f"{self._turn}-{codec}-{idempotent}-{number}".encode() * 20,
                None if number % 5 == 0 else f"k{number}".encode(),
                number % ORDERS_PARTITIONS,
                on_delivery=self._note,
                headers=[("codec", codec.encode()), ("none", None)] if number % 3 == 0 else None,
            )
        assert producer.flush(WAIT_S) == 0

    def _note(self, error: object, message: Message) -> None:
        assert error is None, error
        self.written.append((int(message.partition() or 0), int(message.offset() or 0)))

    def _consume_in_group(self, address: Address) -> None:
        due = set(self.written) - self.consumed
        consumer = Consumer(
            {
                "bootstrap.servers": address.bootstrap,
                "group.id": GROUP,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
            }
        )
        consumer.subscribe(["orders"])
        try:
            for message in polled(consumer, len(due)):
                where = (message.partition(), message.offset())
                assert where in due, f"{where} was committed in an earlier turn, or twice in this one"
                due.remove(where)
            consumer.commit(asynchronous=False)
        finally:
            consumer.close()
        assert not due
        self.consumed = set(self.written)

    def _change_topics(self, address: Address) -> None:
        admin = AdminClient({"bootstrap.servers": address.bootstrap})
        made = [f"made-in-turn-{self._turn}", f"short-lived-{self._turn}"]
        self._done(admin.create_topics([NewTopic(name, 2, 1) for name in made]))
        self._await_directories(*(f"{name}-{number}" for name in made for number in range(2)))
        producer = Producer({"bootstrap.servers": address.bootstrap})
        for name in made:
            producer.produce(name, f"first of {name}".encode(), partition=1)
        assert producer.flush(WAIT_S) == 0
        gone = [made[1]] if self._turn == 1 else [made[1], f"made-in-turn-{self._turn - 1}"]
        self._done(admin.delete_topics(gone))
        retention = ConfigEntry(
            "retention.bytes", str(10**12 + self._turn), incremental_operation=AlterConfigOpType.SET
        )
        resource = ConfigResource(ResourceType.TOPIC, "orders", incremental_configs=[retention])
        self._done(admin.incremental_alter_configs([resource]))

    def _trim(self, address: Address) -> None:
        producer = Producer({"bootstrap.servers": address.bootstrap})
        for number in range(10):
            producer.produce("trimmed", f"{self._turn}-{number}".encode(), partition=0)
            assert producer.flush(WAIT_S) == 0  # one record per batch, so that the log start can be between them
        admin = AdminClient({"bootstrap.servers": address.bootstrap})
        start = 10 * self._turn - 4
        self._done(admin.delete_records([TopicPartition("trimmed", 0, start)]))
        await_true(
            lambda: any(
                f"trimmed 0 {start}" in (each / "log-start-offset-checkpoint").read_text().splitlines()
                for each in self._log_dirs
                if (each / "log-start-offset-checkpoint").exists()
            ),
            f"the start offset {start} in a checkpoint",
        )

    def _compact(self, address: Address) -> None:
        producer = Producer({"bootstrap.servers": address.bootstrap, "linger.ms": 5})
        for number in range(COMPACTED_RECORDS):
            producer.produce("last.values", f"{self._turn}-{number}".encode() * 30, f"k{number % 20}".encode(), 0)
            if number % 10 == 9:
                assert producer.flush(WAIT_S) == 0
        log_dir = next(each for each in self._log_dirs if (each / "last.values-0").is_dir())
        await_true(lambda: clean_offset(log_dir, "last.values") == active_base(log_dir, "last.values"), "clean records")

    def _await_directories(self, *names: str) -> None:
        """Wait for the directories; the controller answers a creation before the broker learns of it."""
        for name in names:
            await_true(partial(self._exists, name), name)

    def _exists(self, name: str) -> bool:
        return any((each / name).exists() for each in self._log_dirs)

    def _done(self, futures: Mapping[Any, Future[Any]]) -> None:
        for future in futures.values():
            future.result(WAIT_S)


def polled(consumer: Consumer, count: int) -> Iterator[Message]:
    """Yield the next `count` records, allowing some seconds for the group to form."""
    deadline = time.monotonic() + WAIT_S
    while count:
        message = consumer.poll(0.2)
        if message is None:
            assert time.monotonic() < deadline, f"{count} records did not come"
            continue
        assert message.error() is None, message.error()
        count -= 1
        yield message


def await_true(condition: Callable[[], bool], what: str) -> None:
    """Poll for a condition in another process."""
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline, f"there was no {what} within {WAIT_S} s"
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("version", "log_dirs", "end"),
    # Every pair of values occurs. All eight combinations passed once, in seven minutes.
    [
        *(("3.9.1", 1, "clean"), ("3.9.1", 2, "killed"), ("4.3.0", 2, "clean"), ("4.3.0", 1, "killed")),
        *((version, *how) for version in BY_HAND for how in ((1, "clean"), (2, "killed"))),
    ],
)
def test_what_one_program_leaves_the_next_one_shows_and_goes_on_with(
    tmp_path: Path, version: str, log_dirs: int, end: str
) -> None:
    need_kafka(version)
    directories = [tmp_path / f"disk-{number}" for number in range(log_dirs)]
    turns = Turns(directories, version)
    with ExitStack() as stack:
        kafka = stack.enter_context(KafkaTurns(version, directories, tmp_path / "kafka"))
        barnabas = stack.enter_context(BarnabasTurns(directories, tmp_path / "barnabas"))
        kafka.format()
        order: list[Program] = [kafka, barnabas, kafka, barnabas, kafka]
        turns.prepare(kafka.start())
        kafka.end(killed=False)
        before = None
        for program in order:
            address = program.start()
            if before is not None:
                assert observe(address, [GROUP], compacted=["last.values"]) == before
            turns.work(address)
            before = observe(address, [GROUP], compacted=["last.values"])
            assert sum(map(len, before.batches.values())) > 0
            program.end(killed=end == "killed")
    for directory in directories:
        shutil.rmtree(directory)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_idempotent_producer_that_lives_through_changes_of_program_loses_and_doubles_nothing(
    tmp_path: Path, version: str
) -> None:
    need_kafka(version)
    data, port = tmp_path / "data", free_port()
    with ExitStack() as stack:
        kafka = stack.enter_context(KafkaTurns(version, [data], tmp_path / "kafka", port=port))
        barnabas = stack.enter_context(BarnabasTurns([data], tmp_path / "barnabas", port=port))
        kafka.format()
        address = kafka.start()
        admin = AdminClient({"bootstrap.servers": address.bootstrap})
        admin.create_topics([NewTopic("numbers", 1, 1, config={"retention.ms": "-1"})])["numbers"].result(WAIT_S)
        producer = Producer(
            {
                "bootstrap.servers": address.bootstrap,
                "enable.idempotence": True,
                "linger.ms": 1,
                "delivery.timeout.ms": 200_000,
                "reconnect.backoff.max.ms": 200,
            }
        )
        failures: list[object] = []
        count = 0

        def send(records: int) -> None:
            nonlocal count
            for _ in range(records):
                producer.produce(
                    "numbers",
                    str(count).encode(),
                    partition=0,
                    on_delivery=lambda error, _: failures.append(error) if error is not None else None,
                )
                producer.poll(0)
                count += 1

        for program, killed in ((kafka, False), (barnabas, True), (kafka, True), (barnabas, False)):
            send(500)
            assert producer.flush(WAIT_S) == 0
            send(300)  # some of these are in flight when the broker ends, the others wait for the next broker
            program.end(killed=killed)
            send(200)
            (barnabas if program is kafka else kafka).start()
            assert producer.flush(WAIT_S) == 0
            assert not failures
        address = Address("127.0.0.1", port)
        consumer = Consumer({"bootstrap.servers": address.bootstrap, "group.id": "r", "enable.auto.commit": False})
        consumer.assign([TopicPartition("numbers", 0, 0)])
        values = [int(message.value() or b"") for message in polled(consumer, count)]
        assert consumer.poll(0.5) is None
        consumer.close()
        assert values == list(range(count))
