"""The ready file, which tells scripts that the broker serves, and where.

JSON with pid, host, port (of the first listener), ports (by listener name), metrics_port (null if none) and log_dirs;
created atomically.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from barnabas.broker.startup_error import StartupError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


def write_ready_file(
    path: Path, *, host: str, ports: Mapping[str, int], metrics_port: int | None, log_dirs: Sequence[Path]
) -> None:
    """Write `path` atomically: a temporary file beside it, then a rename. Raises StartupError."""
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
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(content + "\n", encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        raise StartupError(f"cannot write the ready file {path}: {error.strerror}") from error


def remove_ready_file(path: Path) -> None:
    """Remove the ready file of a broker that stops."""
    path.unlink(missing_ok=True)
