"""What a service manager is told, by a socket as systemd names it in NOTIFY_SOCKET."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from barnabas.broker.service_manager import READY, VARIABLE, notify
from tests.support.daemon import start_fresh_daemon

TIMEOUT_S = 30


@contextmanager
def service_manager(address: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(address)
        manager.settimeout(TIMEOUT_S)
        yield manager


def test_a_broker_says_ready_once_it_serves_and_stopping_when_it_stops(tmp_path: Path) -> None:
    with service_manager(str(tmp_path / "notify")) as manager:
        environ = {**os.environ, VARIABLE: str(tmp_path / "notify")}
        with start_fresh_daemon(tmp_path / "broker", environ=environ) as daemon:
            assert manager.recv(1000).decode() == f"READY=1\nSTATUS=serving, port {daemon.port}\n"
            socket.create_connection((daemon.host, daemon.port), timeout=30).close()
        assert manager.recv(1000) == b"STOPPING=1\nSTATUS=flushing the logs\n"
        manager.setblocking(False)
        with pytest.raises(BlockingIOError):
            manager.recv(1000)


def test_an_abstract_address_is_understood(monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"barnabas-test-{os.getpid()}"
    monkeypatch.setenv(VARIABLE, f"@{name}")

    with service_manager(f"\0{name}") as manager:
        notify(READY, "serving")

        assert manager.recv(1000) == b"READY=1\nSTATUS=serving\n"


def test_a_manager_that_is_gone_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "gone"))

    notify(READY, "serving")

    assert "cannot tell the service manager READY=1" in caplog.text


def test_a_manager_that_does_not_read_yet_is_told_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address = str(tmp_path / "notify")
    monkeypatch.setenv(VARIABLE, address)
    with service_manager(address) as manager, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
        other.setblocking(False)
        other.connect(address)
        waiting = 0
        with contextlib.suppress(BlockingIOError):
            while True:
                other.send(b"x")
                waiting += 1

        notify(READY, "serving")

        assert [manager.recv(1000) for _ in range(waiting)] == [b"x"] * waiting
        assert manager.recv(1000) == b"READY=1\nSTATUS=serving\n"


def test_without_a_manager_nothing_is_sent(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)

    notify(READY, "serving")

    assert not caplog.text
