"""Leaves out steps of a script as long as both brokers still differ."""

from __future__ import annotations

import re
from dataclasses import replace

from tests.interop.differential import steps
from tests.interop.differential.running import Difference, Pair

MAX_RUNS = 150


def shrunk(found: Difference, pair: Pair, max_runs: int = MAX_RUNS) -> Difference:
    """Return the difference of a shorter script, found by leaving out halves, quarters, ... and single steps."""
    if any(isinstance(step, steps.Restart) for step in found.script.steps):
        max_runs = min(max_runs, 10)
    kind = _kind(found)
    size = len(found.script.steps) // 2
    while size and max_runs > 0:
        at = 0
        while at < len(found.script.steps) and max_runs > 0:
            kept = found.script.steps[:at] + found.script.steps[at + size :]
            shorter = pair.run(replace(found.script, steps=kept))
            max_runs -= 1
            if shorter is None or _kind(shorter) != kind:
                at += size
            else:
                found = shorter
        size //= 2
    return found


def _kind(found: Difference) -> str:
    """Return what differs without places and values: a shorter script shall not differ for another reason."""
    what = found.where.split("(")[0] if "step" in found.where else found.where
    return re.sub(r"\d+|ours .*|: .*", "", f"{what} {found.lines[0]}")
