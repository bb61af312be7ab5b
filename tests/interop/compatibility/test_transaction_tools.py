"""kafka-transactions.sh: list, describe, describe-producers, find-hanging, abort, forceTerminateTransaction.

With BARNABAS_COMPATIBILITY_BROKER=kafka:4.3.0 it runs against Apache Kafka, which checks the tests (see test_clients).
"""

from __future__ import annotations

import dataclasses
import time

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from barnabas.protocol.records import RecordBatchBuilder
from tests.interop.clients.target import Target
from tests.interop.conftest import Tool
from tests.support.eventually import eventually
from tests.support.kafka.kafka_wire import KafkaWire, produce_request
from tests.support.kafka.wire_producer import await_complete
from tests.support.storage.committed_records import committed_records

TRANSACTIONS = "TransactionsCommand"
TIMEOUT_S = 30.0
OLD_MINUTES = 60
STRANGER_ID = 4_000_000
OLD_PRODUCE_VERSION = 9  # of clients that add partitions to a transaction by a request of its own


def rows(printed: str) -> list[dict[str, str]]:
    """Return the rows of a printed table by column."""
    lines = [line.split("\t") for line in printed.splitlines() if line.strip()]
    head, *body = [[cell.strip() for cell in line] for line in lines]
    return [dict(zip(head, line, strict=True)) for line in body]


def connected(target: Target) -> KafkaWire:
    """Return a connection to the broker."""
    host, _, port = target.bootstrap.rpartition(":")
    return KafkaWire(host, int(port))


def producer_of(target: Target, transactional_id: str) -> Producer:
    """Return an initialized producer."""
    producer = Producer({"bootstrap.servers": target.bootstrap, "transactional.id": transactional_id})
    producer.init_transactions(TIMEOUT_S)
    return producer


def send(producer: Producer, topic: str, *values: str) -> None:
    """Begin a transaction and produce to partition 0."""
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, partition=0)
    assert producer.flush(TIMEOUT_S) == 0


def test_transactions_are_listed_described_and_terminated(target: Target, tool: Tool) -> None:
    target.create_topic("ledger", 1)
    server = ("--bootstrap-server", target.bootstrap)
    done, left = producer_of(target, "tool-done"), producer_of(target, "tool-open")
    send(done, "ledger", "done")
    done.commit_transaction(TIMEOUT_S)
    with connected(target) as wire:
        assert await_complete(wire, "tool-done") == "CompleteCommit"
    send(left, "ledger", "a", "b")

    listed = {row["TransactionalId"]: row for row in rows(tool(TRANSACTIONS, *server, "list"))}
    assert (listed["tool-done"]["TransactionState"], listed["tool-open"]["TransactionState"]) == (
        "CompleteCommit",
        "Ongoing",
    )
    chosen = rows(tool(TRANSACTIONS, *server, "list", "--transactional-id-pattern", ".*-open"))
    assert [row["TransactionalId"] for row in chosen] == ["tool-open"]
    assert rows(tool(TRANSACTIONS, *server, "list", "--duration-filter", "3600000")) == []

    (described,) = rows(tool(TRANSACTIONS, *server, "describe", "--transactional-id", "tool-open"))
    assert (described["TransactionState"], described["TopicPartitions"]) == ("Ongoing", "ledger-0")
    assert (described["ProducerId"], described["TransactionTimeoutMs"]) == (listed["tool-open"]["ProducerId"], "60000")
    assert described["CoordinatorId"] == listed["tool-open"]["Coordinator"]
    (ended,) = rows(tool(TRANSACTIONS, *server, "describe", "--transactional-id", "tool-done"))
    assert (ended["TransactionState"], ended["TopicPartitions"]) == ("CompleteCommit", "")
    for row in (described, ended):  # Kafka's coordinator keeps the start time of an ended transaction
        assert row["CurrentTransactionStartTimeMs"].isdigit()
        assert row["TransactionDurationMs"].isdigit()

    producers = rows(tool(TRANSACTIONS, *server, "describe-producers", "--topic", "ledger", "--partition", "0"))
    starts = {row["ProducerId"]: row["CurrentTransactionStartOffset"] for row in producers}
    assert starts == {ended["ProducerId"]: "None", described["ProducerId"]: "2"}
    by_id = {row["ProducerId"]: row for row in producers}
    assert by_id[ended["ProducerId"]]["LatestCoordinatorEpoch"] == "0"
    assert by_id[described["ProducerId"]]["LatestCoordinatorEpoch"] == "-1"
    assert by_id[described["ProducerId"]]["LastSequence"] == "1"

    tool(TRANSACTIONS, *server, "forceTerminateTransaction", "--transactionalId", "tool-open")

    def state() -> str:
        (row,) = rows(tool(TRANSACTIONS, *server, "describe", "--transactional-id", "tool-open"))
        return row["TransactionState"]

    eventually(lambda: state() in ("CompleteAbort", "Empty") or None, what="an aborted transaction")
    with pytest.raises(KafkaException):
        left.commit_transaction(TIMEOUT_S)
    assert [record.value for record in committed_records(target.log_directory, "ledger")] == [b"done"]


def test_a_hanging_transaction_is_found_and_aborted(target: Target, tool: Tool) -> None:
    target.create_topic("hanging", 1)
    server = ("--bootstrap-server", target.bootstrap)
    place = ("--topic", "hanging", "--partition", "0")
    set_verification(target, is_enabled=False)  # older brokers had none: then a late produce opened a transaction
    produce_late(target, "hanging")
    set_verification(target, is_enabled=True)

    (found,) = rows(tool(TRANSACTIONS, *server, "find-hanging", "--topic", "hanging"))
    assert (found["Topic"], found["Partition"], found["ProducerId"]) == ("hanging", "0", str(STRANGER_ID))
    assert (found["ProducerEpoch"], found["CoordinatorEpoch"], found["StartOffset"]) == ("0", "-1", "0")
    assert int(found["Duration(min)"]) >= OLD_MINUTES

    tool(TRANSACTIONS, *server, "abort", *place, "--start-offset", found["StartOffset"])

    assert rows(tool(TRANSACTIONS, *server, "find-hanging", "--topic", "hanging")) == []
    (producer,) = rows(tool(TRANSACTIONS, *server, "describe-producers", *place))
    assert (producer["ProducerId"], producer["CurrentTransactionStartOffset"]) == (str(STRANGER_ID), "None")
    assert committed_records(target.log_directory, "hanging") == []


def set_verification(target: Target, *, is_enabled: bool) -> None:
    """Set the broker's dynamic default of transaction.partition.verification.enable."""
    name = "transaction.partition.verification.enable"
    entry = ConfigEntry(name, str(is_enabled).lower(), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.BROKER, "1", incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": target.bootstrap})
    admin.incremental_alter_configs([resource])[resource].result(TIMEOUT_S)


def produce_late(target: Target, topic: str) -> None:
    """Produce a transactional batch of a producer that no coordinator knows, an hour old."""
    builder = RecordBatchBuilder(
        max_bytes=1 << 16, producer_id=STRANGER_ID, producer_epoch=0, base_sequence=0, is_transactional=True
    )
    builder.append(int((time.time() - OLD_MINUTES * 60) * 1000), None, b"late")
    request = dataclasses.replace(
        produce_request(OLD_PRODUCE_VERSION, topic, builder.build(), acks=-1), transactional_id="forgotten"
    )
    with connected(target) as kafka:
        kafka.send(request)
        (answer,) = kafka.receive("produce", OLD_PRODUCE_VERSION).responses
    assert [each.error_code for each in answer.partition_responses] == [0]
