"""A client that repeats bad requests gets an answer to each, and few lines in the log."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from barnabas.broker.repeated_warnings import LINES
from barnabas.protocol.messages.api_key import ApiKey
from tests.support.daemon import Daemon, start_daemon
from tests.support.kafka.kafka_wire import framed
from tests.support.wire import WireClient, new_host

TIMES = 5 * LINES


def lines_with(daemon: Daemon, *texts: str) -> int:
    return sum(all(text in line for text in texts) for line in daemon.log.splitlines())


@pytest.mark.parametrize(
    "frame",
    [
        struct.pack(">i", -5),
        framed(struct.pack(">hhih", ApiKey.METADATA, 77, 1, -1)),
        framed(struct.pack(">hhih", ApiKey.PRODUCE, 3, 1, -1)),
    ],
    ids=["size", "unserved version", "body does not decode"],
)
def test_closed_connections_have_few_lines(daemon: Daemon, frame: bytes) -> None:
    host = new_host()
    for _ in range(TIMES):
        with WireClient(daemon.host, daemon.port, host) as client:
            client.socket.sendall(frame)
            assert client.is_closed_by_broker()
    assert lines_with(daemon, "closing the connection of", f"{host}:") == LINES


def test_connections_above_the_limit_have_few_lines(tmp_path: Path) -> None:
    host = new_host()
    with start_daemon(tmp_path, "max.connections.per.ip=1") as daemon, WireClient(daemon.host, daemon.port, host):
        for _ in range(TIMES):
            with WireClient(daemon.host, daemon.port, host) as client:
                assert client.is_closed_by_broker()
        assert lines_with(daemon, "refusing the connection of", f"{host}:") == LINES
