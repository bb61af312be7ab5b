"""A broker in a process of its own, for tests: what `barnabas.clients.testing` and the pytest plugin start.

It never outlives the process that started it: its standard input is a pipe that closes with this process, however that
ends (`serve --stop-with-stdin`). Linux's parent-death signal would not do: it follows the thread that forked, and the
broker would end with that thread.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Coroutine, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Protocol, Self, TypeVar

if TYPE_CHECKING:
    from barnabas.clients.config import AdminConfig

Result = TypeVar("Result")

READY_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 30.0
_POLL_INTERVAL_S = 0.01
_LOG_TAIL_CHARACTERS = 4000


class BrokerProcessError(AssertionError):
    """The broker failed to start or stop; the message ends with its log."""


class _PortTakenError(BrokerProcessError):
    """Another program has the port of an earlier start."""


class SpawnedProcess(Protocol):
    """The part of `subprocess.Popen` that a BrokerProcess uses."""

    pid: int

    @property
    def stdin(self) -> IO[bytes] | None:
        """The pipe whose end stops the broker."""
        ...

    def poll(self) -> int | None:
        """Return the exit code, None while the process runs."""
        ...

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the exit. Raises subprocess.TimeoutExpired."""
        ...

    def send_signal(self, sig: int, /) -> None:
        """Send a signal."""
        ...

    def kill(self) -> None:
        """Send SIGKILL."""
        ...


class BrokerProcess:
    """A broker process and its directory; `host`, `port`, `metrics_port` and `pid` are those of the running process.

    A restart keeps data and ports. As a context manager it starts the process unless it runs, and stops it at the end;
    an exception that leaves the block gets the end of the broker's log as a note.
    """

    def __init__(
        self, directory: Path, settings: Mapping[str, object] | None = None, environ: Mapping[str, str] | None = None
    ) -> None:
        """`settings` are broker properties (Kafka's names) that override the defaults of `command`.

        The process gets this one's environment without BARNABAS_ variables, plus `environ`.
        """
        self.directory = directory
        self.log_path = directory / "daemon.log"
        self.data_directory = directory / "data"
        self.settings = dict(settings or {})
        self.host = "127.0.0.1"
        self.port = 0
        self.metrics_port = 0
        self.ready: dict[str, object] = {}
        self._environ = dict(environ or {})
        self._ready_file = directory / "ready.json"
        self._process: SpawnedProcess | None = None
        self._starts = 0

    @property
    def bootstrap(self) -> str:
        """`host:port`, for a client's `bootstrap.servers`."""
        return f"{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        """The process id of the running daemon."""
        if self._process is None:
            raise BrokerProcessError("the daemon is not running")
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        """The daemon's standard output and error, of all its starts."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def command(self) -> list[str]:
        """The command line of the next start. The first start takes free ports, later ones the same ports."""
        settings = {
            "listeners": self._listeners(),
            "metrics.listener": f"127.0.0.1:{self.metrics_port}",
            "log.dirs": str(self.data_directory),
            # Tests write records of any year, and a slow machine reaches the first run of log-retention.
            "log.retention.ms": "-1",
            **self.settings,
        }
        serve = [sys.executable, "-m", "barnabas", "serve", "--stop-with-stdin", "--ready-file", str(self._ready_file)]
        return serve + [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]

    def start(self) -> None:
        """Start the process and wait until it serves. Raises BrokerProcessError if it ends or is not ready in time.

        While another program has a port of an earlier start, it is tried again: any program that asks for a free port
        may get this one.
        """
        if self.running:
            raise BrokerProcessError("the daemon is running already")
        self._close_ended()
        self.directory.mkdir(parents=True, exist_ok=True)
        deadline = time.monotonic() + READY_TIMEOUT_S
        while True:
            try:
                self._start_once()
                return
            except _PortTakenError:
                if time.monotonic() > deadline:
                    raise
            time.sleep(_POLL_INTERVAL_S)  # bounded; another program offers no event to wait on

    def stop(self, signal_number: int = signal.SIGTERM) -> int:
        """Send SIGTERM (or another signal), wait for the exit and return its code; 0 is a clean shutdown."""
        process = self._process
        if process is None:
            return 0
        if process.poll() is None:
            process.send_signal(signal_number)
        try:
            code = process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(STOP_TIMEOUT_S)
            raise BrokerProcessError(
                f"no exit within {STOP_TIMEOUT_S} s of signal {signal_number}\n{self.log_tail()}"
            ) from None
        finally:
            _close_pipe(process)  # not before: that is a stop signal too, and a second one ends the daemon immediately
        self._process = None
        return code

    def kill(self) -> None:
        """End the process with SIGKILL, like a crash: no flush, no clean-shutdown marker."""
        self.stop(signal.SIGKILL)

    def restart(self, *, clean: bool = True) -> None:
        """Stop (or kill, when not `clean`) and start again on the same ports and directory."""
        if clean:
            code = self.stop()
            if code != 0:
                raise BrokerProcessError(f"the daemon ended with {code}, expected 0\n{self.log_tail()}")
        else:
            self.kill()
        self.start()

    def create_topic(self, name: str, *, partitions: int = 1, configs: Mapping[str, str] | None = None) -> None:
        """Create a topic and return once it is usable; may be called with or without a running event loop.

        Raises BrokerError if the broker refuses (the topic exists, a value is invalid).
        """
        from barnabas.clients.admin.admin import Admin  # here: pytest sessions without a broker load the plugin too

        async def create() -> None:
            async with Admin(self._admin_config()) as admin:
                await admin.create_topic(name, partitions=partitions, configs=dict(configs or {}))

        self._run(create())

    def log_tail(self) -> str:
        """The end of the log, under a line with the path of the whole log."""
        return f"--- the daemon's log ({self.log_path})\n{self.log[-_LOG_TAIL_CHARACTERS:]}"

    def __enter__(self) -> Self:
        if not self.running:
            self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self.running:
            self._close_ended()
            return
        if error is None:
            self.stop()
            return
        self.kill()
        error.add_note(self.log_tail())

    def _start_once(self) -> None:
        self._ready_file.unlink(missing_ok=True)
        self._starts += 1
        heading = f"--- start {self._starts}\n"
        with self.log_path.open("ab") as log:
            log.write(heading.encode())
            log.flush()
            environ = {**_own_environ(), "PYTHONUNBUFFERED": "1", **self._environ}
            self._process = self._spawn(self.command(), environ, log)
        try:
            self._await_ready(self._process)
        except BrokerProcessError as error:
            _, _, said = self.log.rpartition(heading)
            if self.port and "cannot listen on" in said and "in use" in said:
                raise _PortTakenError(*error.args) from None
            raise

    def _close_ended(self) -> None:
        """Close the pipe of a process that has ended by itself."""
        if self._process is not None:
            _close_pipe(self._process)

    def _listeners(self) -> str:
        """Return the value of `listeners`; a port of 0 is a free one."""
        return f"{self.host}:{self.port}"

    def _admin_config(self) -> AdminConfig:
        """Return how the methods of this class connect."""
        from barnabas.clients.config import AdminConfig

        return AdminConfig(bootstrap=self.bootstrap)

    def _spawn(self, command: list[str], environ: Mapping[str, str], log: IO[bytes]) -> SpawnedProcess:
        return subprocess.Popen(
            command,
            cwd=self.directory,  # else a folder called `barnabas` beside the user's tests would be imported
            env=environ,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C in the tests must not stop the broker before the tests do
        )

    def _run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run a coroutine on a thread of its own, because the caller's thread may already run a loop."""
        import asyncio
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(1) as loop_thread:
            return loop_thread.submit(asyncio.run, work).result()

    def _await_ready(self, process: SpawnedProcess) -> None:
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not self._ready_file.exists():
            code = process.poll()
            if code is not None:
                _close_pipe(process)
                self._process = None
                raise BrokerProcessError(f"the daemon ended with {code} before it was ready\n{self.log_tail()}")
            if time.monotonic() > deadline:
                self.kill()
                raise BrokerProcessError(f"the daemon was not ready within {READY_TIMEOUT_S} s\n{self.log_tail()}")
            time.sleep(_POLL_INTERVAL_S)  # bounded; another process offers no event to wait on
        self.ready = json.loads(self._ready_file.read_text())
        self.host = str(self.ready["host"])
        self.port = int(str(self.ready["port"]))
        self.metrics_port = int(str(self.ready.get("metrics_port") or 0))


def _own_environ() -> dict[str, str]:
    """Return the broker's environment. A `barnabas` that was imported from a checkout is imported there too."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("BARNABAS_")}
    home = Path(__file__).absolute().parents[2]  # of the folder `barnabas`; clients/ in it may be a link
    if home.name not in ("site-packages", "dist-packages"):
        environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(home), environ.get("PYTHONPATH"))))
    return environ


def _close_pipe(process: SpawnedProcess) -> None:
    if process.stdin is not None:
        process.stdin.close()
