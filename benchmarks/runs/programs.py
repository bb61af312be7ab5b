"""Compiles and runs the C programs of the benchmarks."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SOURCES = Path(__file__).resolve().parents[1] / "native"


class Programs:
    """The compiled programs in `directory`; a call runs one and returns its JSON."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        headers = max(header.stat().st_mtime for header in SOURCES.glob("*.h"))
        for source in sorted(SOURCES.glob("*.c")):
            program = directory / source.stem
            if not program.exists() or program.stat().st_mtime < max(headers, source.stat().st_mtime):
                compile_program(source, program)

    def load(
        self,
        host: str,
        port: int,
        frames: Path,
        *,
        connections: int,
        depth: int,
        requests: int,
        seconds: float | None = None,
    ) -> dict[str, Any]:
        """Send `frames` repeatedly, at most `depth` unanswered per connection. Result: see load.c."""
        limit = [] if seconds is None else [str(seconds)]
        return self._run("load", host, str(port), str(frames), str(connections), str(depth), str(requests), *limit)

    def transactions(self, host: str, port: int, script: Path, *, transactions: int, seconds: float) -> dict[str, Any]:
        """Run the producers of `script`, one transaction after the other each. Result: see transactions.c."""
        return self._run("transactions", host, str(port), str(script), str(transactions), str(seconds))

    def stream(
        self, host: str, port: int, script: Path, *, rate: float, seconds: float, consumers: int, with_sessions: bool
    ) -> dict[str, Any]:
        """Produce by the clock and consume; stream.c describes script and result."""
        numbers = (str(rate), str(seconds), str(consumers), str(int(with_sessions)))
        return self._run("stream", host, str(port), str(script), *numbers)

    def limits(self, what: str, *arguments: int | Path) -> dict[str, Any]:
        """Measure one limit; limits.c describes arguments and result."""
        return self._run("limits", what, *map(str, arguments))

    @contextmanager
    def smallest_server(self, answer_bytes: int) -> Iterator[tuple[int, int]]:
        """Run the C server that answers every frame with `answer_bytes` and does nothing else; yield (pid, port)."""
        with self._server("limits", "server", str(answer_bytes)) as server:
            yield server

    @contextmanager
    def floor(self, kind: str, first: int, second: int, file: Path) -> Iterator[tuple[int, int]]:
        """Run the server that only moves bytes between sockets and `file`; yield (pid, port). See floor.c."""
        with self._server("floor", kind, str(first), str(second), str(file)) as server:
            yield server

    @contextmanager
    def _server(self, program: str, *arguments: str) -> Iterator[tuple[int, int]]:
        command = [str(self._directory / program), *arguments]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as server:
            try:
                assert server.stdout is not None
                first_line = server.stdout.readline()
                if not first_line:
                    raise RuntimeError(f"{program} {' '.join(arguments)}: ended before it listened")
                yield server.pid, int(json.loads(first_line)["port"])
            finally:
                server.kill()

    def _run(self, program: str, *arguments: str) -> dict[str, Any]:
        done = subprocess.run([self._directory / program, *arguments], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{program} {' '.join(arguments)}: {done.stderr.strip()}")
        result: dict[str, Any] = json.loads(done.stdout)
        return result


def compile_program(source: Path, program: Path, *libraries: str) -> None:
    """Compile one C file. Raises RuntimeError without a compiler, or when it fails (for example: missing header)."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise RuntimeError("the benchmark's load generator needs a C compiler: none of cc, gcc, clang is on the PATH")
    command = [compiler, "-O2", "-Wall", "-Wextra", "-o", str(program), str(source), *libraries]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{source.name} does not compile: {done.stderr.strip()}")
