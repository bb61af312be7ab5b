"""One client at two brokers, whose answers must be equal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.support.daemon import Daemon
from tests.support.kafka.kafka_wire import KafkaWire


class Pair:
    """The same client at both brokers."""

    def __init__(self, daemons: Sequence[Daemon], topic_ids: dict[str, Any]) -> None:
        self.daemons = daemons
        self.topic_ids = topic_ids
        self.wires = [KafkaWire(daemon.host, daemon.port) for daemon in daemons]

    def close(self) -> None:
        for wire in self.wires:
            wire.socket.close()

    def send(self, frame: bytes) -> None:
        for wire in self.wires:
            wire.socket.sendall(frame)

    def receive(self) -> list[bytes | str]:
        return [_outcome(wire) for wire in self.wires]

    def call(self, frame: bytes) -> bytes | str:
        """Return the response of both; "closed" or "waits" instead of one. Asserts that they are equal."""
        self.send(frame)
        compiled, python = self.receive()
        assert compiled == python, frame.hex()
        if not isinstance(compiled, bytes):
            self.close()
            self.wires = [KafkaWire(daemon.host, daemon.port) for daemon in self.daemons]
        return compiled

    def produce(self, topic: str, batch: bytes | bytearray, partition: int = 0) -> None:
        for wire in self.wires:
            assert wire.produce(9, topic, batch, partition=partition).error_code == 0


def _outcome(wire: KafkaWire) -> bytes | str:
    try:
        return wire.receive_frame()
    except TimeoutError:
        return "waits"
    except (ConnectionError, AssertionError, EOFError):
        return "closed"
