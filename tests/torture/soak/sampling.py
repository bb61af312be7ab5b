"""What a broker process holds, sampled while it lives, and whether any of it rises without an end."""

from __future__ import annotations

import os
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.torture.soak.trends import Sample, Trend, trend

_PAGE = os.sysconf("SC_PAGE_SIZE")


class Limits(NamedTuple):
    """When a measure is judged: the warm-up, and the smallest rise that counts (absolute, share of the first bin)."""

    warm_up_s: float
    least: float
    share: float


MEASURES = {
    "resident MiB": Limits(60, 16, 0.15),
    "sockets and pipes": Limits(3, 60, 0.4),  # a life may begin between two rounds, and a round has 55 connections more
    "descriptors of removed files": Limits(5, 20, 0.5),
    "threads": Limits(5, 20, 0.3),  # its pools have 20 threads at most, which they start when they need them
    "temporary files": Limits(10, 60, 1.0),
    "metadata KiB": Limits(30, 512, 1.0),
}
"""A restart begins a new life with new series. Descriptors of files that exist rise with the round's topics."""


def measure(pid: int, directories: Sequence[Path]) -> dict[str, float]:
    """Read the measures of a process and its log directories. Raises OSError if it has ended."""
    process = Path("/proc") / str(pid)
    kinds: Counter[str] = Counter()
    for each in os.scandir(process / "fd"):
        try:
            target = os.readlink(each.path)
        except OSError:
            continue
        kinds["removed" if target.endswith("(deleted)") else "file" if target.startswith("/") else "other"] += 1
    resident = int((process / "statm").read_text().split()[1]) * _PAGE
    names = _names(directories)
    return {
        "resident MiB": resident / (1 << 20),
        "sockets and pipes": kinds["other"],
        "descriptors of removed files": kinds["removed"],
        "threads": len(os.listdir(process / "task")),
        "temporary files": sum(each.endswith((".deleted", ".cleaned", ".swap", ".tmp")) for each, _ in names),
        "metadata KiB": sum(size for each, size in names if "__cluster_metadata-0/" in each) / 1024,
    }


class Sampler:
    """Samples of all lives of a broker, one thread's."""

    def __init__(self, directories: Sequence[Path]) -> None:
        self._directories = directories
        self._pid = 0
        self._began = 0.0
        self.lives: list[dict[str, list[Sample]]] = []

    def take(self, pid: int) -> None:
        """Sample the process; a new pid begins a life."""
        try:
            found = measure(pid, self._directories)
        except OSError:
            return  # it has just been killed
        now = time.monotonic()
        if pid != self._pid:
            self._pid, self._began = pid, now
            self.lives.append(defaultdict(list))
        for name, value in found.items():
            self.lives[-1][name].append(Sample(now - self._began, value))

    def trends(self) -> dict[str, list[Trend]]:
        """Judge each measure of each life that was long enough."""
        return {
            name: [
                found
                for life in self.lives
                if (found := trend(life[name], warm_up_s=limits.warm_up_s, least=limits.least, share=limits.share))
            ]
            for name, limits in MEASURES.items()
        }


def _names(directories: Sequence[Path]) -> list[tuple[str, int]]:
    found = []
    for directory in directories:
        for folder, _, files in os.walk(directory):
            for name in files:
                path = os.path.join(folder, name)
                try:
                    found.append((path, os.stat(path).st_size))
                except OSError:
                    continue  # removed meanwhile
    return found
