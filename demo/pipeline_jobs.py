"""Jobs of `barnabas pipeline` as processes, run to completion or killed in the middle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

JOB_DEADLINE_S = 900.0
_LOOK_S = 0.05
_SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""JVM flags for jobs of a minute each, most of which the optimizing compiler would otherwise take."""


class JobError(Exception):
    """A job failed or timed out; the message contains the end of its output."""


@dataclass(frozen=True, slots=True)
class JobSummary:
    """The summary that a job printed with --json."""

    records: int
    size_bytes: int
    files: int
    seconds: float
    details: Mapping[str, int | str]


class PipelineJobs:
    """Runs jobs, one at a time. Their standard error is kept in `directory`/jobs.log."""

    def __init__(self, directory: Path, master: str) -> None:
        self.done: list[tuple[str, JobSummary]] = []
        self._log = directory / "jobs.log"
        self._master = master

    def run(self, *arguments: str) -> JobSummary:
        """Run a job to its end. Raises JobError."""
        with self._log.open("a") as log:
            process = self._start(arguments, log)
            try:
                output, _ = process.communicate(timeout=JOB_DEADLINE_S)
            except subprocess.TimeoutExpired as error:
                raise JobError(f"{arguments[0]} did not end in {JOB_DEADLINE_S:.0f} s{self._tail()}") from error
            finally:
                if process.poll() is None:  # Ctrl-C reaches only this process: the job runs in its own session
                    _kill(process)
        if process.returncode != 0:
            raise JobError(f"{arguments[0]} ended with {process.returncode}{self._tail()}")
        said = json.loads(output)
        names = {"job", "records", "bytes", "files", "seconds"}
        details = {name: value for name, value in said.items() if name not in names}
        summary = JobSummary(said["records"], said["bytes"], said["files"], said["seconds"], details)
        self.done.append((arguments[0], summary))
        return summary

    def kill_when(self, arguments: tuple[str, ...], is_time: Callable[[], bool]) -> float:
        """Start a job; once `is_time` returns true, send SIGKILL to it, its JVM and its workers. Return the seconds.

        Raises JobError when the job ends before that.
        """
        began = time.monotonic()
        with self._log.open("a") as log:
            process = self._start(arguments, log)
            try:
                while not is_time():
                    if process.poll() is not None:
                        raise JobError(f"{arguments[0]} ended with {process.returncode} before its kill{self._tail()}")
                    if time.monotonic() - began > JOB_DEADLINE_S:
                        raise JobError(f"{arguments[0]} wrote nothing within {JOB_DEADLINE_S:.0f} s{self._tail()}")
                    time.sleep(_LOOK_S)
            finally:
                _kill(process)
        return time.monotonic() - began

    def _start(self, arguments: tuple[str, ...], log: IO[str]) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "barnabas", "pipeline", *arguments, "--master", self._master, "--json"]
        return subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
            env={
                "JDK_JAVA_OPTIONS": _SHORT_LIVED,
                **os.environ,
                "SPARK_LOCAL_DIRS": str(self._log.with_name("spark")),  # killed jobs leave their temporary files
            },
        )

    def _tail(self) -> str:
        lines = self._log.read_text(errors="replace").splitlines()[-5:]
        return "".join(f"\n      {line}" for line in lines)


def _kill(process: subprocess.Popen[str]) -> None:
    """Kill the whole session: the driver, its JVM, and the JVM's Python workers."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it has ended since the check
    process.wait()
    if process.stdout is not None:
        process.stdout.close()
