"""When the machine was started."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_STAT: Final = Path("/proc/stat")


def boot_time_ms() -> int | None:
    """Return it in ms since 1970, to the second; None where the kernel does not tell."""
    try:
        lines = _STAT.read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith("btime "):
            return int(line.split()[1]) * 1000
    return None
