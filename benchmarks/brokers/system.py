"""Systems under measurement: starting one on an empty directory, and its process's figures from /proc.

Implementations: Barnabas here, Apache Kafka in apache_kafka.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from benchmarks.requests.kafka_dialect import NO_CONFIGS, KafkaDialect

START_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 30.0
_CLOCK_TICKS = os.sysconf("SC_CLK_TCK")


class System(Protocol):
    """A system that can be measured."""

    name: str
    dialect: KafkaDialect
    warm_gigabytes: float
    """Amount produced and fetched as a warm-up."""
    warm_seconds: float
    """Duration of the warm-up with one-record requests."""

    def start(self, directory: Path) -> Running: ...

    def restart(self, directory: Path) -> Running: ...


class Barnabas:
    """The broker of this repository, run by this Python."""

    warm_gigabytes = 0.1
    warm_seconds = 0.2

    def __init__(
        self,
        settings: list[str],
        name: str = "Barnabas",
        program: Sequence[str] = (sys.executable, "-m", "barnabas"),
        listeners: Sequence[str] = (),
        kernel: str | None = None,
    ) -> None:
        """`listeners` (NAME://host:port) are added to the PLAINTEXT one; `kernel` is BARNABAS_KERNEL.

        `program` is the command before `serve`.
        """
        self._environ = {} if kernel is None else {"BARNABAS_KERNEL": kernel}
        self._listeners = listeners
        self.name = name
        self._program = program
        self.dialect = KafkaDialect()
        self._settings = settings

    def start(self, directory: Path) -> Running:
        """Start on an empty `directory` and wait for an answer. Raises RuntimeError when the process exits instead."""
        port = free_port()
        settings = [
            ",".join([f"listeners=PLAINTEXT://127.0.0.1:{port}", *self._listeners]),
            "metrics.listener=127.0.0.1:0",
            f"log.dirs={directory / 'data'}",
            *self._settings,
        ]
        command = [*self._program, "serve", "--log-level", "warning"]
        for setting in settings:
            command += ["--set", setting]
        return start_process(command, directory, port, self.dialect, self._environ)

    def restart(self, directory: Path) -> Running:
        """Start on a directory that `start` was called with and whose broker was killed."""
        return self.start(directory)


def start_process(
    command: list[str], directory: Path, port: int, dialect: KafkaDialect, environ: Mapping[str, str] = NO_CONFIGS
) -> Running:
    """Run `command` and wait until it answers on `port`; its output goes to a file, shown if it exits instead.

    `environ` is added to this process's environment.
    """
    with (directory / "broker.log").open("wb") as log:
        started = time.monotonic()
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, **environ}
        )
    try:
        _await_hello(process, port, dialect)
    except BaseException:
        process.kill()
        process.wait()
        sys.stderr.write((directory / "broker.log").read_text(errors="replace"))
        raise
    return Running(process, "127.0.0.1", port, started=started, start_seconds=time.monotonic() - started)


class Running:
    """A running system. `started`: monotonic time of its exec; `start_seconds`: from there to its first answer."""

    def __init__(
        self, process: subprocess.Popen[bytes], host: str, port: int, *, started: float, start_seconds: float
    ) -> None:
        self.host = host
        self.port = port
        self.started = started
        self.start_seconds = start_seconds
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    def connect(self) -> socket.socket:
        connection = socket.create_connection((self.host, self.port), timeout=30)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def cpu_seconds(self) -> float:
        """Return user and system time of all threads so far, in clock ticks of 10 ms."""
        return cpu_seconds_of(self.pid)

    def rss_mib(self) -> float:
        """Return resident memory: VmRSS, including shared file pages."""
        return rss_mib_of(self.pid)

    def kill(self) -> None:
        """Send SIGKILL and wait."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """Send SIGTERM, and SIGKILL after a timeout. Raises RuntimeError unless the exit code is 0."""
        self._process.send_signal(signal.SIGTERM)
        try:
            code = self._process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            raise RuntimeError(f"the broker did not stop within {STOP_SECONDS_MAX:.0f} s") from None
        if code not in (0, 128 + signal.SIGTERM):  # a JVM exits with 128 + signal number
            raise RuntimeError(f"the broker exited with {code}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.stop()
        elif self._process.poll() is None:
            self.kill()


def rss_mib_of(pid: int) -> float:
    """Return resident memory, VmRSS, including shared file pages. Raises RuntimeError if the process is gone."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"process {pid} is gone")


def cpu_seconds_of(pid: int, *, with_ended_children: bool = False) -> float:
    """Return user and system time of all threads of a process so far, in clock ticks of 10 ms."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(map(int, fields[11 : 15 if with_ended_children else 13])) / _CLOCK_TICKS


def _await_hello(process: subprocess.Popen[bytes], port: int, dialect: KafkaDialect) -> None:
    give_up = time.monotonic() + START_SECONDS_MAX
    while time.monotonic() < give_up:
        if process.poll() is not None:
            raise RuntimeError(f"the broker exited with {process.returncode} while starting")
        try:
            connection = socket.create_connection(("127.0.0.1", port), timeout=START_SECONDS_MAX)
        except ConnectionRefusedError:
            time.sleep(0.001)
            continue
        with connection:
            dialect.say_hello(connection)
        return
    raise RuntimeError(f"no answer within {START_SECONDS_MAX:.0f} s of the start")


def free_port() -> int:
    """Return a free port of 127.0.0.1."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
