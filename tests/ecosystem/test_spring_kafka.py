"""Spring for Apache Kafka: a KafkaTemplate, and a @KafkaListener."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.daemon import Daemon
from tests.support.ecosystem.exchange import Client, survive_kills
from tests.support.ecosystem.java import compiled


@pytest.fixture(scope="module")
def client() -> Client:
    classpath = compiled("spring-kafka", Path(__file__).parent / "spring")
    program = ["java", "-Xmx256m", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", classpath, "Deliveries"]
    return Client([*program, "produce"], [*program, "consume"])


@pytest.mark.ecosystem("Spring for Apache Kafka", "4.1.2", "KafkaTemplate, @KafkaListener in a group")
def test_spring_delivers_everything_when_the_broker_is_killed(daemon: Daemon, client: Client, tmp_path: Path) -> None:
    survive_kills(daemon, client, tmp_path)
