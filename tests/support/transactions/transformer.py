"""A consume-transform-produce loop in a process that tests can kill, on a client library.

    python -m tests.support.transactions.transformer LIBRARY BOOTSTRAP GROUP INPUT OUTPUT TRANSACTIONAL_ID

Writes each record of INPUT to the same partition of OUTPUT, in transactions that commit the group's offsets. Prints
`done <records>` after each commit. After an error it closes its clients and opens new ones, the producer first: that
ends the transaction which may be open. Processes of one group have different transactional ids; a process that takes
another one's partitions over fences nobody, so its consumer waits until the other's transaction has ended, and the
group's generation keeps the other from committing offsets of partitions that it lost.
"""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import suppress
from typing import Any

SESSION_MS = 1500
HEARTBEAT_MS = 200
TRANSACTION_TIMEOUT_MS = 20_000
CALL_TIMEOUT_S = 15.0
BATCH = 10
PAUSE_AFTER_ERROR_S = 0.1


def report(records: int) -> None:
    """Print the number of records of a committed transaction."""
    sys.stdout.write(f"done {records}\n")  # print() writes word by word with PYTHONUNBUFFERED: a kill may come between
    sys.stdout.flush()


def report_error(error: BaseException) -> None:
    """Print the error after which the clients are opened again."""
    print("error", repr(error), file=sys.stderr, flush=True)
    time.sleep(PAUSE_AFTER_ERROR_S)


def confluent(bootstrap: str, group: str, source: str, target: str, transactional_id: str) -> None:
    """Run on librdkafka."""
    membership = {"session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": HEARTBEAT_MS}
    _confluent(bootstrap, group, source, target, transactional_id, membership)


def confluent_consumer(bootstrap: str, group: str, source: str, target: str, transactional_id: str) -> None:
    """Run on librdkafka, in a group of the consumer protocol."""
    _confluent(bootstrap, group, source, target, transactional_id, {"group.protocol": "consumer"})


class _Membership:
    """The generation in which the partitions were assigned.

    With callbacks librdkafka rebalances inside of `consume` alone. Otherwise, or with the metadata of the moment of the
    commit, records of an earlier assignment would be committed in a later generation, and nothing would fence them:
    after a session timeout librdkafka even names no member, and the group does not check it.
    """

    def __init__(self) -> None:
        self.metadata: Any = None

    def changed(self, consumer: Any, _: object) -> None:
        """Keep the generation of an assignment."""
        self.metadata = consumer.consumer_group_metadata()


def _confluent(
    bootstrap: str, group: str, source: str, target: str, transactional_id: str, settings: dict[str, Any]
) -> None:
    from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

    common = {
        "bootstrap.servers": bootstrap,
        "reconnect.backoff.max.ms": 200,
        # librdkafka 2.16 loses all brokers at a broker's restart, bootstraps again, and then waits for ever in
        # send_offsets_to_transaction: it has the group's coordinator cached as a broker that it dropped.
        "metadata.recovery.strategy": "none",
    }

    def run() -> None:
        producer = Producer(
            {
                **common,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
                "linger.ms": 0,
            }
        )
        producer.init_transactions(CALL_TIMEOUT_S)
        consumer = Consumer(
            {
                **common,
                "group.id": group,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                **settings,
            }
        )
        membership = _Membership()
        try:
            consumer.subscribe([source], on_assign=membership.changed, on_revoke=lambda *_: None)
            while True:
                found: list[Any] = [each for each in consumer.consume(BATCH, 0.1) if each.error() is None]
                if not found:
                    continue
                producer.begin_transaction()
                for each in found:
                    producer.produce(target, each.value(), partition=each.partition())
                ends = {each.partition(): TopicPartition(source, each.partition(), each.offset() + 1) for each in found}
                producer.send_offsets_to_transaction(list(ends.values()), membership.metadata, CALL_TIMEOUT_S)
                producer.commit_transaction(CALL_TIMEOUT_S)
                report(len(found))
        finally:
            with suppress(KafkaException):
                consumer.close()

    while True:
        try:
            run()
        except KafkaException as error:
            report_error(error)


def barnabas(bootstrap: str, group: str, source: str, target: str, transactional_id: str) -> None:
    """Run on Barnabas' own client, over the native dialect."""
    from barnabas import ClientError, Consumer, ConsumerConfig, Producer, ProducerConfig

    async def run() -> None:
        sending = ProducerConfig(
            bootstrap=bootstrap,
            transactional_id=transactional_id,
            transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
            reconnect_backoff_max_ms=200,
        )
        reading = ConsumerConfig(
            bootstrap=bootstrap,
            group=group,
            offset_reset="earliest",
            isolation="read_committed",
            auto_commit=False,
            session_timeout_ms=SESSION_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
            reconnect_backoff_max_ms=200,
        )
        async with Producer(sending) as producer, Consumer(reading) as consumer:
            await consumer.subscribe([source])
            while True:
                found = await consumer.poll(BATCH, timeout_ms=100)
                if not found:
                    continue
                async with producer.transaction():
                    for each in found:
                        await producer.send(target, each.value, partition=each.partition)
                    await producer.send_offsets_to_transaction(consumer)
                report(len(found))

    while True:
        try:
            asyncio.run(run())
        except ClientError as error:
            report_error(error)


LIBRARIES = {"confluent": confluent, "confluent-consumer": confluent_consumer, "barnabas": barnabas}


if __name__ == "__main__":
    library, *arguments = sys.argv[1:]
    LIBRARIES[library](*arguments)
