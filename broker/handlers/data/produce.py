"""Produce (key 0): appends one client batch to each of the named partitions.

If any batch is transactional, the client may WRITE the transactional id (TRANSACTIONAL_ID_AUTHORIZATION_FAILED for the
whole request, also without an id). Transactional batches of a request with a transactional id are then admitted
(produce_admission.py). Order of checks per partition: the topic id exists (UNKNOWN_TOPIC_ID); the client may WRITE the
topic (TOPIC_AUTHORIZATION_FAILED); the partition exists (UNKNOWN_TOPIC_OR_PARTITION); no zstd in a version older than
zstd (UNSUPPORTED_COMPRESSION_TYPE); acks is 0, 1 or -1 (INVALID_REQUIRED_ACKS); the topic is not written by the broker
itself (INVALID_TOPIC_EXCEPTION, unless the client is Kafka's own admin client); the partition is not mirrored
(POLICY_VIOLATION: see broker.metadata.mirrors.refusals); acks=-1 with min.insync.replicas above 1
(NOT_ENOUGH_REPLICAS: a single node has one replica); admission; then the checks of `PartitionLog.append_as_leader`,
some of which answer the log start offset with the error. One bad partition never fails the others.

With standby.min.acks=1, acks=-1 also needs a standby that is in time (NOT_ENOUGH_REPLICAS before the append), and is
answered once the standby has the records: see replicated_response.py.

Otherwise acks=1 and acks=-1 mean the same: written to the page cache, and flushed first if flush.messages, or with
acks=-1 flush.acks.all, requires it (flush.ms is left to the log-flusher task, and no response waits for it). acks=0 has
no response and waits for no flush, although one is started; as in Kafka, an error then closes the connection, after all
partitions were tried, so that the producer notices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.handlers.authorization import denial, ensure_allowed
from barnabas.broker.handlers.data.produce_admission import Batch, ProduceAdmission
from barnabas.broker.network.deferred import Deferred
from barnabas.broker.network.response_frame import CloseConnection
from barnabas.broker.printable import printable
from barnabas.broker.storage.log.append import LargeBatchError
from barnabas.protocol.compression import Codec
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.data.produce import (
    ACKS_ALL,
    ACKS_LEADER,
    ACKS_NONE,
    TOPIC_IDS_FROM,
    ProducePartitionResult,
    ProduceRequest,
    ProduceResponse,
    ProduceTopic,
    ProduceTopicResult,
    RecordError,
)
from barnabas.protocol.messages.security.resources import Operation, ResourceType
from barnabas.protocol.records.layout import (
    CODEC_MASK,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    MAGIC_V2,
    TRANSACTIONAL_MASK,
)
from barnabas.protocol.topic_name import INTERNAL_TOPICS

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Sequence
    from concurrent.futures import Executor

    from barnabas.broker.handlers.data.large_batches import LargeBatch, LargeBatches
    from barnabas.broker.handlers.data.produce_admission import Refusals, TransactionAdmission
    from barnabas.broker.network.session import Session
    from barnabas.broker.partitions.flush_waits import FlushWaits
    from barnabas.broker.partitions.partition import Partition
    from barnabas.broker.partitions.registry import PartitionRegistry, TopicName
    from barnabas.broker.partitions.replicated_response import ReplicatedAppend
    from barnabas.broker.probes import ApiProbe
    from barnabas.broker.storage.log.append import AppendResult
    from barnabas.broker.storage.log.appending.validator import CheckedBatch

    Appended = tuple[Partition, AppendResult]
    _LargeEntry = tuple[ProduceTopic, int, list[ProducePartitionResult], LargeBatch]
    """A batch for a thread: its topic, and the place of its result among those of the topic."""


ADMIN_CLIENT_ID: Final = "__admin_client"
"""Client id that may write to internal topics, as in Kafka (AdminUtils)."""


class ProduceHandler:
    """Serves Produce."""

    def __init__(
        self,
        partitions: PartitionRegistry,
        topic_name: TopicName,
        flush_waits: FlushWaits,
        transactions: TransactionAdmission,
        probe: ApiProbe,
        loop: asyncio.AbstractEventLoop,
        blocking_io: Executor,
    ) -> None:
        self._partitions = partitions
        self._topic_name = topic_name
        self.flush_waits = flush_waits
        self._admission = ProduceAdmission(transactions)
        self._probe = probe
        self._loop = loop
        self._blocking_io = blocking_io
        self._large_batches: LargeBatches | None = None

    def __call__(self, session: Session, request: ProduceRequest) -> ProduceResponse | Deferred[Any] | None:
        """Append the batches. Returns None with acks=0, and a Deferred where the response has to wait.

        It waits for flushes, or for the admission to a transaction.
        """
        if session.access is not None and any(
            _is_transactional(entry.batch) for topic in request.topics for entry in topic.partitions
        ):
            _ensure_transaction_allowed(session, request)
        if request.transactional_id is None:
            return self._serve(session, request, None)
        return self.finish_admitted(self.admit(request, self._batches_of(session, request)), (), session, request)

    def admit(self, request: ProduceRequest, batches: Sequence[Batch]) -> Refusals | Deferred[Refusals]:
        """Return the refused partitions of a request with a transactional id, whose topics are not used.

        Raises BrokerError INVALID_PRODUCER_ID_MAPPING.
        """
        return self._admission.admit(request, batches)

    def finish_admitted(
        self,
        refusals: Refusals | Deferred[Refusals],
        done: Sequence[Appended],
        session: Session,
        request: ProduceRequest,
    ) -> ProduceResponse | Deferred[Any] | None:
        """Serve a request with a transactional id after `admit`; `done`: the results of batches already appended."""
        if isinstance(refusals, Deferred):
            return self._serve_admitted(session, request.copy_of_records(), refusals)
        return self._serve(session, request, refusals, done)

    def _serve(
        self, session: Session, request: ProduceRequest, refusals: Refusals | None, done: Sequence[Appended] = ()
    ) -> ProduceResponse | Deferred[Any] | None:
        """Append the batches but those of `refusals`, which is None without a transactional id, and the first ones.

        `done`: the results of the first ones.
        """
        already = iter(done)
        served = _Served(request)
        large: list[_LargeEntry] = []
        for topic in request.topics:
            name = self._name_of(request, topic)
            results: list[ProducePartitionResult] = []
            for entry in topic.partitions:
                try:
                    partition, appended = next(already, None) or self._append(
                        session, request, name, entry.partition, entry.batch, refusals
                    )
                    result = served.stored(entry.partition, partition, appended)
                except BrokerError as error:
                    result = self._refused(served, name, entry.partition, error)
                except LargeBatchError:
                    result = ProducePartitionResult(entry.partition)  # until it is checked
                    assert name is not None, "the partition exists"
                    refusing = self._partitions.get(name, entry.partition)
                    assert refusing is not None, "it has refused the batch"
                    try:
                        batch = self._checks().batch(refusing, entry.batch, in_transaction=refusals is not None)
                        large.append((topic, len(results), results, batch))
                    except BrokerError as error:
                        result = self._refused(served, name, entry.partition, error)
                results.append(result)
            served.topics.append(ProduceTopicResult(name=topic.name, topic_id=topic.topic_id, partitions=results))
        if large:
            return self._serve_large(session, request, refusals is not None, served, large)
        return self._answer(request, served)

    def _serve_large(
        self, session: Session, request: ProduceRequest, in_transaction: bool, served: _Served, large: list[_LargeEntry]
    ) -> Deferred[ProduceResponse | Exception | None]:
        """Append large batches once threads have checked them, and answer the request.

        Those of a transaction are admitted again: it may have ended meanwhile.
        """
        answer: Deferred[ProduceResponse | Exception | None] = Deferred()

        def append(refusals: Refusals | None) -> ProduceResponse | Deferred[ProduceResponse | None] | None:
            for topic, place, results, batch in large:
                number = results[place].partition
                name = self._name_of(request, topic)
                try:
                    partition, appended = self._append(
                        session, request, name, number, batch.records, refusals, batch.found()
                    )
                    results[place] = served.stored(number, partition, appended)
                except BrokerError as error:
                    results[place] = self._refused(served, name, number, error)
            return self._answer(request, served)

        def admitted(refusals: Refusals) -> None:
            _answer_late(answer, lambda: append(refusals))

        def checked(_: None) -> None:
            if not in_transaction:
                _answer_late(answer, lambda: append(None))
                return
            batches: list[Batch] = []
            for topic, place, results, batch in large:
                name, number = self._name_of(request, topic), results[place].partition
                partition = None if name is None else self._partitions.get(name, number)
                if name is not None and partition is not None and partition.mirror is None:
                    batches.append(Batch((name, number), partition, batch.records))
            try:
                refusals = self.admit(request, batches)
            except Exception as error:  # noqa: BLE001 - an error of this request, not of the thread's callback
                answer.resolve(error)
                return
            if isinstance(refusals, Deferred):
                refusals.then(admitted)
            else:
                admitted(refusals)

        self._checks().check([each[-1] for each in large]).then(checked)
        return answer

    def _checks(self) -> LargeBatches:
        if self._large_batches is None:
            from barnabas.broker.handlers.data.large_batches import LargeBatches  # late: most brokers get none

            self._large_batches = LargeBatches(self._loop, self._blocking_io)
        return self._large_batches

    def _answer(
        self, request: ProduceRequest, served: _Served
    ) -> ProduceResponse | Deferred[ProduceResponse | None] | None:
        """Return the answer to a request whose batches were all appended or refused. Raises CloseConnection."""
        flushes = served.flushes
        if request.acks == ACKS_NONE:
            for partition, up_to_offset, _ in flushes:
                self.flush_waits.begin(partition, up_to_offset)
            if served.refusal is not None:
                raise CloseConnection(served.refusal)
            return None
        response = ProduceResponse(topics=served.topics)
        answer = self.flush_waits.answer_after(flushes, response) if flushes else response
        if not served.replications:
            return answer
        # Here: most brokers have no standby.
        from barnabas.broker.partitions.replicated_response import answer_when_replicated

        return answer_when_replicated(served.replications, answer, request.timeout_ms)

    def _name_of(self, request: ProduceRequest, topic: ProduceTopic) -> str | None:
        return topic.name if topic.name or request.version < TOPIC_IDS_FROM else self._topic_name(topic.topic_id)

    def finish(
        self, done: Sequence[Appended], session: Session, request: ProduceRequest
    ) -> ProduceResponse | Deferred[Any] | None:
        """Serve a request without a transactional id whose first batches were appended already, with these results."""
        return self._serve(session, request, None, done)

    def _batches_of(self, session: Session, request: ProduceRequest) -> list[Batch]:
        """Return the batches for existing partitions that the client may write and no mirror does."""
        access = session.access
        batches = []
        for topic in request.topics:
            name = self._name_of(request, topic)
            if name is None or not (access is None or access.write_topic[name]):
                continue
            for entry in topic.partitions:
                partition = self._partitions.get(name, entry.partition)
                # A mirrored partition must not become part of the transaction, whose marker it would refuse.
                if partition is not None and partition.mirror is None:
                    batches.append(Batch((name, entry.partition), partition, entry.batch))
        return batches

    def _serve_admitted(
        self, session: Session, request: ProduceRequest, refusals: Deferred[Refusals]
    ) -> Deferred[ProduceResponse | Exception | None]:
        """Serve a request, which has its own copy of the records, once its admission has arrived.

        A client that disconnects meanwhile changes nothing: its records are appended.
        """
        answer: Deferred[ProduceResponse | Exception | None] = Deferred()
        refusals.then(lambda found: _answer_late(answer, lambda: self._serve(session, request, found)))
        return answer

    def _append(
        self,
        session: Session,
        request: ProduceRequest,
        topic: str | None,
        number: int,
        records: memoryview,
        refusals: Refusals | None,
        checked: CheckedBatch | None = None,
    ) -> tuple[Partition, AppendResult]:
        if topic is None:
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_ID, "unknown topic id")
        access = session.access
        if access is not None and not access.write_topic[topic]:
            ensure_allowed(session, Operation.WRITE, ResourceType.TOPIC, topic, ApiKey.PRODUCE)
        acks = request.acks
        partition = self._partitions.get(topic, number)
        is_internal = topic in INTERNAL_TOPICS and session.client_id != ADMIN_CLIENT_ID
        if partition is None and not is_internal:  # partitions of internal topics are made when they are needed
            raise self._partitions.refusal(topic, number)
        if not request.takes_zstd and _is_zstd(records):
            raise BrokerError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd needs Produce version 7")
        if not ACKS_ALL <= acks <= ACKS_LEADER:
            raise BrokerError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks={acks} is not 0, 1 or -1")
        if partition is None or is_internal:
            raise BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"only the broker writes to {topic}")
        partition.ensure_not_mirrored()  # first: NOT_ENOUGH_REPLICAS would be retried
        if acks == ACKS_ALL and partition.log.config.min_insync_replicas > 1:
            raise BrokerError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"min.insync.replicas={partition.log.config.min_insync_replicas} of {topic} needs more than the one"
                " replica that a single node has",
            )
        if acks == ACKS_ALL:
            self._partitions.replication.ensure_in_time(partition)
        refusal = refusals.get((topic, number)) if refusals else None
        if refusal is not None:
            raise refusal
        try:
            if refusals is None:
                return partition, partition.append(records, checked)
            return partition, partition.append_in_transaction(records, checked)
        except BrokerError as error:
            if error.code not in _WITHOUT_START_OFFSET and _begins_with_batch(records, len(records)):
                error.log_start_offset = partition.log.log_start_offset
            raise

    def _refused(self, served: _Served, topic: str | None, number: int, error: BrokerError) -> ProducePartitionResult:
        if served.refusal is None:
            served.refusal = f"produce with acks=0 to {printable(topic or '')}-{number} failed: {error}"
        self._probe.count_error(error.code.name.lower())
        return ProducePartitionResult(
            number,
            error.code,
            message=error.message,
            log_start_offset=error.log_start_offset,
            record_errors=[RecordError(batch_index=index, message=text) for index, text in error.record_errors],
        )


class _Served:
    """What the batches of a request have come to."""

    __slots__ = ("_is_acks_all", "flushes", "refusal", "replications", "topics")

    def __init__(self, request: ProduceRequest) -> None:
        self._is_acks_all = request.acks == ACKS_ALL
        self.flushes: list[tuple[Partition, int, ProducePartitionResult]] = []
        """Partitions with the end offsets that must be synced before the answer."""
        self.replications: list[ReplicatedAppend] = []
        self.topics: list[ProduceTopicResult] = []
        self.refusal: str | None = None
        """Why the first refused batch was refused: with acks=0 it ends the connection."""

    def stored(self, number: int, partition: Partition, appended: AppendResult) -> ProducePartitionResult:
        """Return the result of an appended batch, and note what its answer must wait for."""
        result = ProducePartitionResult(
            number,
            ErrorCode.NONE,
            appended.base_offset,
            appended.log_append_time_ms,
            appended.log_start_offset,
        )
        if appended.flush_due or (self._is_acks_all and _is_unsynced_acks_all(partition, appended)):
            self.flushes.append((partition, appended.last_offset + 1, result))
        if self._is_acks_all and partition.copy is not None:
            self.replications.append((partition, appended.last_offset + 1, result))
        return result


def _answer_late(
    answer: Deferred[ProduceResponse | Exception | None],
    serve: Callable[[], ProduceResponse | Deferred[Any] | None],
) -> None:
    """Resolve `answer` with what `serve` returns or raises: errors are those of this request, not of the caller's."""
    try:
        response = serve()
    except CloseConnection as error:
        answer.resolve(BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)))  # closes it, with acks=0
        return
    except Exception as error:  # noqa: BLE001 - see above
        answer.resolve(error)
        return
    if isinstance(response, Deferred):
        response.then(answer.resolve)
    else:
        answer.resolve(response)


def _is_unsynced_acks_all(partition: Partition, appended: AppendResult) -> bool:
    """Return whether flush.acks.all demands a sync of the records, those of a repeated batch included."""
    log = partition.writable_log
    assert log is not None, "records were appended"
    return log.config.flush_acks_all and appended.last_offset >= log.durable_offset


_ATTRIBUTES_POSITION: Final = 22
"""The low byte of a batch's attributes."""
_LENGTH: Final = slice(8, LOG_OVERHEAD)


_WITHOUT_START_OFFSET: Final = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
    }
)
"""Errors of an append that Kafka answers without the log start offset (ReplicaManager.appendRecordsToLeader)."""


def _is_zstd(records: memoryview) -> bool:
    return _begins_with_batch(records) and records[_ATTRIBUTES_POSITION] & CODEC_MASK == Codec.ZSTD


def _begins_with_batch(records: memoryview, size: int | None = None) -> bool:
    """Return whether a whole batch of version 2 is first, of `size` bytes if given; its content is not checked."""
    if len(records) <= _ATTRIBUTES_POSITION or records[MAGIC_POSITION] != MAGIC_V2:
        return False
    found = int.from_bytes(records[_LENGTH], "big", signed=True) + LOG_OVERHEAD
    return HEADER_SIZE <= found <= len(records) and size in (None, found)


def _is_transactional(records: memoryview) -> bool:
    return (
        len(records) > _ATTRIBUTES_POSITION
        and bool(records[_ATTRIBUTES_POSITION] & TRANSACTIONAL_MASK)
        and records[MAGIC_POSITION] >= MAGIC_V2
    )


def _ensure_transaction_allowed(session: Session, request: ProduceRequest) -> None:
    """Raise BrokerError TRANSACTIONAL_ID_AUTHORIZATION_FAILED if the client may not write in the transaction."""
    transactional_id = request.transactional_id
    if transactional_id is None:
        raise denial(ResourceType.TRANSACTIONAL_ID)
    access = session.access
    if access is not None and not access.write_transaction[transactional_id]:
        ensure_allowed(session, Operation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id, ApiKey.PRODUCE)
