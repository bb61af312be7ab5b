"""librdkafka: consume-transform-produce, in groups of both protocols. A thread."""

from __future__ import annotations

import contextlib
import time
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

from tests.torture.soak.checker import OUTPUT_PREFIX
from tests.torture.soak.history import COMMITTED, Commit, Transaction
from tests.torture.soak.load.librdkafka import QUIET, TIMEOUT_S
from tests.torture.soak.load.stage import PARTITIONS, Stage
from tests.torture.soak.load.threads import run_in_thread

_BATCH = 200


class LibrdkafkaPipe:
    """Consume-transform-produce with a group's offsets in the transaction; leaves, and comes back.

    After an error it opens both clients anew, the producer first, which ends the open transaction.
    """

    def __init__(self, stage: Stage, name: str) -> None:
        self._stage = stage
        self._name = f"{name}-{stage.seed}"
        self._group = f"{self._name}-{stage.number}"
        self._output = stage.topic(name)
        self._number = 0
        self._generation: Any = None
        """The group's metadata as of the assignment: that of a commit may be of a later generation."""
        stage.transactional_ids.add(self._name)
        stage.groups.add(self._group)
        stage.pipes[self._name] = self._output

    async def run(self) -> None:
        """Process until the stage's readers end and all input has been processed."""
        await run_in_thread(self._run)

    def _run(self) -> None:
        stage = self._stage
        chance = stage.chance(self._name)
        common = {**QUIET, "bootstrap.servers": stage.torn_bootstrap}
        done = False
        while not done and not stage.over.is_set():
            try:
                producer = Producer({**common, "transactional.id": self._name, "linger.ms": 0})
                producer.init_transactions(TIMEOUT_S)
                consumer = Consumer(
                    {
                        **common,
                        "group.id": self._group,
                        **({"group.protocol": "consumer"} if stage.number % 2 else {"session.timeout.ms": 10_000}),
                        "enable.auto.commit": False,
                        "auto.offset.reset": "earliest",
                        "isolation.level": "read_committed",
                    }
                )
                try:
                    done = self._process(producer, consumer, batches=chance.choice((5, 30, 1000)))
                finally:
                    with contextlib.suppress(KafkaException):
                        consumer.close()
            except KafkaException as error:
                stage.note_error(self._name, error)
                time.sleep(0.2)

    def _process(self, producer: Producer, consumer: Consumer, batches: int) -> bool:
        """Process some batches; return whether nothing is left."""
        stage = self._stage

        def assigned(of: Consumer, _partitions: object) -> None:
            self._generation = of.consumer_group_metadata()

        consumer.subscribe([stage.plain], on_assign=assigned, on_revoke=lambda *_: None)
        while batches and not stage.over.is_set():
            ends = stage.readers_end.is_set()
            messages = [each for each in consumer.consume(_BATCH, 0.1) if each.error() is None]
            if messages:
                batches -= 1
                self._transact(producer, messages)
            elif ends and self._is_done(consumer):
                return True
        return False

    def _transact(self, producer: Producer, messages: list[Message]) -> None:
        history = self._stage.history
        self._number += 1
        transaction = Transaction(f"{self._name}/{self._stage.number}/{self._number}", history.tick())
        history.transactions.append(transaction)
        offsets: dict[int, int] = {}
        producer.begin_transaction()
        for each in messages:
            partition, offset, read = each.partition(), each.offset(), bytes(each.value() or b"")
            assert partition is not None
            assert offset is not None
            offsets[partition] = offset + 1
            value = OUTPUT_PREFIX + read
            transaction.reads.append(read)
            transaction.writes.append(((self._output, partition), value))
            producer.produce(self._output, value, partition=partition)
        source = self._stage.plain
        began = history.tick()
        sent = [TopicPartition(source, partition, offset) for partition, offset in offsets.items()]
        producer.send_offsets_to_transaction(sent, self._generation, TIMEOUT_S)
        transaction.ending = history.tick()
        producer.commit_transaction(TIMEOUT_S)
        transaction.outcome = COMMITTED
        transaction.ended = history.tick()
        self._stage.commits += 1
        history.commits += [
            Commit(self._group, (source, partition), offset, began, transaction.ended)
            for partition, offset in offsets.items()
        ]

    def _is_done(self, consumer: Consumer) -> bool:
        """Return whether this member has all partitions, and has read them to their ends."""
        places = [TopicPartition(self._stage.plain, number) for number in range(PARTITIONS)]
        if len(consumer.assignment()) < len(places):
            return False
        ends = [consumer.get_watermark_offsets(each, TIMEOUT_S, cached=False)[1] for each in places]
        committed = consumer.committed(places, TIMEOUT_S)
        at = [max(each.offset, left.offset) for each, left in zip(consumer.position(places), committed, strict=True)]
        return all(position >= end for position, end in zip(at, ends, strict=True))
