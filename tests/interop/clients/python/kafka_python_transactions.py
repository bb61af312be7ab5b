"""Transactions of kafka-python."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import KafkaError, KafkaTimeoutError
from kafka.structs import OffsetAndMetadata

from tests.interop.clients.python.loop import TRANSFORM_SESSION_MS, Answer, Reading, Request, Transform

TIMEOUT_S = 30.0
TRANSFORM_TIMEOUT_S = 10.0
"""Time for a transform's records to be acknowledged. After a broker's restart the producer often never sends some of
them (docs/client-quirks.md)."""

SILENCE_S = 10.0
"""Time without records after which a transform starts again: its topic is written to all the time, but the consumer may
poll forever (docs/client-quirks.md)."""

_producers: dict[str, Any] = {}
_in_transaction: set[str] = set()


def _open(request: Request) -> Any:
    producer = KafkaProducer(
        bootstrap_servers=request["bootstrap"],
        transactional_id=request["transactional_id"],
        reconnect_backoff_max_ms=200,
    )
    producer.init_transactions()
    return producer


def txn_open(request: Request) -> Answer:
    _producers[request["name"]] = _open(request)
    return {}


def _begin(name: str) -> Any:
    producer = _producers[name]
    if name not in _in_transaction:
        producer.begin_transaction()
        _in_transaction.add(name)
    return producer


def _send(producer: Any, topic: str, values: list[tuple[int, bytes]], timeout_s: float = TIMEOUT_S) -> None:
    futures = [producer.send(topic, value=value, partition=partition) for partition, value in values]
    producer.flush(timeout_s)
    for future in futures:
        future.get(timeout_s)


def txn_send(request: Request) -> Answer:
    values = [(request["partition"], value.encode()) for value in request["values"]]
    _send(_begin(request["name"]), request["topic"], values)
    return {}


def txn_offsets(request: Request) -> Answer:
    offsets = {TopicPartition(request["topic"], request["partition"]): OffsetAndMetadata(request["offset"], "", -1)}
    _begin(request["name"]).send_offsets_to_transaction(offsets, request["group"])
    return {}


def txn_end(request: Request) -> Answer:
    _in_transaction.discard(request["name"])
    producer = _producers[request["name"]]
    if request["commit"]:
        producer.commit_transaction()
    else:
        producer.abort_transaction()
    return {}


def txn_close(request: Request) -> Answer:
    _in_transaction.discard(request["name"])
    _producers.pop(request["name"]).close(timeout=1)
    return {}


def read_values(request: Request) -> Answer:
    place = TopicPartition(request["topic"], request["partition"])
    consumer = KafkaConsumer(
        bootstrap_servers=request["bootstrap"],
        group_id=None,
        isolation_level="read_committed" if request["committed"] else "read_uncommitted",
    )
    consumer.assign([place])
    consumer.seek_to_beginning(place)
    reading = Reading(request)
    while reading.goes_on():
        for batch in consumer.poll(timeout_ms=100).values():
            reading.values += [(found.value or b"").decode() for found in batch]
    consumer.close()
    return {"values": reading.values}


def transform(request: Request) -> Answer:
    progress = Transform(request)
    while progress.goes_on():
        try:
            _transform(request, progress)
        except KafkaError as error:
            progress.fail(error)
    return progress.answer()


def _transform(request: Request, progress: Transform) -> None:
    producer = _open(request)
    consumer = KafkaConsumer(
        request["topic"],
        bootstrap_servers=request["bootstrap"],
        group_id=request["group"],
        group_instance_id="transformer",
        partition_assignment_strategy=[RangePartitionAssignor],
        session_timeout_ms=TRANSFORM_SESSION_MS,
        heartbeat_interval_ms=300,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
        reconnect_backoff_max_ms=200,
    )
    silence_ends = time.monotonic() + SILENCE_S
    try:
        while progress.goes_on():
            found = consumer.poll(timeout_ms=100)
            if not found:
                if time.monotonic() > silence_ends:
                    raise KafkaTimeoutError(f"no records for {SILENCE_S:.0f} s")
                continue
            values = [(place.partition, record.value) for place, batch in found.items() for record in batch]
            producer.begin_transaction()
            _send(producer, request["output"], values, TRANSFORM_TIMEOUT_S)
            offsets = {place: OffsetAndMetadata(batch[-1].offset + 1, "", -1) for place, batch in found.items()}
            producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
            producer.commit_transaction()
            progress.committed(len(values))
            silence_ends = time.monotonic() + SILENCE_S
    finally:
        consumer.close(autocommit=False)
        _abandon(producer)


def _abandon(producer: Any) -> None:
    """Close a producer without sending what is left. `close` alone raises then, and its busy thread would go on."""
    producer._sender.force_close()
    with suppress(KafkaError):
        producer.close(timeout=0)


OPERATIONS = {
    "txn_open": txn_open,
    "txn_send": txn_send,
    "txn_offsets": txn_offsets,
    "txn_end": txn_end,
    "txn_close": txn_close,
    "read_values": read_values,
    "transform": transform,
}
