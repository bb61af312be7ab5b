"""A broker of our own: `barnabas serve` as a process on free ports, stopped by SIGTERM like any service."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

START_DEADLINE_S = 30.0
STOP_DEADLINE_S = 30.0

_POLL_INTERVAL_S = 0.005


class BrokerFailedError(Exception):
    """The broker did not start or did not stop as it should; the message says how and ends with its log's tail."""


class BrokerProcess:
    """One run of the broker on `directory`/data. Use it as a context manager; `stop` ends it and checks how.

    Attributes once started: `bootstrap` (host:port) and `start_seconds` (from fork to the ready file).
    """

    def __init__(self, directory: Path, properties: Mapping[str, str]) -> None:
        self.data_directory = directory / "data"
        self._ready_file = directory / "ready.json"
        self._log_file = directory / "broker.log"
        self._properties = {
            "listeners": "127.0.0.1:0",
            "metrics.listener": "127.0.0.1:0",
            "log.dirs": str(self.data_directory),
            **properties,
        }
        self._process: subprocess.Popen[bytes] | None = None
        self.bootstrap = ""
        self.start_seconds = 0.0

    def __enter__(self) -> Self:
        self._ready_file.unlink(missing_ok=True)
        command = [sys.executable, "-m", "barnabas", "serve", "--ready-file", str(self._ready_file)]
        for name, value in self._properties.items():
            command += ["--set", f"{name}={value}"]
        started = time.monotonic()
        with self._log_file.open("ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            self._wait_until_ready(self._process, started + START_DEADLINE_S)
        except BaseException:
            self._kill()
            raise
        self.start_seconds = time.monotonic() - started
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._kill()

    def stop(self) -> float:
        """SIGTERM, wait, and the seconds that it took. Raises BrokerFailedError unless the exit code is 0."""
        process = self._process
        if process is None:
            raise BrokerFailedError("the broker was not started")
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        try:
            code = process.wait(STOP_DEADLINE_S)
        except subprocess.TimeoutExpired as error:
            raise self._failed(f"the broker still runs {STOP_DEADLINE_S:.0f} s after SIGTERM") from error
        if code != 0:
            raise self._failed(f"the broker ended with {code} after SIGTERM, not 0")
        return time.monotonic() - began

    def resident_mib(self) -> float | None:
        """The process's resident memory in MiB; None where /proc does not tell."""
        if self._process is None:
            return None
        try:
            status = Path(f"/proc/{self._process.pid}/status").read_text()
        except OSError:  # no Linux
            return None
        for line in status.splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        return None

    def _wait_until_ready(self, process: subprocess.Popen[bytes], deadline: float) -> None:
        while not self._ready_file.exists():
            code = process.poll()
            if code is not None:
                raise self._failed(f"the broker ended with {code} while starting")
            if time.monotonic() > deadline:
                raise self._failed(f"the broker was not ready after {START_DEADLINE_S:.0f} s")
            time.sleep(_POLL_INTERVAL_S)
        ready = json.loads(self._ready_file.read_text())
        self.bootstrap = f"{ready['host']}:{ready['port']}"

    def _kill(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def _failed(self, sentence: str) -> BrokerFailedError:
        tail = self._log_file.read_text(errors="replace").splitlines()[-10:]
        return BrokerFailedError("\n    ".join([f"{sentence}; the end of its log:", *tail]))
