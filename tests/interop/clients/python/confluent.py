"""Driver for confluent-kafka (librdkafka)."""

from __future__ import annotations

import time
from functools import cache
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, Producer, TopicPartition, version
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewPartitions, NewTopic

from tests.interop.clients.python import confluent_transactions
from tests.interop.clients.python.loop import Answer, Request, Stream, packed_record, serve, unpack, unpacked_headers

TIMEOUT_S = 30.0


def _producer(request: Request) -> Producer:
    return Producer(
        {
            "bootstrap.servers": request["bootstrap"],
            "acks": request.get("acks", "all"),
            "compression.type": request.get("codec", "none"),
            "enable.idempotence": request.get("idempotence", False),
            "message.max.bytes": 10_000_000,
            "linger.ms": 20,
        }
    )


def produce(request: Request) -> Answer:
    results: list[Answer] = [{} for _ in request["records"]]
    producer = _producer(request)
    for index, record in enumerate(request["records"]):

        def delivered(error: Any, message: Message, index: int = index) -> None:
            results[index] = {"offset": message.offset(), "error": None if error is None else error.code()}

        producer.produce(
            request["topic"],
            unpack(record["value"]),
            unpack(record["key"]),
            record["partition"],
            on_delivery=delivered,
            timestamp=record["timestamp"],
            headers=[(name, content) for name, content in unpacked_headers(record)],
        )
    left = producer.flush(TIMEOUT_S)
    return {"results": results} if left == 0 else {"error": f"{left} records without an answer"}


def stream(request: Request) -> Answer:
    numbers = Stream(request)
    producer = _producer({**request, "idempotence": True})
    try:
        while numbers.goes_on():
            producer.produce(
                request["topic"], numbers.next_value(), partition=0, on_delivery=lambda error, _: numbers.ack(error)
            )
            producer.poll(0)
    except KafkaException as fatal:
        numbers.ack(fatal)
        try:
            producer.poll(TIMEOUT_S)
        except KafkaException as named:  # the reason, if `produce` was the first to notice
            numbers.ack(named)
    producer.flush(TIMEOUT_S)
    return numbers.answer()


def _consumer(request: Request) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": request["bootstrap"],
            "group.id": "unused",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "fetch.message.max.bytes": 10_000_000,
        }
    )


def read(request: Request) -> Answer:
    consumer = _consumer(request)
    place = TopicPartition(request["topic"], request["partition"])
    if request.get("timestamp") is not None:
        place.offset = request["timestamp"]
        (place,) = consumer.offsets_for_times([place], TIMEOUT_S)
    else:
        place.offset = OFFSET_BEGINNING
    consumer.assign([place])
    if request.get("offset") is not None:
        place.offset = request["offset"]
        consumer.seek(place)
    records: list[Answer] = []
    deadline = time.monotonic() + TIMEOUT_S
    while len(records) < request["count"] and time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is None:
            continue
        if message.error():
            raise KafkaException(message.error())
        found: Any = message  # the type stubs allow text here
        headers = [(name, content) for name, content in found.headers() or []]
        records.append(packed_record(found.offset(), found.timestamp()[1], found.key(), found.value(), headers))
    consumer.close()
    return {"records": records}


def offsets(request: Request) -> Answer:
    consumer = _consumer(request)
    place = TopicPartition(request["topic"], request["partition"])
    earliest, latest = consumer.get_watermark_offsets(place, TIMEOUT_S)
    place.offset = request["timestamp"]
    (found,) = consumer.offsets_for_times([place], TIMEOUT_S)
    consumer.close()
    return {"earliest": earliest, "latest": latest, "at": found.offset}


@cache
def _admin_of(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap})  # cached, because closing it would fail calls in progress


def _admin(request: Request) -> AdminClient:
    return _admin_of(request["bootstrap"])


def create_topic(request: Request) -> Answer:
    topic = NewTopic(request["topic"], request["partitions"], 1, config=request["configs"])
    _admin(request).create_topics([topic])[request["topic"]].result(TIMEOUT_S)
    return {}


def topics(request: Request) -> Answer:
    found = _admin(request).list_topics(timeout=TIMEOUT_S).topics
    return {"topics": {name: len(topic.partitions) for name, topic in found.items()}}


def describe_configs(request: Request) -> Answer:
    resource = ConfigResource(ConfigResource.Type.TOPIC, request["topic"])
    entries = _admin(request).describe_configs([resource])[resource].result(TIMEOUT_S)
    return {"configs": {name: entry.value for name, entry in entries.items()}}


def alter_configs(request: Request) -> Answer:
    entries = [
        ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        for name, value in request["configs"].items()
    ]
    resource = ConfigResource(ConfigResource.Type.TOPIC, request["topic"], incremental_configs=entries)
    _admin(request).incremental_alter_configs([resource])[resource].result(TIMEOUT_S)
    return {}


def create_partitions(request: Request) -> Answer:
    wanted = NewPartitions(request["topic"], request["partitions"])
    _admin(request).create_partitions([wanted])[request["topic"]].result(TIMEOUT_S)
    return {}


def delete_records(request: Request) -> Answer:
    place = TopicPartition(request["topic"], request["partition"], request["offset"])
    deleted = _admin(request).delete_records([place])[place].result(TIMEOUT_S)
    return {"low_watermark": deleted.low_watermark}


def delete_topic(request: Request) -> Answer:
    _admin(request).delete_topics([request["topic"]])[request["topic"]].result(TIMEOUT_S)
    return {}


def cluster(request: Request) -> Answer:
    found = _admin(request).describe_cluster().result(TIMEOUT_S)
    return {"cluster_id": found.cluster_id, "brokers": [f"{node.host}:{node.port}" for node in found.nodes]}


if __name__ == "__main__":
    serve(
        {
            "version": lambda _: {"version": version() if isinstance(version(), str) else version()[0]},
            "produce": produce,
            "stream": stream,
            "read": read,
            "offsets": offsets,
            "create_topic": create_topic,
            "topics": topics,
            "describe_configs": describe_configs,
            "alter_configs": alter_configs,
            "create_partitions": create_partitions,
            "delete_records": delete_records,
            "delete_topic": delete_topic,
            "cluster": cluster,
            **confluent_transactions.OPERATIONS,
        }
    )
