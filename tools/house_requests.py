"""The requests whose files `tools.house_row` counts. Each function makes what its request needs, and returns it."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from benchmarks.requests.records import build_batch
from tests.support.kafka.kafka_wire import KafkaWire, fetch_request, message_type, produce_request, schema

TOPIC = "topic"
GROUP = "group"
TRANSACTIONAL_ID = "transaction"
_numbers = itertools.count()


def create_topics(wire: KafkaWire) -> Any:
    """Return the creation of a topic. The first one is TOPIC."""
    del wire
    kio = schema("create_topics", 7, "request")
    name = f"{TOPIC}{next(_numbers) or ''}"
    topic = kio.CreatableTopic(name=name, num_partitions=1, replication_factor=-1, assignments=(), configs=())
    return kio.CreateTopicsRequest(topics=(topic,), timeout=timedelta(seconds=30), validate_only=False)


def produce(wire: KafkaWire) -> Any:
    """Return a Produce of one record."""
    del wire
    return produce_request(12, TOPIC, build_batch(1, 100).data)


def fetch(wire: KafkaWire) -> Any:
    """Return a Fetch from the start of a topic with records."""
    del wire
    return fetch_request(12, TOPIC, 0)


def offset_commit(wire: KafkaWire) -> Any:
    """Return a commit of a group without members."""
    wire.call("find_coordinator", 4, key_type=0, coordinator_keys=(GROUP,))
    kio = schema("offset_commit", 8, "request")
    partition = kio.OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="")
    topic = kio.OffsetCommitRequestTopic(name=TOPIC, partitions=(partition,))
    return kio.OffsetCommitRequest(group_id=GROUP, generation_id_or_member_epoch=-1, member_id="", topics=(topic,))


def end_txn(wire: KafkaWire) -> Any:
    """Return the commit of a transaction with one partition."""
    wire.call("find_coordinator", 4, key_type=1, coordinator_keys=(TRANSACTIONAL_ID,))
    name = {"transactional_id": TRANSACTIONAL_ID}
    for _ in range(1000):  # the transaction before may still be being completed
        found = wire.call("init_producer_id", 4, **name, transaction_timeout=timedelta(seconds=30))
        if found.error_code == 0:
            break
    ids = {"producer_id": found.producer_id, "producer_epoch": found.producer_epoch}
    topic = schema("add_partitions_to_txn", 3, "request").AddPartitionsToTxnTopic(name=TOPIC, partitions=(0,))
    wire.call(
        "add_partitions_to_txn",
        3,
        v3_and_below_transactional_id=TRANSACTIONAL_ID,
        v3_and_below_producer_id=found.producer_id,
        v3_and_below_producer_epoch=found.producer_epoch,
        v3_and_below_topics=(topic,),
    )
    return message_type("end_txn", 3, "request")(**name, **ids, committed=True)


REQUESTS: dict[str, Callable[[KafkaWire], Any]] = {
    "CreateTopics": create_topics,
    "Produce": produce,
    "Fetch": fetch,
    "OffsetCommit": offset_commit,
    "EndTxn": end_txn,
}
