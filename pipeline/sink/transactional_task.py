"""Writes one task attempt's rows in a transaction that the driver ends.

No other attempt that may still run has its transactional id, so a speculative attempt and one whose executor was given
up never fence each other. See run_files.py for the order of registering, initializing and looking up the run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from barnabas.clients.errors import RefusedError
from barnabas.clients.producer.prepared import PreparedTransaction
from barnabas.clients.producer.producer import Producer
from barnabas.pipeline.errors import OptionError, PipelineError
from barnabas.pipeline.sink.rows import SinkRecord
from barnabas.pipeline.sink.run_files import RunFiles
from barnabas.pipeline.sink.task import send_all
from barnabas.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.clients.config import ProducerConfig


@dataclass(frozen=True, slots=True)
class Attempt:
    """A task attempt with its transactional id, which is registered if there is a run."""

    task: int
    transactional_id: str


@dataclass(frozen=True, slots=True)
class Prepared:
    """An attempt's open transaction with all of its rows; None without rows."""

    transaction: PreparedTransaction | None
    cluster: str
    sent: int


def register_attempt(run: RunFiles | None, task: int, name: str, own_id: str, free_id: str | None) -> Attempt:
    """Give an attempt its transactional id: the task's free one if no other attempt has it. Raises OSError."""
    if run is not None and free_id is not None and run.claim(task, name, free_id):
        return Attempt(task, free_id)
    if run is not None:
        run.register(task, name, own_id)
    return Attempt(task, own_id)


def ensure_run_open(run: RunFiles | None, attempt: Attempt) -> None:
    """Check that the driver has not decided the run of an attempt. Raises PipelineError, OSError."""
    if run is not None and not run.is_open():
        raise PipelineError(f"the driver has ended this run of task {attempt.task}, so its rows are not written")


def timeout_above_limit(timeout_ms: int | None) -> OptionError:
    """Return the error for a transaction timeout that the broker refuses."""
    return OptionError(
        f"option kafka.transaction.timeout.ms={timeout_ms} is above the broker's transaction.max.timeout.ms: "
        "lower the one or raise the other"
    )


async def write_prepared(
    config: ProducerConfig,
    timeout_ms: int | None,
    records: Iterable[SinkRecord],
    attempt: Attempt,
    run: RunFiles | None,
) -> Prepared:
    """Write the rows and leave their transaction open. On an error it is aborted, as far as the broker can be reached.

    `timeout_ms` None: two-phase commit. Raises OptionError if the broker refuses that, PipelineError if the run is
    decided already, ClientError, OSError.
    """
    transactional = replace(config, transactional_id=attempt.transactional_id)
    if timeout_ms is None:
        transactional = replace(transactional, two_phase_commit=True)
    else:
        transactional = replace(transactional, transaction_timeout_ms=timeout_ms)
    producer = Producer(transactional)
    try:
        await producer.start()
    except RefusedError as error:
        raise _refused(error, timeout_ms) from error
    try:
        ensure_run_open(run, attempt)
        await producer.begin_transaction()
        sent = await send_all(producer, records)
        return Prepared(await producer.prepare_transaction(), producer.cluster_id, sent)
    finally:
        await producer.close()


def _refused(error: RefusedError, timeout_ms: int | None) -> Exception:
    if error.code is ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED and timeout_ms is None:
        return OptionError(
            "exactlyOnce=transactions keeps transactions open until the driver has decided, which the broker refuses: "
            "set transaction.two.phase.commit.enable=true on the broker, or give the option "
            "kafka.transaction.timeout.ms, within which a micro-batch must be finished"
        )
    if error.code is ErrorCode.UNSUPPORTED_VERSION and timeout_ms is None:
        return OptionError(
            f"exactlyOnce=transactions keeps transactions open until the driver has decided: {error.message}; or give "
            "the option kafka.transaction.timeout.ms, within which a micro-batch must be finished"
        )
    if error.code is ErrorCode.INVALID_TRANSACTION_TIMEOUT:
        return timeout_above_limit(timeout_ms)
    return error
