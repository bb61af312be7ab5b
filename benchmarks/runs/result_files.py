"""JSON files with a benchmark's samples, commit, date and machine."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.runs.machine import describe

REPOSITORY = Path(__file__).resolve().parents[2]
DIRECTORY = REPOSITORY / "build" / "bench"


def add_json_option(parser: argparse.ArgumentParser, name: str) -> None:
    """Add `--json FILE`; the default is in build/bench and is not committed."""
    parser.add_argument(
        "--json",
        type=Path,
        default=DIRECTORY / f"{name}.json",
        metavar="FILE",
        help=f"where the samples are written (default build/bench/{name}.json; keep good ones in benchmarks/results)",
    )


def write_result(path: Path, benchmark: str, options: argparse.Namespace, samples: Mapping[str, Any]) -> None:
    """Write one run. `samples` maps a line to its rounds, in the benchmark's own shape."""
    result = {
        "benchmark": benchmark,
        "commit": _git("rev-parse", "HEAD"),
        "commit_is_modified": bool(_git("status", "--porcelain", "--untracked-files=no")),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "options": {name: _plain(value) for name, value in vars(options).items() if name not in _PATHS},
        "machine": {**dict(describe()), "load average": [round(each, 2) for each in os.getloadavg()]},
        "samples": samples,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n")
    print(f"wrote {path}", file=sys.stderr, flush=True)


_PATHS = ("json", "directory", "kafka_jars", "mirror_maker_jars", "jars")  # paths of this machine


def _plain(value: object) -> object:
    return value if isinstance(value, str | int | float | bool | list) or value is None else str(value)


def _git(*arguments: str) -> str:
    """Return the output of git, empty outside a checkout."""
    done = subprocess.run(["git", *arguments], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    return done.stdout.strip()
