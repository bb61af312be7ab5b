"""A program of other people that tests start, kill and start again."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.eventually import eventually

_END_TIMEOUT_S = 30
_TAIL_CHARACTERS = 4000


class Program:
    """A process that is started again with the same arguments; as a context manager it runs, and is killed at the end.

    An exception that leaves the context gets the end of the process's output as a note.
    """

    def __init__(self, directory: Path, command: Sequence[str], environ: Mapping[str, str] | None = None) -> None:
        """`directory` is made if necessary, and is the process's working directory; `environ` is added to this one's
        environment without the variables that would change a JVM.
        """
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._command = list(command)
        self._environ = dict(environ or {})
        self._log_path = directory / "output.log"
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self.kill()
        if error is not None:
            error.add_note(f"--- output of {self._command[0]}\n{self.output[-_TAIL_CHARACTERS:]}")

    @property
    def output(self) -> str:
        """The output of all starts."""
        return self._log_path.read_text(errors="replace") if self._log_path.exists() else ""

    @property
    def lines(self) -> list[str]:
        """The complete lines of the output of all starts."""
        return self.output.split("\n")[:-1]

    @property
    def running(self) -> bool:
        """Whether the process was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the process."""
        environ = {name: value for name, value in os.environ.items() if not name.startswith(("KAFKA_", "JAVA_TOOL"))}
        with self._log_path.open("ab") as log:
            self._process = subprocess.Popen(
                self._command,
                cwd=self._directory,
                env={**environ, **self._environ},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def kill(self) -> None:
        """Send SIGKILL."""
        self.stop(signal.SIGKILL)

    def stop(self, signal_number: int = signal.SIGTERM) -> int:
        """Send a signal, wait for the end, and return the exit code."""
        assert self._process is not None
        self._process.send_signal(signal_number)
        return self._process.wait(_END_TIMEOUT_S)

    def wait(self, timeout_s: float) -> int:
        """Wait for the end, and return the exit code. Raises subprocess.TimeoutExpired."""
        assert self._process is not None
        return self._process.wait(timeout_s)

    def wait_for_output(self, text: str) -> None:
        """Wait until the text has been printed. Raises AssertionError if the process ends before."""

        def is_printed() -> bool | None:
            assert self._process is not None
            assert self._process.poll() is None, f"the program ended with {self._process.returncode}"
            return text in self.output or None

        eventually(is_printed, what=f"{text!r} in the output")
