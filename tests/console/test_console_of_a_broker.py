"""`serve --set console.listener`: a console that starts, dies and stops with its broker."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import signal
import sys
from pathlib import Path

import pytest

from barnabas.broker import console_process
from barnabas.broker.startup_error import StartupError
from barnabas.config import BrokerConfig, Setting
from tests.support.console import ConsoleClient
from tests.support.daemon import Daemon, DaemonError, start_daemon, with_fault
from tests.support.eventually import eventually

READY = re.compile(r"console of (\S+) on http://127\.0\.0\.1:(\d+)/")


def console_number(daemon: Daemon, number: int) -> ConsoleClient:
    """The console of the daemon's start with this number, from 1."""

    def read() -> ConsoleClient | None:
        found = READY.findall(daemon.log)
        if len(found) < number:
            return None
        bootstrap, port = found[number - 1]
        assert bootstrap == daemon.bootstrap
        return ConsoleClient(int(port))

    return eventually(read, what=f"start {number} of the console")


def child_of(pid: int) -> int:
    """The only child process."""
    (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(child)


def has_ended(pid: int) -> bool | None:
    """True once a process that is not ours is gone, or waits for its parent."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return True
    return True if state == "Z" else None


def test_the_console_lives_as_long_as_its_broker(tmp_path: Path) -> None:
    with start_daemon(tmp_path, "console.listener=127.0.0.1:0") as daemon:
        assert console_number(daemon, 1).get("/topics").status == 200

        os.kill(child_of(daemon.pid), signal.SIGKILL)
        assert console_number(daemon, 2).get("/topics").status == 200
        assert "the console ended with code -9: starting it again in 0.5 s, restart=1" in daemon.log

        orphan = child_of(daemon.pid)
        daemon.kill()
        eventually(lambda: has_ended(orphan), what="the end of a killed broker's console")

        daemon.start()
        console_number(daemon, 3)
        child = child_of(daemon.pid)
        assert daemon.stop() == 0
        assert has_ended(child)


def test_a_missing_extra_and_a_missing_login_are_said(tmp_path: Path) -> None:
    absent = with_fault(
        tmp_path,
        "import barnabas.broker.console_process as console\nconsole._MODULES = ('starlette', 'no_such_module')\n",
    )
    with pytest.raises(DaemonError, match=r"no_such_module is not installed: pip install 'barnabas\[console\]'"):
        start_daemon(tmp_path / "a", "console.listener=127.0.0.1:0", environ=absent)
    settings = {**CONSOLE, "listeners": "IN://127.0.0.1:9", "listener.security.protocol.map": "IN:SSL"}
    with pytest.raises(StartupError, match="every listener needs TLS, or a login without a password; name a file"):
        command_of(settings, {"IN": 9})


CONSOLE = {"console.listener": "0.0.0.0:8080", "log.dirs": "data"}
LOGIN = {
    "listeners": "OPEN://127.0.0.1:9,IN://127.0.0.1:10",
    "listener.security.protocol.map": "OPEN:PLAINTEXT,IN:SASL_PLAINTEXT",
    "listener.name.in.sasl.enabled.mechanisms": "SCRAM-SHA-256",
}


def command_of(settings: dict[str, str], ports: dict[str, int]) -> list[str]:
    config = BrokerConfig.of({name: Setting(value, "test") for name, value in settings.items()})
    return console_process._command(config, ports)[4:]


def test_people_sign_in_where_the_broker_has_a_login_by_password(tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    ports = {"OPEN": 9, "IN": 10}
    own = ["--stop-with-stdin", "--bootstrap", "127.0.0.1:10", "--listen", "0.0.0.0:8080"]
    assert command_of({**CONSOLE, **LOGIN}, ports) == [*own, "--sign-in", "SCRAM-SHA-256"]
    open_only = {**CONSOLE, "listeners": "OPEN://127.0.0.1:9", "listener.security.protocol.map": "OPEN:PLAINTEXT"}
    assert command_of(open_only, ports) == [*own[:2], "127.0.0.1:9", *own[3:]]

    with_file = {**CONSOLE, **LOGIN, "listeners": "IN://127.0.0.1:10", "console.command.config": str(file)}
    file.write_text("client.id=x\n")
    assert command_of(with_file, ports) == [*own, "--command-config", str(file), "--sign-in", "SCRAM-SHA-256"]
    file.write_text("security.protocol=SASL_PLAINTEXT\n")
    assert command_of(with_file, ports) == [*own, "--command-config", str(file)]


def test_a_line_of_the_console_that_is_too_long_does_not_end_its_watch(caplog: pytest.LogCaptureFixture) -> None:
    console = console_process.ConsoleProcess.__new__(console_process.ConsoleProcess)
    console._command = [sys.executable, "-c", "print('x' * 200_000); print('the next line')"]
    with caplog.at_level(logging.INFO, logger="barnabas"):  # in debug mode, asyncio writes lines of its own
        assert asyncio.run(asyncio.wait_for(console._run(), 60)) == 0
    assert caplog.messages[-1] == "the next line"
    assert "(a line of the console that is too long)" in caplog.messages
