"""The ready file, which tells scripts that the broker serves, and where.

JSON with pid, host, port (of the first listener), ports (by listener name), metrics_port (null if none) and log_dirs.
A file is created atomically. The path `-` is standard output, where the JSON is one line: a parent process reads it
from a pipe, without looking for a file again and again, and sees the end of the pipe if the start fails.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.broker.startup_error import StartupError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

STANDARD_OUTPUT = Path("-")


def write_ready_file(
    path: Path, *, host: str, ports: Mapping[str, int], metrics_port: int | None, log_dirs: Sequence[Path]
) -> None:
    """Write `path` atomically, through a temporary file beside it, or one line of output. Raises StartupError."""
    import json

    content = json.dumps(
        {
            "pid": os.getpid(),
            "host": host,
            "port": next(iter(ports.values())),
            "ports": dict(ports),
            "metrics_port": metrics_port,
            "log_dirs": [str(log_dir) for log_dir in log_dirs],
        }
    )
    if path == STANDARD_OUTPUT:
        try:
            print(content, flush=True)  # noqa: T201 -- asked for by `--ready-file -`
        except OSError as error:
            raise StartupError(f"cannot write to standard output, as --ready-file - asks: {error.strerror}") from error
        return
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(content + "\n", encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        raise StartupError(f"cannot write the ready file {path}: {error.strerror}") from error


def remove_ready_file(path: Path) -> None:
    """Remove the ready file of a broker that stops."""
    if path != STANDARD_OUTPUT:
        path.unlink(missing_ok=True)
