"""The clients of the matrix: how each one's driver is built and started, and what it cannot express."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.interop.clients import building
from tests.interop.clients.driver import Limits


@dataclass(frozen=True, slots=True)
class Client:
    """One column of the matrix."""

    name: str
    command: Callable[[], list[str]]
    """Builds the driver where it has to be; ends the test where the tools for that are missing."""
    limits: Limits = field(default_factory=Limits)


def _python(module: str) -> Callable[[], list[str]]:
    return lambda: [sys.executable, "-m", f"tests.interop.clients.python.{module}"]


CLIENTS = (
    Client("confluent-kafka", _python("confluent")),
    Client(
        "kafka-python",
        _python("kafka_python"),
        Limits(needs_key_or_value=True, headers_it_cannot_set=frozenset(["null"])),
    ),
    Client("aiokafka", _python("aio"), Limits(needs_key_or_value=True)),
    Client(
        "kcat",
        building.kcat,
        Limits(sets_timestamps=False, empty_is_null=True),
    ),
    Client("Java 4.3.0", lambda: building.java("4.3.0")),
    Client("Java 3.9.1", lambda: building.java("3.9.1")),
    Client("franz-go", lambda: building.go("franz")),
    Client("sarama", lambda: building.go("sarama")),
    Client("kafkajs", building.node, Limits(headers_it_cannot_set=frozenset(["null"]))),
)

KNOWN_GAPS: dict[tuple[str, str], str] = {}
"""By client and feature: what is known not to hold with our broker, and why. A gap that has closed fails the test."""
