"""TransactionEnding: decides the outcome of transactions, for their producers or in their stead.

The decision is appended. Once it is durable, `completion` writes the markers and the completed state.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from barnabas.broker.network.deferred import Deferred
from barnabas.broker.printable import printable
from barnabas.broker.repeated_warnings import ANY_HOST, Event
from barnabas.broker.storage.files.failpoints import failpoint
from barnabas.broker.transactions import outcomes
from barnabas.broker.transactions.checks import ProducerIdAndEpoch, ProducerIdNeededError
from barnabas.broker.transactions.metadata import EPOCH_PER_TRANSACTION, TransactionMetadata
from barnabas.broker.transactions.state import TransactionState
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.transactions.end_txn import EndTxnRequest, EndTxnResponse

if TYPE_CHECKING:
    from barnabas.broker.probes import TransactionProbe
    from barnabas.broker.producer_ids import ProducerIds
    from barnabas.broker.repeated_warnings import RepeatedWarnings
    from barnabas.broker.transactions.completion import TransactionCompletion
    from barnabas.broker.transactions.log import TransactionLog

logger = logging.getLogger(__name__)

_FATAL: Final = (
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.INVALID_TXN_STATE,
    ErrorCode.INVALID_TRANSACTION_TIMEOUT,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    ErrorCode.UNKNOWN_SERVER_ERROR,
)
"""Errors that a producer does not retry."""

Ended = Deferred[BrokerError | None]
"""None once the transaction is completed, or its markers are tried again later; or why it was not decided."""


class TransactionEnding:
    """Ends transactions. Event loop only."""

    def __init__(
        self,
        log: TransactionLog,
        completion: TransactionCompletion,
        producer_ids: ProducerIds,
        probe: TransactionProbe,
        wall_ms: Callable[[], int],
        warnings: RepeatedWarnings,
    ) -> None:
        self._log = log
        self._completion = completion
        self._producer_ids = producer_ids
        self._probe = probe
        self._wall_ms = wall_ms
        self._warnings = warnings

    def end(self, request: EndTxnRequest) -> Deferred[EndTxnResponse]:
        """Serve EndTxn for an id whose partition is loaded."""
        answer: Deferred[EndTxnResponse] = Deferred()
        self._end(request, None, answer)
        return answer

    def abort_timed_out(self, metadata: TransactionMetadata) -> Ended:
        """Abort an open transaction whose timeout has passed, and fence its producer."""

        def count() -> None:
            self._probe.timed_out += 1

        return self._abort_and_fence(metadata, count)

    def abort_replaced(self, metadata: TransactionMetadata) -> Ended:
        """Abort an open transaction whose transactional id another producer takes over, and fence its producer."""

        def count() -> None:
            self._probe.replaced += 1

        return self._abort_and_fence(metadata, count)

    def note_refusal(self, error: BrokerError, transactional_id: str) -> None:
        """Log the error of a request if its producer cannot go on, and count those of fenced producers.

        A producer that repeats its request, or one that makes up transactional ids, gets a bounded number of lines.
        """
        if error.code not in _FATAL:
            return
        if error.code is ErrorCode.PRODUCER_FENCED:
            self._probe.fencings += 1
        sentence = f"a producer is refused, transactional.id={printable(transactional_id)}: {error}"
        event = Event(ANY_HOST, "a producer was refused", f" error={error.code.name}")
        self._warnings.warn(logger, event, "%s", sentence, distinct=sentence)

    def _end(self, request: EndTxnRequest, new_producer_id: int | None, answer: Deferred[EndTxnResponse]) -> None:
        current = self._log.states.get(request.transactional_id)
        try:
            prepared = outcomes.end(
                current,
                ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
                is_commit=request.is_commit,
                version=self._log.version_for(EPOCH_PER_TRANSACTION if request.bumps_epoch else 0),
                new_producer_id=new_producer_id,
                now_ms=self._wall_ms(),
            )
        except ProducerIdNeededError:
            self._producer_ids.with_new_id(
                lambda new_id: self._end(request, new_id, answer),
                lambda error: answer.resolve(EndTxnResponse(error=error.code)),
            )
            return
        except BrokerError as error:
            self.note_refusal(error, request.transactional_id)
            answer.resolve(EndTxnResponse(error=error.code))
            return
        if prepared is None:
            assert current is not None
            response = _response(ProducerIdAndEpoch(current.producer_id, current.producer_epoch), request)
            ended = self._log.coordinator_log.settled(request.transactional_id)
        else:
            response = _response(outcomes.next_producer(prepared), request)
            ended = self._decide(prepared, self._count_commit if request.is_commit else self._count_abort)
        ended.then(lambda error: answer.resolve(response if error is None else EndTxnResponse(error=error.code)))

    def _abort_and_fence(self, metadata: TransactionMetadata, count: Callable[[], None]) -> Ended:
        """Abort a transaction if it is still open; `count` is called once that is decided."""
        answer: Ended = Deferred()
        self._decide_abort(metadata, None, count, answer)
        return answer

    def _decide_abort(
        self, metadata: TransactionMetadata, new_producer_id: int | None, count: Callable[[], None], answer: Ended
    ) -> None:
        current = self._log.states.get(metadata.transactional_id)
        if current is None or current.state is not TransactionState.ONGOING or not _is_same(current, metadata):
            answer.resolve(None)  # it ended while a producer id was awaited
            return
        try:
            prepared = outcomes.abort_and_fence(
                current, version=self._log.version, new_producer_id=new_producer_id, now_ms=self._wall_ms()
            )
        except ProducerIdNeededError:
            self._producer_ids.with_new_id(
                lambda new_id: self._decide_abort(metadata, new_id, count, answer), answer.resolve
            )
            return
        self._decide(prepared, count).then(answer.resolve)

    def _decide(self, prepared: TransactionMetadata, count: Callable[[], None]) -> Ended:
        """Append a decision; once it is durable, call `count` and complete the transaction."""
        answer: Ended = Deferred()

        def decided(error: BrokerError | None) -> None:
            if error is not None:
                answer.resolve(error)
            else:
                count()
                self._completion.complete(prepared).then(answer.resolve)

        failpoint("transaction.deciding")
        self._log.append(prepared).then(decided)
        return answer

    def _count_commit(self) -> None:
        self._probe.committed += 1

    def _count_abort(self) -> None:
        self._probe.aborted += 1


def _is_same(current: TransactionMetadata, earlier: TransactionMetadata) -> bool:
    """Return whether both are states of the same open transaction; partitions may have been added."""
    mine, its = ((each.producer_id, each.producer_epoch, each.start_ms) for each in (current, earlier))
    return mine == its


def _response(producer: ProducerIdAndEpoch, request: EndTxnRequest) -> EndTxnResponse:
    """Return the response with the next transaction's producer id and epoch, if the request has room for them."""
    if not request.bumps_epoch:
        return EndTxnResponse()
    return EndTxnResponse(
        error=ErrorCode.NONE, producer_id=producer.producer_id, producer_epoch=producer.producer_epoch
    )
