"""The processes of Barnabas and Apache Kafka, each on a directory of its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from tests.support.daemon import start_daemon
from tests.support.kafka.apache_kafka import Kafka

VERSION = "4.3.0"
NEVER_MS = str(10**10)
SETTINGS = {
    "log.retention.check.interval.ms": NEVER_MS,
    "log.flush.offset.checkpoint.interval.ms": "1000000000",
    "log.flush.start.offset.checkpoint.interval.ms": "1000000000",
    "log.initial.task.delay.ms": "1000000000",
    "producer.id.expiration.check.interval.ms": "1000000000",
    "log.index.size.max.bytes": "65536",
    "log.segment.delete.delay.ms": NEVER_MS,
    "auto.create.topics.enable": "false",
    "log.cleaner.enable": "false",
    "transaction.state.log.num.partitions": "1",
    "offsets.topic.num.partitions": "1",
}
"""Nothing happens by time alone, because the brokers' timers do not run together."""
SETTINGS_WITH_CLEANER = SETTINGS | {
    "log.cleaner.enable": "true",
    "log.cleaner.backoff.ms": "30",
    "log.cleaner.dedupe.buffer.size": "4194304",
}
"""A topic is cleaned when the script allows it by its config."""


class Process(Protocol):
    """A broker that can be ended and started again on its directory."""

    data: Path

    def start(self) -> tuple[str, int]:
        """Start it; return its address."""
        ...

    def end(self, *, kill: bool) -> None:
        """Stop it cleanly, or kill it."""
        ...

    def log(self) -> str:
        """The end of its log."""
        ...


class KafkaProcess:
    """Apache Kafka."""

    def __init__(self, directory: Path, settings: Mapping[str, str]) -> None:
        self.data = directory / "data"
        self._kafka = Kafka(VERSION, self.data, directory)
        self._kafka.settings |= settings
        self._kafka.format()
        self._broker: Any = None

    def start(self) -> tuple[str, int]:
        self._broker = self._kafka.start()
        return "127.0.0.1", self._broker.port

    def end(self, *, kill: bool) -> None:
        broker, self._broker = self._broker, None
        if broker is not None:
            broker.kill() if kill else broker.stop()

    def log(self) -> str:
        return "" if self._broker is None else str(self._broker.log[-3000:])


class BarnabasProcess:
    """Our daemon."""

    def __init__(self, directory: Path, settings: Mapping[str, str], kernel: str | None = None) -> None:
        """`kernel`: "python" for the Python code instead of compiled kernels."""
        self.data = directory / "data"
        self._directory = directory
        self._settings = settings
        self._environ = None if kernel is None else {"BARNABAS_KERNEL": kernel}
        self._daemon: Any = None

    def start(self) -> tuple[str, int]:
        if self._daemon is None:
            settings = (f"{name}={value}" for name, value in self._settings.items())
            self._daemon = start_daemon(self._directory, *settings, environ=self._environ)
        else:
            self._daemon.start()
        return self._daemon.host, self._daemon.port

    def end(self, *, kill: bool) -> None:
        if self._daemon is None or not self._daemon.running:
            return
        if kill:
            self._daemon.kill()
        else:
            assert self._daemon.stop() == 0, self._daemon.log_tail()

    def log(self) -> str:
        return "" if self._daemon is None else str(self._daemon.log_tail())
