"""Spark reads and writes topics over SASL_SSL, with the properties of a Kafka client."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from barnabas.clients.secure_testing import SecureBrokerProcess
from barnabas.clients.testing import secure_broker


@pytest.fixture(scope="module")
def secured() -> Iterator[SecureBrokerProcess]:
    with secure_broker() as running:
        yield running


@pytest.mark.parametrize("more", [{}, {"protocol": "kafka", "exactlyOnce": "transactions"}], ids=["native", "kafka"])
def test_rows_go_to_a_secured_broker_and_back(
    spark: SparkSession, secured: SecureBrokerProcess, more: dict[str, str]
) -> None:
    topic = f"orders-{more.get('protocol', 'native')}"
    secured.create_topic(topic, partitions=2)
    alice = {f"kafka.{name}": value for name, value in secured.add_user("alice", "canary").items()}
    rows = {(f"k{number}".encode(), f"v{number}".encode()) for number in range(20)}

    frame = spark.createDataFrame(sorted(rows), "key binary, value binary")
    frame.write.format("barnabas").mode("append").options(**alice, topic=topic, **more).save()
    found = spark.read.format("barnabas").options(**alice).option("subscribe", topic).load()

    assert {(bytes(row.key), bytes(row.value)) for row in found.collect()} == rows


def test_a_wrong_password_fails_the_query_and_is_not_shown(spark: SparkSession, secured: SecureBrokerProcess) -> None:
    properties = {f"kafka.{name}": value for name, value in secured.add_user("bob", "password").items()}
    properties["kafka.sasl.jaas.config"] = properties["kafka.sasl.jaas.config"].replace('"password"', '"canary"')

    with pytest.raises(PySparkException, match="refuses the SCRAM-SHA-512 login") as caught:
        spark.read.format("barnabas").options(**properties).option("subscribe", "orders").load().collect()
    assert "canary" not in str(caught.value)
