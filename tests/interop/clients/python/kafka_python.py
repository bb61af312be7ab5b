"""Driver for kafka-python."""

from __future__ import annotations

import logging
import time
from functools import cache
from typing import Any

import kafka
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic
from kafka.errors import KafkaError

from tests.interop.clients.python import kafka_python_transactions
from tests.interop.clients.python.loop import Answer, Request, Stream, packed_record, send_arguments, serve

TIMEOUT_S = 30.0
TIMEOUT_MS = 30_000
_CODECS = {"none": None}


def _producer(request: Request) -> Any:
    acks = request.get("acks", "all")
    codec = request.get("codec", "none")
    return KafkaProducer(
        bootstrap_servers=request["bootstrap"],
        acks=acks if acks == "all" else int(acks),
        compression_type=_CODECS.get(codec, codec),
        enable_idempotence=request.get("idempotence", False),
        max_request_size=10_000_000,
        linger_ms=20,
    )


def _error(error: BaseException) -> Any:
    return getattr(error, "errno", None) or f"{type(error).__name__}: {error}"


def produce(request: Request) -> Answer:
    results: list[Answer] = []
    with _producer(request) as producer:
        futures = [producer.send(request["topic"], **send_arguments(record)) for record in request["records"]]
        for future in futures:
            try:
                results.append({"offset": future.get(TIMEOUT_S).offset, "error": None})
            except KafkaError as error:
                results.append({"offset": None, "error": _error(error)})
    return {"results": results}


def stream(request: Request) -> Answer:
    numbers = Stream(request)
    with _producer({**request, "idempotence": True}) as producer:
        while numbers.goes_on():
            future = producer.send(request["topic"], value=numbers.next_value(), partition=0)
            future.add_callback(lambda _: numbers.ack())
            future.add_errback(numbers.ack)
        producer.flush(TIMEOUT_S)
    return numbers.answer()


def _consumer(request: Request) -> Any:
    return KafkaConsumer(
        bootstrap_servers=request["bootstrap"],
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=10_000_000,
    )


def read(request: Request) -> Answer:
    consumer = _consumer(request)
    place = TopicPartition(request["topic"], request["partition"])
    consumer.assign([place])
    if request.get("timestamp") is not None:
        consumer.seek(place, consumer.offsets_for_times({place: request["timestamp"]})[place].offset)
    elif request.get("offset") is not None:
        consumer.seek(place, request["offset"])
    else:
        consumer.seek_to_beginning(place)
    records: list[Answer] = []
    deadline = time.monotonic() + TIMEOUT_S
    while len(records) < request["count"] and time.monotonic() < deadline:
        for batch in consumer.poll(timeout_ms=1000).values():
            for found in batch:
                headers = [(name, content) for name, content in found.headers]
                records.append(packed_record(found.offset, found.timestamp, found.key, found.value, headers))
    consumer.close()
    return {"records": records[: request["count"]]}


def offsets(request: Request) -> Answer:
    consumer = _consumer(request)
    place = TopicPartition(request["topic"], request["partition"])
    answer = {
        "earliest": consumer.beginning_offsets([place])[place],
        "latest": consumer.end_offsets([place])[place],
        "at": consumer.offsets_for_times({place: request["timestamp"]})[place].offset,
    }
    consumer.close()
    return answer


@cache
def _admin_of(bootstrap: str) -> Any:
    return KafkaAdminClient(bootstrap_servers=bootstrap)


def _admin(request: Request) -> Any:
    return _admin_of(request["bootstrap"])


def create_topic(request: Request) -> Answer:
    topic = NewTopic(request["topic"], request["partitions"], 1, topic_configs=request["configs"])
    _admin(request).create_topics([topic], timeout_ms=TIMEOUT_MS)
    return {}


def topics(request: Request) -> Answer:
    admin = _admin(request)
    described = admin.describe_topics(admin.list_topics())
    return {"topics": {topic["name"]: len(topic["partitions"]) for topic in described}}


def describe_configs(request: Request) -> Answer:
    resource = ConfigResource(ConfigResourceType.TOPIC, request["topic"])
    found = _admin(request).describe_configs([resource], config_filter="all")["topic"][request["topic"]]
    return {"configs": {name: entry["value"] for name, entry in found.items()}}


def alter_configs(request: Request) -> Answer:
    resource = ConfigResource(ConfigResourceType.TOPIC, request["topic"], configs=request["configs"])
    _admin(request).alter_configs([resource])
    return {}


def create_partitions(request: Request) -> Answer:
    _admin(request).create_partitions({request["topic"]: NewPartitions(request["partitions"])})
    return {}


def delete_records(request: Request) -> Answer:
    place = TopicPartition(request["topic"], request["partition"])
    _admin(request).delete_records({place: request["offset"]}, timeout_ms=TIMEOUT_MS)
    return {}


def delete_topic(request: Request) -> Answer:
    _admin(request).delete_topics([request["topic"]], timeout_ms=TIMEOUT_MS)
    return {}


def cluster(request: Request) -> Answer:
    found = _admin(request).describe_cluster()
    return {
        "cluster_id": found["cluster_id"],
        "brokers": [f"{broker['host']}:{broker['port']}" for broker in found["brokers"]],
    }


if __name__ == "__main__":
    logging.basicConfig(level=logging.WARNING)
    serve(
        {
            "version": lambda _: {"version": kafka.__version__},
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
            **kafka_python_transactions.OPERATIONS,
        }
    )
