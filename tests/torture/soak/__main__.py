"""Mixed load with faults, and a checker: `make soak`, or `python -m tests.torture.soak`.

    --seconds 7200 --seed 1     how long, and from which seed
    --write                     add the result to docs/reliability.md

Prints the totals and everything that is wrong; exits with 1 if anything is. The seed draws what clients and faults do
and in which order, so a failure can be tried again with it; the timing is that of the machine, and not repeated.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys

from tests.torture.soak.report import as_json, write
from tests.torture.soak.running import Plan, soak

_MAX_PRINTED = 20


def main() -> int:
    """Run with the program's arguments; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.torture.soak", description="Mixed load with faults.")
    parser.add_argument("--seconds", type=float, default=7200, help="duration (default two hours)")
    parser.add_argument("--seed", type=int, default=1, help="default 1")
    parser.add_argument("--round-seconds", type=float, default=20, help="load between two checks (default 20)")
    parser.add_argument("--write", action="store_true", help="add the result to docs/reliability.md")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the broker and the small disk are removed
    plan = Plan(options.seconds, options.seed, options.round_seconds)
    outcome = asyncio.run(soak(plan))
    result = as_json(plan, outcome)
    print(json.dumps(result, indent=2))
    for error in outcome.errors[:_MAX_PRINTED]:
        print(f"client error: {error}"[:400])
    for anomaly in outcome.anomalies[:_MAX_PRINTED]:
        print(f"{anomaly.kind}: {anomaly.text}")
    for name in outcome.rising:
        print(f"rising: {name}", *(each for each in outcome.trends[name] if each.is_rising))
    if options.write:
        write(result)
    return 1 if outcome.anomalies or outcome.rising else 0


if __name__ == "__main__":
    sys.exit(main())
