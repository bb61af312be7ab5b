"""A process that cleans logs and is killed on the way: `python -m tests.support.storage.crashing_cleaner`.

A line of standard input is `<data directory> <failpoint> <count>`: a child of this process opens the log there, runs
one round of the cleaner, and kills itself by SIGKILL when it reaches the failpoint for the count-th time. The answer is
a line with the child's status: negative is the signal, 0 means that the failpoint was not reached. One process serves
all rounds, because starting Python takes longer than a round.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from barnabas.broker.storage.files import failpoints
from barnabas.config.log_config import LogConfig
from tests.support.storage.bench import START_MS, LogBench, log_config
from tests.support.storage.cleaning import clean

CLEANED_AT_MS = START_MS + 1000


def crash_config() -> LogConfig:
    """Return a config with which three segments of the test's log fit into one."""
    return log_config(compact=True, delete=False, segment_bytes=1024, index_interval_bytes=100, delete_retention_ms=0)


def clean_in(log_dir: Path) -> None:
    """Open the log as after a clean stop, and clean it once."""
    clean(LogBench(log_dir).open(crash_config()), now_ms=CLEANED_AT_MS)


def main() -> None:
    for line in sys.stdin:
        log_dir, name, count = line.split()
        child = os.fork()
        if child == 0:
            failpoints.arm_from(f"{name}=kill@{count}")
            clean_in(Path(log_dir))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


if __name__ == "__main__":
    main()
