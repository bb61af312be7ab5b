"""Transactions of confluent-kafka (librdkafka)."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition

from tests.interop.clients.python.loop import TRANSFORM_SESSION_MS, Answer, Reading, Request, Transform

TIMEOUT_S = 30.0
_producers: dict[str, Producer] = {}
_in_transaction: set[str] = set()


def _open(request: Request) -> Producer:
    producer = Producer(
        {
            "bootstrap.servers": request["bootstrap"],
            "transactional.id": request["transactional_id"],
            # Without any broker librdkafka 2.16 bootstraps again and ends its broker handles, but the cached group
            # coordinator keeps an ended one: send_offsets_to_transaction then waits forever, on any broker.
            "metadata.recovery.strategy": "none",
            "reconnect.backoff.max.ms": 200,
        }
    )
    producer.init_transactions(TIMEOUT_S)
    return producer


def txn_open(request: Request) -> Answer:
    _producers[request["name"]] = _open(request)
    return {}


def _begin(name: str) -> Producer:
    producer = _producers[name]
    if name not in _in_transaction:
        producer.begin_transaction()
        _in_transaction.add(name)
    return producer


def _send(producer: Producer, topic: str, values: list[tuple[int, str]]) -> None:
    errors: list[Any] = []

    def delivered(error: Any, _message: Any) -> None:
        if error is not None:
            errors.append(error)

    for partition, value in values:
        producer.produce(topic, value, partition=partition, on_delivery=delivered)
    left = producer.flush(TIMEOUT_S)
    if errors or left:
        raise KafkaException(errors[0]) if errors else TimeoutError(f"{left} records without an answer")


def txn_send(request: Request) -> Answer:
    values = [(request["partition"], value) for value in request["values"]]
    _send(_begin(request["name"]), request["topic"], values)
    return {}


def txn_offsets(request: Request) -> Answer:
    consumer = Consumer({"bootstrap.servers": request["bootstrap"], "group.id": request["group"]})
    offsets = [TopicPartition(request["topic"], request["partition"], request["offset"])]
    producer = _begin(request["name"])
    producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), TIMEOUT_S)
    consumer.close()
    return {}


def txn_end(request: Request) -> Answer:
    producer = _producers[request["name"]]
    _in_transaction.discard(request["name"])
    if request["commit"]:
        producer.commit_transaction(TIMEOUT_S)
    else:
        producer.abort_transaction(TIMEOUT_S)
    return {}


def txn_close(request: Request) -> Answer:
    del _producers[request["name"]]
    _in_transaction.discard(request["name"])
    return {}


def read_values(request: Request) -> Answer:
    consumer = Consumer(
        {
            "bootstrap.servers": request["bootstrap"],
            "group.id": "unused",
            "isolation.level": "read_committed" if request["committed"] else "read_uncommitted",
        }
    )
    consumer.assign([TopicPartition(request["topic"], request["partition"], OFFSET_BEGINNING)])
    reading = Reading(request)
    while reading.goes_on():
        message = consumer.poll(0.1)
        if message is None:
            continue
        if message.error():
            raise KafkaException(message.error())
        reading.values.append((message.value() or b"").decode())
    consumer.close()
    return {"values": reading.values}


def transform(request: Request) -> Answer:
    progress = Transform(request)
    while progress.goes_on():
        try:
            _transform(request, progress)
        except (KafkaException, TimeoutError) as error:
            progress.fail(error)
    return progress.answer()


def _transform(request: Request, progress: Transform) -> None:
    producer = _open(request)
    static = {"group.instance.id": "transformer", "session.timeout.ms": TRANSFORM_SESSION_MS}
    consumer = Consumer(
        {
            "bootstrap.servers": request["bootstrap"],
            "group.id": request["group"],
            **(static if request["protocol"] == "classic" else {"group.protocol": "consumer"}),
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "reconnect.backoff.max.ms": 200,
        }
    )
    try:
        consumer.subscribe([request["topic"]])
        while progress.goes_on():
            messages = [message for message in consumer.consume(100, 0.1) if message.error() is None]
            if not messages:
                continue
            producer.begin_transaction()
            found: list[Any] = messages  # the type stubs allow None in offsets and partitions
            _send(producer, request["output"], [(each.partition(), each.value().decode()) for each in found])
            offsets = consumer.position(consumer.assignment())
            metadata = consumer.consumer_group_metadata()
            producer.send_offsets_to_transaction([each for each in offsets if each.offset >= 0], metadata, TIMEOUT_S)
            producer.commit_transaction(TIMEOUT_S)
            progress.committed(len(messages))
    finally:
        with suppress(KafkaException):
            consumer.close()


OPERATIONS = {
    "txn_open": txn_open,
    "txn_send": txn_send,
    "txn_offsets": txn_offsets,
    "txn_end": txn_end,
    "txn_close": txn_close,
    "read_values": read_values,
    "transform": transform,
}
