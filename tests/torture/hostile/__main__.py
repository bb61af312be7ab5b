"""Hostile peers beside a modest client that produces one record at a time.

    python -m tests.torture.hostile --frames 1000000 --seed 1    mutated requests of real clients, by the million
    python -m tests.torture.hostile --attacks 5                  requests that cost a lot, each kind for 5 seconds
    python -m tests.torture.hostile --wide                       each list of each request, as long as it may be

Prints what the modest client had to wait and how much memory the broker has taken. Exits with 1 if the broker logged an
error, refused the modest client, lost one of its records, or kept memory.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.torture.hostile import attacks, mutants, wide_requests


def main() -> int:
    """Run what the options ask for."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.torture.hostile", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--frames", type=int, default=0, help="number of mutants")
    parser.add_argument("--seed", type=int, default=1, help="the first seed; there are 20,000 mutants of each")
    parser.add_argument("--attacks", type=float, default=0.0, metavar="SECONDS", help="for each kind of attack")
    parser.add_argument("--wide", action="store_true", help="one request for each list of each API")
    options = parser.parse_args()
    if not (options.frames or options.attacks or options.wide):
        parser.error("--frames, --attacks or --wide is needed")
    complaints = []
    with tempfile.TemporaryDirectory(prefix="barnabas-hostile-") as directory:
        if options.frames:
            complaints += mutants.run(options.frames, options.seed, Path(directory) / "mutants")
        if options.attacks:
            complaints += _attack(options.attacks, Path(directory))
        if options.wide:
            complaints += wide_requests.run(Path(directory) / "wide")
    print("\n".join(complaints) or "nothing is wrong")
    return bool(complaints)


def _attack(seconds: float, directory: Path) -> list[str]:
    complaints = []
    print("| attack | sent | modest client: median, longest wait, ms | longest stall of the loop, ms | memory, MiB |")
    print("| --- | --- | --- | --- | --- |")
    for number, name in enumerate(attacks.ATTACKS):
        outcome = attacks.run(name, seconds, directory / str(number))
        print(
            f"| {name} | {outcome.sent:,} | {1000 * outcome.median_wait:.2f}, {1000 * outcome.longest_wait:.0f} |"
            f" {1000 * outcome.longest_stall:.0f} | {outcome.grown >> 20} |",
            flush=True,
        )
        complaints += [f"{name}: {complaint}" for complaint in outcome.complaints]
    return complaints


if __name__ == "__main__":
    sys.exit(main())
