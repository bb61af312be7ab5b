"""Leaves what a workload of the crash explorer would: `python leave_states.py WORKLOAD SEED DIRECTORY`.

DIRECTORY/killed is what a kill at the workload's end leaves, DIRECTORY/power-cut what a power cut during it may leave.
It runs in the environment whose `barnabas` and `tests` are imported: the baseline's, or this tree's.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tests.torture.crash_states.disk import write_files
from tests.torture.crash_states.explorer import pick, record, scratch_directory, states_named


def main(workload: str, seed: int, directory: Path) -> None:
    """Write both states."""
    with scratch_directory() as scratch:
        recording = record(workload, seed, scratch)
    (cut,) = pick(recording, 1, seed, family="sample")
    end = cut._replace(event=len(recording.events) - 1, family="newest", number=0)
    for name, folder in ((cut, "power-cut"), (end, "killed")):
        (state,) = states_named(recording, [name])
        write_files(state.files, directory / folder)
        print(state.name)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
