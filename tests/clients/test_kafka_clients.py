"""Kafka's Python clients, unmodified: their records are read natively, and the other way round.

`make interop` tries them, and all the others, for everything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas import Consumer, ConsumerConfig, TopicPartition
from barnabas.protocol.records import Record
from tests.interop.clients.driver import Driver
from tests.interop.clients.features import CODECS, FEATURES, Trial, plain
from tests.interop.clients.programs import CLIENTS, Client
from tests.interop.clients.target import Target, running_barnabas

SMOKE = ("create-topic", "over-the-limit", "by-time")
PYTHON_CLIENTS = tuple(client for client in CLIENTS if client.name in ("confluent-kafka", "kafka-python", "aiokafka"))


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with running_barnabas(tmp_path_factory.mktemp("barnabas")) as running:
        yield running


@pytest.fixture
def driver(request: pytest.FixtureRequest, target: Target, tmp_path: Path) -> Iterator[Driver]:
    client: Client = request.param
    driver = Driver(client.command(), tmp_path, client.limits)
    driver.bootstrap = target.bootstrap
    yield driver
    driver.close()


async def read_natively(target: Target, topic: str, count: int) -> list[Record]:
    async with Consumer(ConsumerConfig(bootstrap=target.bootstrap)) as consumer:
        await consumer.assign([TopicPartition(topic, 0)])
        await consumer.seek_to_beginning()
        found = [await anext(consumer) for _ in range(count)]
    return [Record(each.offset, each.timestamp, each.key, each.value, tuple(each.headers)) for each in found]


@pytest.mark.parametrize("driver", PYTHON_CLIENTS, ids=lambda client: client.name, indirect=True)
def test_the_native_consumer_reads_a_clients_records_in_every_codec(
    driver: Driver, target: Target, tmp_path: Path
) -> None:
    topic = f"native-{tmp_path.name}"
    target.create_topic(topic, 1)
    records = plain(100)
    for number, codec in enumerate(CODECS):
        driver.produce(topic, records[number * 20 : number * 20 + 20], codec=codec)

    assert asyncio.run(read_natively(target, topic, 100)) == records


@pytest.mark.parametrize("driver", PYTHON_CLIENTS, ids=lambda client: client.name, indirect=True)
def test_a_client_creates_a_topic_gets_an_error_and_reads_native_records(
    driver: Driver, target: Target, tmp_path: Path
) -> None:
    for feature in FEATURES:
        if feature.name in SMOKE:
            feature.check(Trial(driver, target, f"{feature.name}-{tmp_path.name}"))
