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
RESULTS = REPOSITORY / "benchmarks" / "results"


def add_json_option(parser: argparse.ArgumentParser, name: str) -> None:
    """Add `--json FILE`, whose default is in build/bench and is not committed, and `--keep`."""
    parser.add_argument(
        "--json",
        type=Path,
        default=DIRECTORY / f"{name}.json",
        metavar="FILE",
        help=f"where the samples are written (default build/bench/{name}.json)",
    )
    parser.add_argument(
        "--keep",
        action="store_true",
        help=f"write them to benchmarks/results/{name}-DATE-MACHINE.json instead, which is committed",
    )


def write_result(path: Path, benchmark: str, options: argparse.Namespace, samples: Mapping[str, Any]) -> None:
    """Write one run to `path`, with `options.keep` to RESULTS under its name. `samples` maps a line to its rounds."""
    if options.keep:
        path = RESULTS / f"{path.stem}-{datetime.now(UTC):%Y-%m-%d}-{os.cpu_count()}-cores.json"
    result = {
        "benchmark": benchmark,
        "commit": _git("rev-parse", "HEAD"),
        "commit_is_modified": bool(_git("status", "--porcelain", "--untracked-files=no")),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "options": {name: _plain(value) for name, value in vars(options).items() if name not in _UNNAMED},
        "machine": {**dict(describe()), "load average": [round(each, 2) for each in os.getloadavg()]},
        "samples": samples,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1) + "\n")
    print(f"wrote {path}", file=sys.stderr, flush=True)


_UNNAMED = ("json", "keep", "directory", "kafka_jars", "mirror_maker_jars", "jars")  # paths of this machine


def _plain(value: object) -> object:
    return value if isinstance(value, str | int | float | bool | list) or value is None else str(value)


def _git(*arguments: str) -> str:
    """Return the output of git, empty outside a checkout."""
    done = subprocess.run(["git", *arguments], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    return done.stdout.strip()
