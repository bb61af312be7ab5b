"""`barnabas explain --log-dir` on directories that Apache Kafka wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from barnabas.commands.main import main
from tests.support.kafka.apache_kafka import Kafka, need_kafka

RECORDS = 20


def explain(*arguments: object) -> Any:
    result = CliRunner().invoke(main, ["explain", *map(str, arguments), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize("version", ["4.3.0", "3.9.1"])
def test_what_kafka_left_is_explained(tmp_path: Path, version: str) -> None:
    need_kafka(version)
    data = tmp_path / "data"
    kafka = Kafka(version, data, tmp_path / "kafka")
    kafka.format()
    with kafka.running() as broker:
        configs = {"segment.bytes": str(1 << 20), "retention.ms": "3600000"}
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        admin.create_topics([NewTopic("orders", 1, 1, config=configs)])["orders"].result(30)
        producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "open"})
        producer.init_transactions(30)
        for number in range(RECORDS):
            producer.begin_transaction()
            producer.produce("orders", bytes(100_000), partition=0)
            producer.flush(30)
            if number < RECORDS - 1:
                producer.commit_transaction(30)
    told = explain("topic", "orders", "--log-dir", data)
    assert (told["settings"]["retention.ms"]["value"], told["settings"]["retention.ms"]["source"]) == (
        "3600000",
        "DYNAMIC_TOPIC_CONFIG",
    )
    (partition,) = told["partitions"]
    assert len(partition["segments"]) >= 2
    assert {each["rule"] for each in partition["segments"]} == {"retention.ms"}
    assert all(each["deleted_earliest_ms"] > told["now_ms"] for each in partition["segments"])
    setting = explain("config", "retention.ms", "--topic", "orders", "--log-dir", data, "--to", "1")
    assert setting["chain"][0]["value"] == "3600000"
    assert setting["change"]["deleted_segments"] == len(partition["segments"])
    (directory,) = explain("start", "--log-dir", data)["directories"]
    assert directory["stop"] == "clean"
    (held,) = explain("transaction", "--partition", "orders-0", "--log-dir", data)["partitions"]
    (transaction,) = held["open_transactions"]
    assert (transaction["transactional_id"], transaction["start_offset"]) == ("open", held["last_stable_offset"])
