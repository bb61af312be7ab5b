"""A group member in a process that tests can kill, on any client library.

    python -m tests.support.groups.group_member LIBRARY BOOTSTRAP GROUP TOPIC [ASSIGNOR [INSTANCE]]

ASSIGNOR is `range` or `cooperative-sticky`, with the classic protocol, or `consumer` for the consumer protocol, in
which the broker assigns. Prints `got <value>` for each record, commits after printing, and leaves the group on SIGTERM.
A failed commit is not repeated: the partition's next owner prints those records again. A static member (INSTANCE) has a
longer session, in which it may be restarted. Members in other languages (tests/interop/clients) behave the same.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from typing import Any

stopping = False

SESSION_MS = 6000
STATIC_SESSION_MS = 30_000
HEARTBEAT_MS = 300
CONSUMER_PROTOCOL = "consumer"


def _stop(*_: object) -> None:
    global stopping
    stopping = True


def _say(value: object) -> None:
    assert isinstance(value, bytes)
    print("got", value.decode(), flush=True)


def _session_ms(instance: str | None) -> int:
    return SESSION_MS if instance is None else STATIC_SESSION_MS


def _librdkafka(bootstrap: str, group: str, assignor: str, instance: str | None) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "reconnect.backoff.max.ms": 200,
    }
    if assignor == CONSUMER_PROTOCOL:
        settings["group.protocol"] = assignor
    else:
        settings["partition.assignment.strategy"] = assignor
        settings["session.timeout.ms"] = _session_ms(instance)
        settings["heartbeat.interval.ms"] = HEARTBEAT_MS
    if instance is not None:
        settings["group.instance.id"] = instance
    return settings


def confluent(bootstrap: str, group: str, topic: str, assignor: str, instance: str | None) -> None:
    """Run a member on librdkafka."""
    from confluent_kafka import Consumer, KafkaException

    consumer = Consumer({**_librdkafka(bootstrap, group, assignor, instance), "enable.auto.commit": False})
    consumer.subscribe([topic])
    while not stopping:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            _say(message.value())
            with suppress(KafkaException):
                consumer.commit(message=message, asynchronous=False)
    consumer.close()


def kcat(bootstrap: str, group: str, topic: str, assignor: str, instance: str | None) -> None:
    """Replace this process by kcat, which commits at intervals."""
    settings = _librdkafka(bootstrap, group, assignor, instance)
    del settings["group.id"]
    settings["auto.commit.interval.ms"] = 200
    words = [word for name, value in settings.items() for word in ("-X", f"{name}={value}")]
    os.execvp("kcat", ["kcat", "-q", "-u", "-E", *words, "-f", "got %s\\n", "-G", group, topic])


def kafka_python(bootstrap: str, group: str, topic: str, assignor: str, instance: str | None) -> None:
    """Run a member on kafka-python, with its own assignors."""
    from kafka import KafkaConsumer
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.errors import KafkaError

    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=group,
        group_instance_id=instance,
        partition_assignment_strategy=[RangePartitionAssignor if assignor == "range" else CooperativeStickyAssignor],
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        session_timeout_ms=_session_ms(instance),
        heartbeat_interval_ms=HEARTBEAT_MS,
        reconnect_backoff_max_ms=200,
    )
    while not stopping:
        found = consumer.poll(timeout_ms=100)
        for records in found.values():
            for record in records:
                _say(record.value)
        if found:
            with suppress(KafkaError):
                consumer.commit()
    consumer.close()


def aiokafka(bootstrap: str, group: str, topic: str, assignor: str, instance: str | None) -> None:
    """Run a member on aiokafka, which has no cooperative assignor."""

    async def run() -> None:
        from aiokafka import AIOKafkaConsumer
        from aiokafka.coordinator.assignors.range import RangePartitionAssignor
        from aiokafka.errors import KafkaError

        consumer = AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            group_instance_id=instance,
            partition_assignment_strategy=[RangePartitionAssignor],
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=_session_ms(instance),
            heartbeat_interval_ms=HEARTBEAT_MS,
        )
        await consumer.start()
        while not stopping:
            found = await consumer.getmany(timeout_ms=100)
            for records in found.values():
                for record in records:
                    _say(record.value)
            if found:
                with suppress(KafkaError):
                    await consumer.commit()
        await consumer.stop()

    asyncio.run(run())


def barnabas(bootstrap: str, group: str, topic: str, assignor: str, instance: str | None) -> None:
    """Run a member on Barnabas' own consumer, over the native dialect."""

    async def run() -> None:
        from barnabas import ClientError, Consumer, ConsumerConfig

        config = ConsumerConfig(
            bootstrap=bootstrap,
            group=group,
            offset_reset="earliest",
            auto_commit=False,
            session_timeout_ms=_session_ms(instance),
            heartbeat_interval_ms=HEARTBEAT_MS,
            assignors=(assignor,),
            group_instance_id=instance,
            reconnect_backoff_max_ms=200,
        )
        async with Consumer(config) as consumer:
            await consumer.subscribe([topic])
            while not stopping:
                found = await consumer.poll(timeout_ms=100)
                for record in found:
                    _say(record.value)
                if found:
                    with suppress(ClientError):
                        await consumer.commit()

    asyncio.run(run())


LIBRARIES = {
    "confluent": confluent,
    "kafka-python": kafka_python,
    "aiokafka": aiokafka,
    "kcat": kcat,
    "barnabas": barnabas,
}


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _stop)
    library, bootstrap, group, topic, *rest = sys.argv[1:]
    LIBRARIES[library](bootstrap, group, topic, rest[0] if rest else "range", rest[1] if len(rest) > 1 else None)
