"""One client at two brokers, whose answers must be equal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.support.daemon import Daemon
from tests.support.frame_connection import TIMEOUT_S
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
        """Return what both say. One that has said nothing while the other has answered may be late: it has its time."""
        found = [_outcome(wire) for wire in self.wires]
        if found.count("waits") == 1:
            late = self.wires[found.index("waits")]
            late.socket.settimeout(TIMEOUT_S)
            found[found.index("waits")] = _outcome(late)
        return found

    def call(self, frame: bytes) -> bytes | str:
        """Return the response of both; "closed" or "waits" instead of one. Asserts that they are equal."""
        self.send(frame)
        compiled, python = self.receive()
        if compiled != python or not isinstance(compiled, bytes):  # the next test gets connections that work
            self.close()
            self.wires = [KafkaWire(daemon.host, daemon.port) for daemon in self.daemons]
        assert compiled == python, frame.hex()
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
