"""The long form of the campaign: `make torture`, or `python -m tests.torture`.

    --seconds 600 --seed 1           explore every workload for its share of the time, with seeds from 1 on
    --workloads topics,retention     only these
    --replay topics/1/80/without/13  build this state again and say what is wrong with it
    --fault start/two/0/wrong        let this call go wrong again (scenario, log directory, call, kind)

Prints each seed before it is used, each failure with the name of its state, and the totals at the end. Exits with 1
after a failure.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

from tests.torture.crash_states.explorer import (
    Explorer,
    parse_state_name,
    pick,
    record,
    scratch_directory,
    state_named,
    states_named,
)
from tests.torture.crash_states.workloads import WORKLOADS
from tests.torture.faulty_calls.injection import parse_fault
from tests.torture.faulty_calls.running import run_with

STATES_PER_SEED = 400
MAX_PRINTED = 5
"""Failures of one workload that are printed."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description="Explore crash states.")
    parser.add_argument("--seconds", type=float, default=600, help="for all workloads together (default 600)")
    parser.add_argument("--seed", type=int, default=1, help="the first seed (default 1)")
    parser.add_argument("--workloads", default=",".join(WORKLOADS), help="names, separated by commas")
    parser.add_argument("--replay", metavar="STATE", help="the name of one state")
    parser.add_argument("--fault", metavar="FAULT", help="the name of one fault")
    options = parser.parse_args()
    with scratch_directory() as scratch:
        if options.replay:
            return _replay(options.replay, scratch)
        if options.fault:
            return _repeat(options.fault, scratch)
        names = options.workloads.split(",")
        failures = sum(_explore(name, options.seed, options.seconds / len(names), scratch) for name in names)
    return 1 if failures else 0


def _explore(workload: str, seed: int, seconds: float, scratch: Path) -> int:
    """Explore one workload; return the number of states that failed."""
    explorer = Explorer(scratch)
    kinds: Counter[str] = Counter()
    failures = events = 0
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        print(f"{workload}: seed {seed}", flush=True)
        recording = record(workload, seed, scratch)
        events += len(recording.events)
        for state in states_named(recording, pick(recording, STATES_PER_SEED, seed)):
            kinds[state.name.family] += 1
            failure = explorer.explore(state, recording)
            if failure is not None:
                failures += 1
                if failures <= MAX_PRINTED:
                    print(failure, flush=True)
            if time.monotonic() >= until:
                break
        seed += 1
    families = ", ".join(f"{family} {count}" for family, count in sorted(kinds.items()))
    print(f"{workload}: {explorer.states} different states of {events} events, {failures} failures ({families})")
    return failures


def _replay(text: str, scratch: Path) -> int:
    name = parse_state_name(text)
    recording = record(name.workload, name.seed, scratch)
    failure = Explorer(scratch, closes_every=1).explore(state_named(recording, name), recording)
    print(failure or f"{name}: nothing is wrong")
    return failure is not None


def _repeat(text: str, scratch: Path) -> int:
    failed, complaints = run_with(parse_fault(text), scratch)
    print(f"{text}: {failed or 'there is no such call'}", *(complaints or ["nothing is wrong"]), sep="\n  ")
    return bool(complaints)


if __name__ == "__main__":
    sys.exit(main())
