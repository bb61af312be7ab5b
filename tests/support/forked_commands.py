"""`barnabas ...` in a forked process, as `subprocess.run` would run it, or running beside the test."""

from __future__ import annotations

import os
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import IO

from tests.support.daemon import REPOSITORY
from tests.support.forking import TIMEOUT_S, ForkedProcess, fork_server


class RunningCommand:
    """A command whose standard input and outputs are pipes, unbuffered on this side."""

    def __init__(self, process: ForkedProcess, stdout: IO[bytes], stderr: IO[bytes]) -> None:
        self.stdin = process.stdin
        self.stdout = stdout
        self.stderr = stderr
        self.send_signal = process.send_signal
        self._process = process

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def wait(self) -> int:
        """Wait for the exit and return its code. Raises subprocess.TimeoutExpired."""
        return self._process.wait(TIMEOUT_S)

    def finish(self, rest: bytes) -> tuple[int, bytes]:
        """Write the rest of its input, and return its exit code and what it wrote to standard error."""
        _write(self.stdin, rest)
        said = self.stderr.read()
        return self.wait(), said


@contextmanager
def running_forked(*arguments: str, environ: Mapping[str, str]) -> Iterator[RunningCommand]:
    """Run a command during the context; it is killed at the end if it has not ended."""
    stdout, stdout_end = os.pipe()
    stderr, stderr_end = os.pipe()
    process = fork_server().start(
        list(arguments), environ=environ, cwd=str(REPOSITORY), stdout=stdout_end, stderr=stderr_end
    )
    os.close(stdout_end)
    os.close(stderr_end)
    with process.stdin, open(stdout, "rb", buffering=0) as out, open(stderr, "rb", buffering=0) as err:
        try:
            yield RunningCommand(process, out, err)
        finally:
            process.kill()
            process.wait(TIMEOUT_S)


def run_forked(*arguments: str, environ: Mapping[str, str], stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run a command with a pipe as standard input; its output goes to files."""
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        process = fork_server().start(
            list(arguments), environ=environ, cwd=str(REPOSITORY), stdout=stdout.fileno(), stderr=stderr.fileno()
        )
        writer = threading.Thread(target=_write, args=(process.stdin, stdin))
        writer.start()
        try:
            code = process.wait(TIMEOUT_S)
        finally:
            process.kill()
            writer.join(TIMEOUT_S)
        stdout.seek(0)
        stderr.seek(0)
        return subprocess.CompletedProcess(list(arguments), code, stdout.read(), stderr.read())


def _write(pipe: IO[bytes], data: bytes) -> None:
    rest = memoryview(data)
    with pipe:
        try:
            while rest:
                rest = rest[pipe.write(rest) :]
        except BrokenPipeError:  # the command has ended without reading everything
            return
