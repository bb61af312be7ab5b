"""The driver's part of the sink's transactions: decide a run, carry the decision out, and recover after a restart.

The decision is on disk before the first transaction is ended, and carrying it out may be repeated at any point: a
transaction that is committed already counts as done, and an aborted one may be aborted again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from typing import Final, Protocol

from barnabas.clients.errors import PreparedTransactionLostError
from barnabas.clients.producer.prepared import PreparedTransaction
from barnabas.pipeline.errors import PipelineError
from barnabas.pipeline.sink.run_files import ABORT, Commit, Outcome, RunFiles, TransactionFiles

_AT_A_TIME: Final = 32
"""Requests in flight while transactions are ended."""


class Ending(Protocol):
    """The broker's side, implemented by `PreparedTransactions`."""

    @property
    def cluster_id(self) -> str:
        """The id of the connected cluster."""

    async def ensure_open(self, transactions: Sequence[PreparedTransaction]) -> None:
        """Raise PreparedTransactionLostError unless all of them can be committed."""

    async def commit(self, transaction: PreparedTransaction) -> None:
        """Commit a transaction; return also if it is committed already."""

    async def abort(self, transactional_id: str) -> None:
        """Abort the open transaction of an id, if any, and fence its producer."""

    async def open_ids(self, pattern: str) -> list[str]:
        """Return the ids with an open transaction that match an RE2 expression; none where a timeout ends them."""


async def recover(files: TransactionFiles, ending: Ending) -> None:
    """Finish every run in the checkpoint: commit decided ones, abort the others.

    No other driver may use the checkpoint. Raises ClientError, PipelineError, OSError.
    """
    for run in map(files.run, files.runs()):
        await _finish(files, run, run.decide(ABORT), ending)


async def abort_open_runs(files: TransactionFiles, ending: Ending) -> None:
    """Abort every run that is not decided; a decided one is left to the next driver. Raises as `recover` does."""
    for run in map(files.run, files.runs()):
        if run.decide(ABORT) is ABORT:
            await _finish(files, run, ABORT, ending)


async def commit_run(files: TransactionFiles, run: RunFiles, commit: Commit, ending: Ending) -> None:
    """Decide to commit, and commit.

    Raises PipelineError without a decision if a transaction was aborted meanwhile, by its timeout for example, or if
    another driver has aborted the run; and as `recover` does.
    """
    try:
        await ending.ensure_open(commit.transactions)
    except PreparedTransactionLostError as error:
        raise PipelineError(
            f"{error.message}; the micro-batch is not committed, start the query again to repeat it. With the option "
            "kafka.transaction.timeout.ms the timeout must be longer than a micro-batch"
        ) from error
    if run.decide(commit) != commit:
        raise PipelineError(
            f"{files.location}: another driver has taken over this query and aborted the micro-batch: "
            "run a query only once at a time"
        )
    await _finish(files, run, commit, ending)


async def end_all(ending: Ending, commit: Iterable[PreparedTransaction], abort: Iterable[str]) -> None:
    """End transactions, some at a time. All of them are tried; raises the first error."""
    room = asyncio.Semaphore(_AT_A_TIME)

    async def in_turn(request: Awaitable[None]) -> None:
        async with room:
            await request

    requests = [*map(ending.commit, commit), *map(ending.abort, abort)]
    results = await asyncio.gather(*map(in_turn, requests), return_exceptions=True)
    for result in results:
        if result is not None:
            raise result


async def _finish(files: TransactionFiles, run: RunFiles, outcome: Outcome, ending: Ending) -> None:
    _ensure_same_cluster(files, run, outcome, ending)
    chosen = () if outcome is None else outcome.transactions
    others = set(run.attempts()) - {each.transactional_id for each in chosen}
    try:
        await end_all(ending, () if _is_written(files, outcome) else chosen, sorted(others))
    except PreparedTransactionLostError as error:
        raise PipelineError(
            f"{error.message}; the query had decided to commit it ({files.location}), so rows of a micro-batch "
            "are missing: write the output again, to a new topic and with an empty checkpoint"
        ) from error
    if outcome is not None:
        files.keep_written(outcome.written)
    run.remove()


def _ensure_same_cluster(files: TransactionFiles, run: RunFiles, outcome: Outcome, ending: Ending) -> None:
    cluster = run.cluster() if outcome is None else outcome.written.cluster
    if cluster is not None and cluster != ending.cluster_id:
        raise PipelineError(
            f"{files.location} has unfinished transactions in cluster {cluster}, but kafka.bootstrap.servers is "
            f"cluster {ending.cluster_id}: run the query once with the earlier cluster, which finishes them"
        )


def _is_written(files: TransactionFiles, outcome: Outcome) -> bool:
    """Whether an earlier driver has committed everything, and died while it removed the run's files."""
    last = files.last_written()
    return outcome is not None and last is not None and last.batch >= outcome.written.batch
