"""The long form: `python -m tests.interop.differential --seeds 1-200`.

    --seeds 1-200        the seeds, or one seed to replay it
    --seconds 600        stop after this time
    --with sessions codecs   draw fetch sessions, too; topics that recompress what they get (default: neither)
    --with cleaner           topics are compacted, whenever the script says so, with codecs, transactions, or
                             a compaction lag (not with codecs): --with cleaner transactions lags
    --restarts 2         restart both brokers so often within each script, stopped or killed (default 0)
    --steps 120          steps of a script
    --now 1700000000000  the time of the run in ms, about which timestamps are drawn (default: now)
    --kernel python      run Barnabas without its compiled kernels
    --keep-going         go on after a difference
    --no-shrink          print the script of a difference as it was drawn

Prints each seed with a difference, its script with the steps left out that are not needed for it, and the totals.
Exits with 1 after a difference.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.interop.differential import steps
from tests.interop.differential.drawing import CLEANER, EXTRAS, ScriptDrawer
from tests.interop.differential.running import running_pair
from tests.interop.differential.shrinking import shrunk

SEEDS_OF_A_PAIR = 40
"""Scripts that one start of the brokers serves."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.interop.differential")
    parser.add_argument("--seeds", default="1-50")
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--with", dest="extras", nargs="*", choices=EXTRAS, default=())
    parser.add_argument("--restarts", type=int, default=0)
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--now", type=int, default=int(time.time()) * 1000)
    parser.add_argument("--kernel", choices=("python", "compiled"))
    parser.add_argument("--keep-going", action="store_true")
    parser.add_argument("--no-shrink", action="store_true")
    options = parser.parse_args()
    first, _, last = options.seeds.partition("-")
    seeds = list(range(int(first), int(last or first) + 1))
    until = time.monotonic() + options.seconds
    kinds: Counter[str] = Counter()
    failures = done = 0
    while seeds and time.monotonic() < until and (options.keep_going or not failures):
        part, seeds = seeds[:SEEDS_OF_A_PAIR], seeds[SEEDS_OF_A_PAIR:]
        with (
            tempfile.TemporaryDirectory(prefix="differential.") as scratch,
            running_pair(Path(scratch), options.kernel, cleans=CLEANER in options.extras) as pair,
        ):
            for seed in part:
                script = ScriptDrawer(
                    seed, options.now, count=options.steps, restarts=options.restarts, extras=options.extras
                ).script()
                found = pair.run(script)
                done += 1
                kinds.update(map(steps.kind, script.steps))
                if found is not None:
                    failures += 1
                    print(found if options.no_shrink else shrunk(found, pair), f"--now {options.now}", flush=True)
                    if not options.keep_going:
                        break
                if time.monotonic() > until:
                    break
            else:
                lines = pair.end()
                if lines:
                    failures += 1
                    print(f"seeds {part[0]}-{part[-1]}, after the stop:", *lines, sep="\n", flush=True)
    counts = ", ".join(f"{name} {count}" for name, count in sorted(kinds.items()))
    print(f"{done} seeds, {failures} with differences; steps: {counts}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
