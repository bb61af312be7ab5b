"""The command line of a page in docs/ that is rendered from a JSON file with the results of a run."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any


def write_or_check(
    program: str, arguments: list[str], *, page: Path, result: Path, render: Callable[[Any], str]
) -> int:
    """Write the page (`--write`), or compare it with the result (`--check`); return the exit code."""
    rendered = render(json.loads(result.read_text(encoding="utf-8")))
    if arguments == ["--write"]:
        page.write_text(rendered, encoding="utf-8")
        return 0
    if arguments == ["--check"]:
        if page.read_text(encoding="utf-8") == rendered:
            return 0
        print(f"{page} does not match {result}: run python -m {program} --write", file=sys.stderr)
        return 1
    print(f"usage: python -m {program} --write | --check", file=sys.stderr)
    return 2
