"""A real `barnabas serve` in a process of its own, for tests: started, awaited, stopped and started again.

    with start_daemon(tmp_path, "num.partitions=3") as daemon:
        connect(daemon.host, daemon.port)

Every wait has a bound, and what fails says why: the daemon's own log is part of the message.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

REPOSITORY = Path(__file__).resolve().parents[2]
READY_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 30.0
_POLL_INTERVAL_S = 0.01
_LOG_TAIL_CHARACTERS = 4000


class DaemonError(AssertionError):
    """The daemon did not do what the test needs; the message ends with its log."""


class Daemon:
    """One broker process and its data directory; `host`, `port`, `metrics_port` and `pid` are the running one's."""

    def __init__(self, directory: Path, settings: tuple[str, ...], environ: Mapping[str, str] | None = None) -> None:
        self.directory = directory
        self.log_path = directory / "daemon.log"
        self.data_directory = directory / "data"
        self.settings = settings
        self.host = "127.0.0.1"
        self.port = 0
        self.metrics_port = 0
        self.ready: dict[str, object] = {}
        self._environ = dict(environ or {})
        self._ready_file = directory / "ready.json"
        self._process: subprocess.Popen[bytes] | None = None
        self._starts = 0

    @property
    def bootstrap(self) -> str:
        """`host:port` for a client's configuration."""
        return f"{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        """The process id of the running daemon."""
        if self._process is None:
            raise DaemonError("the daemon is not running")
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process is there and has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        """What the daemon wrote to its standard output and error, over all its starts."""
        return self.log_path.read_text(errors="replace") if self.log_path.exists() else ""

    def command(self) -> list[str]:
        """The command line of the next start. The first takes free ports; later ones take the same ports again."""
        defaults = {
            "listeners": f"{self.host}:{self.port}",
            "metrics.listener": f"127.0.0.1:{self.metrics_port}",
            "log.dirs": str(self.data_directory),
            # Tests write records of any year, and a slow machine reaches the first run of log-retention.
            "log.retention.ms": "-1",
        }
        named = {setting.split("=", 1)[0] for setting in self.settings}
        command = [sys.executable, "-m", "barnabas", "serve", "--ready-file", str(self._ready_file)]
        for setting in (*(f"{name}={value}" for name, value in defaults.items() if name not in named), *self.settings):
            command += ["--set", setting]
        return command

    def start(self) -> None:
        """Start the process and wait for its ready file. Raises DaemonError when it ends or stays silent."""
        if self.running:
            raise DaemonError("the daemon is running already")
        self._ready_file.unlink(missing_ok=True)
        environ = {name: value for name, value in os.environ.items() if not name.startswith("BARNABAS_LOG")}
        self._starts += 1
        with self.log_path.open("ab") as log:
            log.write(f"--- start {self._starts}\n".encode())
            log.flush()
            self._process = subprocess.Popen(
                self.command(),
                cwd=REPOSITORY,
                env={**environ, "PYTHONUNBUFFERED": "1", **self._environ},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # a Ctrl-C of pytest must not reach it before the fixture's own stop
            )
        self._await_ready()

    def stop(self, signal_number: int = signal.SIGTERM) -> int:
        """Send SIGTERM (or another signal), wait for the end and return the exit code; 0 is a clean shutdown."""
        if self._process is None:
            return 0
        process = self._process
        if process.poll() is None:
            process.send_signal(signal_number)
        try:
            code = process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(STOP_TIMEOUT_S)
            raise DaemonError(f"no exit within {STOP_TIMEOUT_S} s of signal {signal_number}\n{self._tail()}") from None
        self._process = None
        return code

    def kill(self) -> None:
        """End it at once with SIGKILL, as a crash would: no flush, no clean-shutdown marker."""
        self.stop(signal.SIGKILL)

    def restart(self, *, clean: bool = True) -> None:
        """Stop (or kill, when not `clean`) and start again on the same ports and directory."""
        if clean:
            code = self.stop()
            if code != 0:
                raise DaemonError(f"the daemon ended with {code} where 0 was due\n{self._tail()}")
        else:
            self.kill()
        self.start()

    def __enter__(self) -> Daemon:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self.running:
            return
        if error is None:
            self.stop()
            return
        self.kill()
        error.add_note(self._tail())

    def _await_ready(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + READY_TIMEOUT_S
        while not self._ready_file.exists():
            code = self._process.poll()
            if code is not None:
                self._process = None
                raise DaemonError(f"the daemon ended with {code} before it was ready\n{self._tail()}")
            if time.monotonic() > deadline:
                self.kill()
                raise DaemonError(f"the daemon was not ready within {READY_TIMEOUT_S} s\n{self._tail()}")
            time.sleep(_POLL_INTERVAL_S)  # a bounded wait on another process, which has no event to offer
        self.ready = json.loads(self._ready_file.read_text())
        self.host = str(self.ready["host"])
        self.port = int(str(self.ready["port"]))
        self.metrics_port = int(str(self.ready.get("metrics_port") or 0))

    def _tail(self) -> str:
        return f"--- the daemon's log ({self.log_path})\n{self.log[-_LOG_TAIL_CHARACTERS:]}"


def start_daemon(directory: Path, *settings: str, environ: Mapping[str, str] | None = None) -> Daemon:
    """A ready daemon on free ports of 127.0.0.1 with its data in `directory`/data.

    `settings` are `name=value` texts for `--set`; those for listeners, metrics.listener and log.dirs replace the
    defaults. The caller ends it: use it as a context manager, or call `stop()` or `kill()`.
    """
    directory.mkdir(parents=True, exist_ok=True)
    daemon = Daemon(directory, settings, environ)
    daemon.start()
    return daemon
