"""Description of the machine and the software used for a measurement."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path


def describe() -> list[tuple[str, str]]:
    """Return (name, value) rows, without host names and paths."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / (1 << 30)
    return [
        ("processor", f"{_processor()}, {os.cpu_count()} cores"),
        ("memory", f"{memory:.0f} GiB"),
        ("system", f"{platform.system()} {platform.release().split('-')[0]}, {platform.machine()}"),
        ("Python", f"{platform.python_implementation()} {platform.python_version()}, uvloop {version('uvloop')}"),
        ("record kernel", _kernel()),
    ]


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def _kernel() -> str:
    code = "from barnabas.protocol.records.kernels.kernel import KERNEL; print(KERNEL)"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
