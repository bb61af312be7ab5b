"""State machine of one producer's transactions, without I/O.

    READY -> OPEN -> FLUSHING -> COMMITTING -> READY
             OPEN, FLUSHING -> ABORT_ONLY          a part of the transaction failed
             FLUSHING -> PREPARED                  stored; this or another process commits or aborts it
             OPEN, ABORT_ONLY -> ABORTING -> READY
             any -> FAILED                         fenced, or refused for good

COMMITTING and ABORTING last until the coordinator has answered: if it could not be reached, the same call is repeated.
Source: Kafka's TransactionManager.
"""

from __future__ import annotations

from enum import Enum

from barnabas.clients.errors import (
    ClientError,
    ProducerFencedError,
    RefusedError,
    TransactionAbortableError,
    reason_of,
)
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.layout import NO_PRODUCER_ID
from barnabas.protocol.topic_partition import TopicPartition

FENCED_CODES = frozenset({ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})
"""Codes of the coordinator for a producer with an old epoch. Old brokers send the second one."""


class Phase(Enum):
    """Where a producer is between two transactions."""

    NEW = "not started"
    READY = "no transaction is open"
    OPEN = "the transaction is open"
    FLUSHING = "the transaction is being committed"
    PREPARED = "the transaction is prepared"
    COMMITTING = "the outcome of the last commit is not known: call commit_transaction() again"
    ABORT_ONLY = "the transaction can only be aborted"
    ABORTING = "the transaction is being aborted"
    FAILED = "the producer cannot go on"


class TransactionState:
    """Owned by one producer. `producer_id` and `epoch` are those of the current or next transaction."""

    def __init__(self, transactional_id: str) -> None:
        self.transactional_id = transactional_id
        self.phase = Phase.NEW
        self.producer_id = NO_PRODUCER_ID
        self.epoch = -1
        self.failure: ClientError | None = None
        """Why the transaction can only be aborted, or why the producer cannot go on."""
        self.reached_broker = False
        """A request of the open transaction was sent, so that the coordinator may know the transaction."""
        self.in_doubt = False
        """A request of it may still be carried out after the abort, unless the epoch is raised."""
        self.adds_first = False
        """The coordinator is told of partitions and groups before they are written (transaction.version 0 and 1)."""
        self.added: set[TopicPartition | str] = set()
        """Partitions and groups of the open transaction that the coordinator has been told of: a new set for each."""

    @property
    def is_open(self) -> bool:
        """Whether a transaction is open that can be aborted."""
        return self.phase in (Phase.OPEN, Phase.ABORT_ONLY, Phase.FLUSHING)

    def initialized(self, producer_id: int, epoch: int, *, adds_first: bool) -> None:
        """Take the id and epoch of the coordinator, and the rules of the next transaction."""
        self._ready(producer_id, epoch)
        self.adds_first = adds_first

    def begin(self) -> None:
        """Open a transaction. Raises ClientError in any phase but READY."""
        if self.phase is not Phase.READY:
            self._raise_failure()
            raise self.misuse("begin a transaction", "end the open transaction first" if self.is_open else None)
        self.phase = Phase.OPEN

    def ensure_open(self, action: str) -> None:
        """Raises ClientError unless records and offsets may be added to the transaction."""
        if self.phase is not Phase.OPEN:
            self._raise_failure()
            raise self.misuse(
                action, "begin one: async with producer.transaction()" if self.phase is Phase.READY else None
            )

    def begin_commit(self) -> None:
        """Refuse further records, until `flushed` or `reopen`."""
        self.ensure_open("commit")
        self.phase = Phase.FLUSHING

    def reopen(self) -> None:
        """Undo `begin_commit`, whose flush was cancelled."""
        if self.phase is Phase.FLUSHING:
            self.phase = Phase.OPEN

    def flushed(self, following: Phase) -> None:
        """Go to COMMITTING or PREPARED. Raises TransactionAbortableError if a record was not delivered."""
        self._raise_failure()
        self.phase = following

    def begin_abort(self) -> None:
        """Refuse further records. Does nothing if the abort is repeated. Raises ClientError without a transaction."""
        if self.phase is Phase.FAILED:
            self._raise_failure()
        if not self.is_open and self.phase not in (Phase.ABORTING, Phase.PREPARED):
            raise self.misuse("abort", None)
        self.phase = Phase.ABORTING

    def fail(self, reason: BaseException | str, *, in_doubt: bool) -> None:
        """Allow only an abort from now on, because a part of the transaction failed."""
        self.in_doubt = self.in_doubt or in_doubt
        if self.phase in (Phase.OPEN, Phase.FLUSHING, Phase.COMMITTING):
            self.phase = Phase.ABORT_ONLY
            self.failure = TransactionAbortableError(self.transactional_id, reason)
            self.failure.__cause__ = reason if isinstance(reason, BaseException) else None

    def ended(self, producer_id: int, epoch: int, *, adds_first: bool) -> None:
        """Close the transaction; the coordinator's id, epoch and rules are for the next one."""
        self.initialized(producer_id, epoch, adds_first=adds_first)

    def refused(self, code: ErrorCode, message: str | None) -> RefusedError:
        """Return the error of a refusal after which this producer cannot go on."""
        self.phase = Phase.FAILED
        self.failure = self._fatal(code, message or reason_of(code))
        return self._fatal(code, message or reason_of(code))

    def misuse(self, action: str, next_step: str | None) -> ClientError:
        """The error of a call that this phase does not allow."""
        hint = "" if next_step is None else f"; {next_step}"
        return ClientError(
            f"transactional id {self.transactional_id!r}: cannot {action}, because {self.phase.value}{hint}"
        )

    def _ready(self, producer_id: int, epoch: int) -> None:
        self.producer_id, self.epoch = producer_id, epoch
        self.phase = Phase.READY
        self.failure = None
        self.reached_broker = self.in_doubt = False
        self.added = set()

    def _raise_failure(self) -> None:
        """Raise a new exception of the failure's kind, so that its traceback is that of this call."""
        failure = self.failure
        if isinstance(failure, RefusedError):
            raise self._fatal(failure.code, failure.message)
        if isinstance(failure, TransactionAbortableError):
            raise TransactionAbortableError(self.transactional_id, failure.reason) from failure.__cause__

    def _fatal(self, code: ErrorCode, message: str) -> RefusedError:
        if code in FENCED_CODES:
            return ProducerFencedError(self.transactional_id)
        return RefusedError(code, message)
