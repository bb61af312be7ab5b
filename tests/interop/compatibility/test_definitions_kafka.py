"""The stored definitions of Kafka's messages are those in its jars."""

from __future__ import annotations

import pytest

from tests.support.interop import require_or_skip
from tests.support.kafka.definitions import VERSIONS, load
from tests.support.kafka.jars import FetchError
from tools.kafka_definitions import read_jars


@pytest.mark.parametrize("version", VERSIONS)
def test_the_stored_definitions_are_those_in_kafkas_jars(version: str) -> None:
    try:
        found = read_jars(version)
    except FetchError as error:
        require_or_skip(str(error))
    assert found == load(version)
