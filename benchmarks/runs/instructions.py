"""Instructions in user space of a running broker: by `perf stat` where the machine has the counter, else by callgrind.

They do not vary with the machine's load, as times do.
"""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.brokers import system as systems

_CALLGRIND_START_S = 300.0


class InstructionCounter:
    """Counts by `perf` or by `callgrind`. `prefix` is put before the command of the process."""

    def __init__(self, tool: str, dumps: Path) -> None:
        self.tool = tool
        self.prefix: Sequence[str] = ()
        self._dumps = dumps
        if tool == "callgrind":
            self.prefix = ("valgrind", "--tool=callgrind", f"--callgrind-out-file={dumps}/callgrind.%p")

    def count(self, pid: int, work: Callable[[], object]) -> int:
        """Return a process's instructions while `work` runs. Raises RuntimeError if none are counted."""
        if self.tool == "callgrind":
            subprocess.run(["callgrind_control", "--zero", str(pid)], check=True, capture_output=True)
            work()
            return self._dumped(pid)
        command = ["perf", "stat", "-x,", "-e", "instructions:u", "-p", str(pid)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as perf:
            work()
            perf.send_signal(signal.SIGINT)
            return self._number(perf.communicate()[1])

    def since_start(self, pid: int) -> int | None:
        """Return a process's instructions so far, before any other count; None where only callgrind could tell."""
        return self._dumped(pid) if self.tool == "callgrind" else None

    def _dumped(self, pid: int) -> int:
        subprocess.run(["callgrind_control", "--dump", str(pid)], check=True, capture_output=True)
        dumps = sorted(self._dumps.glob(f"callgrind.{pid}*"), key=lambda path: path.stat().st_mtime)
        said = dumps[-1].read_text() if dumps else ""
        return self._number("\n".join(re.findall(r"^(?:summary|totals): (\d+)", said, re.M)))

    def _number(self, said: str) -> int:
        found = re.match(r"\d+", said)
        if found is None:
            raise RuntimeError(f"{self.tool} counted nothing: {said}")
        return int(found[0])


@contextmanager
def instruction_counter() -> Iterator[InstructionCounter | None]:
    """Yield the counter of this machine, None without perf's counter and callgrind (Debian: valgrind)."""
    tool = _find_tool()
    if tool is None:
        yield None
        return
    if tool == "callgrind":
        systems.START_SECONDS_MAX = _CALLGRIND_START_S
    with tempfile.TemporaryDirectory(prefix="barnabas-callgrind-") as dumps:
        yield InstructionCounter(tool, Path(dumps))


def _find_tool() -> str | None:
    if shutil.which("perf") is not None:
        command = ["perf", "stat", "-x,", "-e", "instructions:u", "true"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0 and done.stderr[:1].isdigit():
            return "perf"
    return "callgrind" if shutil.which("valgrind") and shutil.which("callgrind_control") else None
