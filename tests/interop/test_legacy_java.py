"""Message formats 0 and 1 against Kafka itself: its classes write them, its tools dump them, its broker serves them."""

from __future__ import annotations

import pytest

from tests.support.kafka import Kafka
from tests.support.legacy import GOLDEN

VERSION = "4.3.0"


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Kafka:
    scratch = tmp_path_factory.mktemp("kafka")
    return Kafka(VERSION, scratch / "unused", scratch)


def test_java_still_writes_the_message_sets_that_our_tests_read(kafka: Kafka) -> None:
    assert kafka.java_program("LegacyMessages", "write") == GOLDEN.read_text()
