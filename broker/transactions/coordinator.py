"""TransactionCoordinator: serves the requests about transactional ids.

A request is checked by the state machine (`transitions`), the new state is appended to `__transaction_state` and
replayed, and the answer waits for a flush if the topic demands one. Nothing runs between the check and the append, so
requests about one id never interleave. EndTxn answers once the markers are written and the completed state is appended,
or once that has to be tried again later; the decision is in the log in both cases.

The first record of an id needs its partition of the topic, which is created then. All others find their id, or none.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from barnabas.broker.network.deferred import Deferred
from barnabas.broker.printable import printable
from barnabas.broker.repeated_warnings import RepeatedWarnings
from barnabas.broker.transactions import transitions
from barnabas.broker.transactions.checks import ProducerIdAndEpoch, ProducerIdNeededError
from barnabas.broker.transactions.completion import TransactionCompletion
from barnabas.broker.transactions.ending import TransactionEnding
from barnabas.broker.transactions.hanging import warn_of_hanging
from barnabas.broker.transactions.loading import StateLoading
from barnabas.broker.transactions.log import TransactionLog
from barnabas.broker.transactions.markers import EndMarkers
from barnabas.broker.transactions.metadata import (
    EPOCH_PER_TRANSACTION,
    NO_TIMEOUT_MS,
    PartitionKey,
)
from barnabas.broker.transactions.transitions import TransactionOpenError
from barnabas.broker.transactions.upkeep import TransactionUpkeep
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.data.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.protocol.messages.transactions.end_txn import EndTxnRequest, EndTxnResponse
from barnabas.protocol.topic_name import TRANSACTION_TOPIC

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from barnabas.broker.coordinator_log.log import Appended
    from barnabas.broker.coordinator_log.parts import LogParts
    from barnabas.broker.metadata.image import MetadataImage
    from barnabas.broker.probes import TransactionProbe
    from barnabas.broker.producer_ids import ProducerIds
    from barnabas.broker.transactions.markers import OffsetsMarkers

logger = logging.getLogger(__name__)

Admission = Mapping[PartitionKey, ErrorCode]
"""Refused partitions and their codes; empty if all may be written."""

_ALL_ADMITTED: Final[Admission] = MappingProxyType({})

_NONE: Final = ErrorCode.NONE


class TransactionCoordinator:
    """Owns the log of transactional ids, their states, and the completion of their transactions. Event loop only."""

    def __init__(
        self,
        parts: LogParts,
        *,
        offsets: OffsetsMarkers,
        producer_ids: ProducerIds,
        blocking_io: Executor,
        probe: TransactionProbe,
    ) -> None:
        self.log = TransactionLog(parts)
        self._config = parts.config
        self._loop = parts.loop
        self._wall_ms = parts.wall_ms
        self._producer_ids = producer_ids
        self._partitions = parts.partitions
        self._store = parts.store
        self._states = self.log.states
        self._coordinator_log = self.log.coordinator_log
        self.markers = EndMarkers(parts.partitions, offsets, parts.flush_waits, parts.wall_ms)
        self.completion = TransactionCompletion(self.log, self.markers, parts.partitions, parts.loop, parts.wall_ms)
        self.ending = TransactionEnding(
            self.log, self.completion, producer_ids, probe, parts.wall_ms, RepeatedWarnings(parts.loop)
        )
        self._reads_only = parts.config.static.get_bool("read.only")
        self._loading = StateLoading(parts, self.log, None if self._reads_only else self.completion, blocking_io)
        self._upkeep = TransactionUpkeep(self.log, parts.config, parts.wall_ms, self.ending.abort_timed_out)
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = False

    def start(self) -> None:
        """Begin to load. Called before the first client is accepted, which would find its id unknown."""
        must_load = self._loading.begin()
        self._store.add_listener(self._image_changed)
        self._spawn(self._load(must_load))
        if not self._reads_only:
            self._spawn(self._upkeep.abort_for_ever())
            self._spawn(self._upkeep.expire_for_ever())

    async def stop(self) -> None:
        """End the background tasks. The next start completes what is still prepared."""
        self._stopping = True
        self.completion.stop()
        await self._coordinator_log.finish_creation()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def admit(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Sequence[PartitionKey],
        *,
        adds: bool,
    ) -> Admission | Deferred[Admission]:
        """Check that partitions belong to the producer's open transaction; with `adds`, make them belong to it.

        The codes are those of AddPartitionsToTxn. A Deferred only while a flush of `__transaction_state` is due.
        """
        if not adds and not self._config.broker.get_bool("transaction.partition.verification.enable"):
            return _ALL_ADMITTED
        producer = ProducerIdAndEpoch(producer_id, producer_epoch)
        try:
            self._ensure_served(transactional_id)
            current = self._states.get(transactional_id)
            if not adds:
                return self._verified(transactional_id, producer, partitions)
            changed = transitions.add_partitions(
                current,
                producer,
                partitions,
                version=self.log.version_for(EPOCH_PER_TRANSACTION),
                now_ms=self._wall_ms(),
            )
        except BrokerError as error:
            self.ending.note_refusal(error, transactional_id)
            return dict.fromkeys(partitions, error.code)
        if changed is None and not self._coordinator_log.has_unflushed:
            return _ALL_ADMITTED
        appended = self._coordinator_log.settled(transactional_id) if changed is None else self.log.append(changed)
        if appended.done:
            return _admission(appended.value, partitions)
        answer: Deferred[Admission] = Deferred()
        appended.then(
            lambda error: answer.resolve(
                self._verified(transactional_id, producer, partitions)
                if error is None
                else _admission(error, partitions)
            )
        )
        return answer

    def initialize(self, request: InitProducerIdRequest) -> InitProducerIdResponse | Deferred[InitProducerIdResponse]:
        """Serve InitProducerId with a transactional id. Raises BrokerError."""
        transactional_id = request.transactional_id
        assert transactional_id is not None
        try:
            self._ensure_permitted(transactional_id, request)
        except BrokerError as error:
            self.ending.note_refusal(error, transactional_id)
            raise
        self._coordinator_log.ensure_loaded(transactional_id)
        answer: Deferred[InitProducerIdResponse] = Deferred()

        def ready(error: BrokerError | None) -> None:
            if error is None:
                self._initialize(transactional_id, request, None, answer)
            else:
                answer.resolve(_no_producer(error.code))

        self._coordinator_log.when_ready(transactional_id, ready)
        return answer

    def add_partitions(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partitions: Sequence[PartitionKey], *, version: int
    ) -> Appended:
        """Add partitions, which exist, to the producer's transaction. Raises nothing: the answer carries the error.

        `version`: the client's transaction.version.
        """
        answer: Appended = Deferred()
        try:
            self._ensure_served(transactional_id)
            changed = transitions.add_partitions(
                self._states.get(transactional_id),
                producer,
                partitions,
                version=self.log.version_for(version),
                now_ms=self._wall_ms(),
            )
        except BrokerError as error:
            self.ending.note_refusal(error, transactional_id)
            answer.resolve(error)
            return answer
        return self._coordinator_log.settled(transactional_id) if changed is None else self.log.append(changed)

    def missing_partitions(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partitions: Sequence[PartitionKey]
    ) -> Sequence[PartitionKey]:
        """Return the partitions that are not part of the producer's transaction. Raises BrokerError."""
        self._ensure_served(transactional_id)
        return transitions.missing_partitions(self._states.get(transactional_id), producer, partitions)

    def end(self, request: EndTxnRequest) -> Deferred[EndTxnResponse]:
        """Serve EndTxn. Raises BrokerError."""
        self._ensure_served(request.transactional_id)
        return self.ending.end(request)

    def _verified(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partitions: Sequence[PartitionKey]
    ) -> Admission:
        """Check that partitions belong to the producer's open transaction, in the turn in which they are written.

        One that was added may have ended while its flush was due: an append would open a transaction that nothing ends.
        """
        try:
            missing = transitions.missing_partitions(self._states.get(transactional_id), producer, partitions)
        except BrokerError as error:
            self.ending.note_refusal(error, transactional_id)
            return dict.fromkeys(partitions, error.code)
        return dict.fromkeys(missing, ErrorCode.TRANSACTION_ABORTABLE)

    def _initialize(
        self,
        transactional_id: str,
        request: InitProducerIdRequest,
        new_producer_id: int | None,
        answer: Deferred[InitProducerIdResponse],
    ) -> None:
        current = self._states.get(transactional_id)
        try:
            self._coordinator_log.ensure_loaded(transactional_id)
            changed = transitions.initialize(
                current,
                transactional_id,
                timeout_ms=NO_TIMEOUT_MS if request.enable_2pc else request.transaction_timeout_ms,
                expected=None
                if request.producer_id == -1
                else ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
                new_producer_id=new_producer_id,
                now_ms=self._wall_ms(),
            )
        except ProducerIdNeededError:
            self._producer_ids.with_new_id(
                lambda new_id: self._initialize(transactional_id, request, new_id, answer),
                lambda error: answer.resolve(_no_producer(error.code)),
            )
        except TransactionOpenError:
            assert current is not None
            logger.info(
                "aborting the open transaction of %s: another producer, or an operator, takes the id over",
                printable(transactional_id),
            )
            self.ending.abort_replaced(current).then(
                lambda error: answer.resolve(
                    _no_producer(ErrorCode.CONCURRENT_TRANSACTIONS if error is None else error.code)
                )
            )
        except BrokerError as error:
            self.ending.note_refusal(error, transactional_id)
            answer.resolve(_no_producer(error.code))
        else:
            response = InitProducerIdResponse(producer_id=changed.producer_id, producer_epoch=changed.producer_epoch)
            self.log.append(changed).then(
                lambda error: answer.resolve(response if error is None else _no_producer(error.code))
            )

    async def _load(self, must_load: bool) -> None:
        if must_load:
            await self._loading.run()
        if self._coordinator_log.is_complete and not self._reads_only:
            warn_of_hanging(self._partitions, self._states.values())

    def _spawn(self, work: Coroutine[None, None, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _image_changed(self, before: MetadataImage, after: MetadataImage) -> None:
        """Pass deletions of topics on to the event loop. Called on the metadata writer's thread."""
        if before.topics is after.topics:
            return
        gone = [
            name
            for name, topic in before.topics.items()
            if name not in after.topics or after.topics[name].topic_id != topic.topic_id
        ]
        if gone:
            self._loop.call_soon_threadsafe(self._topics_deleted, gone)

    def _topics_deleted(self, names: Sequence[str]) -> None:
        if self._stopping:
            return
        if TRANSACTION_TOPIC in names:
            logger.warning("%s was deleted: all transactional ids are forgotten", TRANSACTION_TOPIC)
            self.completion.forget_all()
            self.log.forget_all()
        else:
            self.completion.retry_now()

    def _ensure_served(self, transactional_id: str) -> None:
        if not transactional_id:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
        self._coordinator_log.ensure_loaded(transactional_id)

    def _ensure_permitted(self, transactional_id: str, request: InitProducerIdRequest) -> None:
        config = self._config.broker
        if not transactional_id:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "the transactional id is empty")
        if request.enable_2pc and not config.get_bool("transaction.two.phase.commit.enable"):
            raise BrokerError(
                ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                "two-phase commit is off (transaction.two.phase.commit.enable=false)",
            )
        if request.keep_prepared_txn:
            raise BrokerError(
                ErrorCode.UNSUPPORTED_VERSION,
                "a prepared transaction is kept by its producer id and epoch: EndTxn with them ends it",
            )
        if request.enable_2pc:
            return
        longest_ms = config.get_int("transaction.max.timeout.ms")
        if not 0 < request.transaction_timeout_ms <= longest_ms:
            raise BrokerError(
                ErrorCode.INVALID_TRANSACTION_TIMEOUT,
                f"transaction.timeout.ms={request.transaction_timeout_ms} is not between 1 and the broker's"
                f" transaction.max.timeout.ms={longest_ms}",
            )


def _admission(error: BrokerError | None, partitions: Sequence[PartitionKey]) -> Admission:
    return _ALL_ADMITTED if error is None else dict.fromkeys(partitions, error.code)


def _no_producer(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error=code)
