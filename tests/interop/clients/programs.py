"""The clients of the matrix: driver programs, their build steps, and the clients' limitations."""

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
    """Returns the driver's command, after building it if needed; skips or fails the test if build tools are missing."""
    member: Callable[[], list[str]]
    """Returns the command of a group member (see tests/support/groups/group_member.py), after building it if needed."""
    limits: Limits = field(default_factory=Limits)


BOTH_PROTOCOLS = Limits(assignors=frozenset(["range", "cooperative-sticky", "consumer"]))


def _python(module: str) -> Callable[[], list[str]]:
    return lambda: [sys.executable, "-m", f"tests.interop.clients.python.{module}"]


def _python_member(library: str) -> Callable[[], list[str]]:
    return lambda: [sys.executable, "-m", "tests.support.groups.group_member", library]


CLIENTS = (
    Client("confluent-kafka", _python("confluent"), _python_member("confluent"), BOTH_PROTOCOLS),
    Client(
        "kafka-python",
        _python("kafka_python"),
        _python_member("kafka-python"),
        Limits(needs_key_or_value=True, headers_it_cannot_set=frozenset(["null"]), tries_in_a_group=2),
    ),
    Client(
        "aiokafka",
        _python("aio"),
        _python_member("aiokafka"),
        Limits(needs_key_or_value=True, assignors=frozenset(["range"])),
    ),
    Client(
        "kcat",
        building.kcat,
        building.kcat_member,
        Limits(sets_timestamps=False, empty_is_null=True, drops_a_record_when_stopped=True),
    ),
    Client("Java 4.3.0", lambda: building.java("4.3.0"), lambda: building.java("4.3.0", "Member"), BOTH_PROTOCOLS),
    Client("Java 3.9.1", lambda: building.java("3.9.1"), lambda: building.java("3.9.1", "Member"), BOTH_PROTOCOLS),
    Client("franz-go", lambda: building.go("franz"), lambda: [*building.go("franz"), "member"], BOTH_PROTOCOLS),
    Client(
        "sarama",
        lambda: building.go("sarama"),
        lambda: [*building.go("sarama"), "member"],
        Limits(assignors=frozenset(["range"])),
    ),
    Client(
        "kafkajs",
        building.node,
        lambda: building.node("member"),
        Limits(headers_it_cannot_set=frozenset(["null"]), assignors=frozenset(), has_static_members=False),
    ),
)

KNOWN_GAPS: dict[tuple[str, str], str] = {}
"""Reasons of known failures with Barnabas, by client and feature. A listed feature that works fails the test."""
