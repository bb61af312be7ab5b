"""Kills of a Spark driver at chosen steps of the commit of a micro-batch's transactions.

    <directory>/driver-plan.json              {"<micro-batch>": ["undecided", "decided", "half", "ended"]}
    <directory>/driver-killed-<micro-batch>-<step>    created before that kill: it happens only once

`undecided`: before the decision is stored; `decided`: after that; `half`: after the first transaction was committed;
`ended`: after everything, before Spark records the micro-batch as done. The process that runs the sink's commit kills
the process group of the driver, with the JVM and the executors, and then itself.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from barnabas.clients.producer.prepared import PreparedTransactions
from barnabas.pipeline.sink.kafka.transactions import KafkaTransactions
from barnabas.pipeline.sink.run_files import RunFiles

DIRECTORY: Final = "BARNABAS_TEST_TASK_KILLS"
"""The environment variable with the directory."""

STEPS: Final = ("undecided", "decided", "half", "ended")

_PLAN: Final = "driver-plan.json"
_DRIVER: Final = "driver-pid"

DriverPlan = dict[str, list[str]]


def plan_driver_kills(directory: Path, plan: DriverPlan) -> None:
    """Store the plan."""
    (directory / _PLAN).write_text(json.dumps(plan))


def name_driver(pid: int) -> None:
    """Store the process to kill, the leader of the driver's process group."""
    (Path(os.environ[DIRECTORY]) / _DRIVER).write_text(str(pid))


def driver_kills_done(directory: Path) -> set[str]:
    """Return the steps at which a driver was killed."""
    return {path.name.rpartition("-")[2] for path in directory.glob("driver-killed-*")}


@contextmanager
def driver_kills(batch: int) -> Iterator[None]:
    """Run a commit; the driver is killed at the planned step."""
    directory = Path(os.environ[DIRECTORY])
    steps = json.loads((directory / _PLAN).read_text()).get(str(batch), [])
    left = [each for each in steps if not (directory / f"driver-killed-{batch}-{each}").exists()]
    step = left[0] if left else None

    def die() -> None:
        (directory / f"driver-killed-{batch}-{step}").touch()
        os.killpg(int((directory / _DRIVER).read_text()), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)

    if step == "undecided":
        die()
    decide = RunFiles.decide
    commits = [(each, each.commit) for each in (PreparedTransactions, KafkaTransactions)]
    if step == "decided":
        RunFiles.decide = _then(decide, die)  # type: ignore[method-assign]
    if step == "half":
        for transactions, commit in commits:
            transactions.commit = _then_async(commit, die)  # type: ignore[method-assign]
    try:
        yield
    finally:
        RunFiles.decide = decide  # type: ignore[method-assign]
        for transactions, commit in commits:
            transactions.commit = commit  # type: ignore[method-assign]
    if step == "ended":
        die()


def _then(call: Callable[..., Any], die: Callable[[], None]) -> Callable[..., Any]:
    def called(*args: Any) -> Any:
        result = call(*args)
        die()
        return result

    return called


def _then_async(call: Callable[..., Awaitable[None]], die: Callable[[], None]) -> Callable[..., Any]:
    async def called(*args: Any) -> None:
        await call(*args)
        die()

    return called
