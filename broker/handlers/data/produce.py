"""Produce (key 0): appends one client batch to each of the named partitions.

If any batch is transactional, the client may WRITE the transactional id (TRANSACTIONAL_ID_AUTHORIZATION_FAILED for the
whole request, also without an id). Transactional batches of a request with a transactional id are then admitted
(produce_admission.py). Order of checks per partition: the topic id exists (UNKNOWN_TOPIC_ID); the client may WRITE the
topic (TOPIC_AUTHORIZATION_FAILED); no zstd in a version older than zstd (UNSUPPORTED_COMPRESSION_TYPE); acks is 0, 1 or
-1 (INVALID_REQUIRED_ACKS); the topic is not written by the broker itself (INVALID_TOPIC_EXCEPTION, unless the client is
Kafka's own admin client); the partition exists (UNKNOWN_TOPIC_OR_PARTITION) and is not mirrored (POLICY_VIOLATION: see
broker.metadata.mirrors.refusals); acks=-1 with min.insync.replicas above 1 (NOT_ENOUGH_REPLICAS: a single node has one
replica); admission; then the checks of `PartitionLog.append_as_leader`. One bad partition never fails the others.

With standby.min.acks=1, acks=-1 also needs a standby that is in time (NOT_ENOUGH_REPLICAS before the append), and is
answered once the standby has the records: see replicated_response.py.

Otherwise acks=1 and acks=-1 mean the same: written to the page cache, and flushed first if flush.messages
requires it (flush.ms is left to the log-flusher task, and no response waits for it). acks=0 has no response and waits
for no flush, although one is started; as in Kafka, an error then closes the connection, after all partitions were
tried, so that the producer notices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.handlers.authorization import denial, ensure_allowed
from barnabas.broker.handlers.data.produce_admission import Batch, ProduceAdmission
from barnabas.broker.network.deferred import Deferred
from barnabas.broker.network.response_frame import CloseConnection
from barnabas.broker.printable import printable
from barnabas.protocol.compression import Codec
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.data.produce import (
    ACKS_ALL,
    ACKS_LEADER,
    ACKS_NONE,
    ProducePartitionResult,
    ProduceRequest,
    ProduceResponse,
    ProduceTopicResult,
    copy_of_records,
)
from barnabas.protocol.messages.security.resources import Operation, ResourceType
from barnabas.protocol.records.layout import CODEC_MASK, MAGIC_POSITION, MAGIC_V2, TRANSACTIONAL_MASK
from barnabas.protocol.topic_name import INTERNAL_TOPICS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from barnabas.broker.handlers.data.produce_admission import Refusals, TransactionAdmission
    from barnabas.broker.network.session import Session
    from barnabas.broker.partitions.flush_waits import FlushWaits
    from barnabas.broker.partitions.partition import Partition
    from barnabas.broker.partitions.registry import PartitionRegistry, TopicName
    from barnabas.broker.partitions.replicated_response import ReplicatedAppend
    from barnabas.broker.probes import ApiProbe
    from barnabas.broker.storage.log.append import AppendResult

    Appended = tuple[Partition, AppendResult]


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
    ) -> None:
        self._partitions = partitions
        self._topic_name = topic_name
        self.flush_waits = flush_waits
        self._admission = ProduceAdmission(transactions)
        self._probe = probe

    def __call__(self, session: Session, request: ProduceRequest) -> ProduceResponse | Deferred[Any] | None:
        """Append the batches. Returns None with acks=0, and a Deferred where the response has to wait.

        It waits for flushes, or for the admission to a transaction.
        """
        if session.access is not None and any(
            _is_transactional(entry.records) for topic in request.topics for entry in topic.partitions
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
            return self._serve_admitted(session, copy_of_records(request), refusals)
        return self._serve(session, request, refusals, done)

    def _serve(
        self, session: Session, request: ProduceRequest, refusals: Refusals | None, done: Sequence[Appended] = ()
    ) -> ProduceResponse | Deferred[ProduceResponse | None] | None:
        """Append the batches but those of `refusals`, which is None without a transactional id, and the first ones.

        `done`: the results of the first ones.
        """
        already = iter(done)
        acks = request.acks
        flushes: list[tuple[Partition, int, ProducePartitionResult]] = []
        replications: list[ReplicatedAppend] = []
        topics: list[ProduceTopicResult] = []
        refusal: str | None = None
        for topic in request.topics:
            name = topic.name if topic.topic_id is None else self._topic_name(topic.topic_id)
            results: list[ProducePartitionResult] = []
            for entry in topic.partitions:
                try:
                    partition, appended = next(already, None) or self._append(
                        session, request, name, entry.partition, entry.records, refusals
                    )
                    result = _stored(entry.partition, appended)
                    if appended.flush_due:
                        flushes.append((partition, appended.last_offset + 1, result))
                    if acks == ACKS_ALL and partition.copy is not None:
                        replications.append((partition, appended.last_offset + 1, result))
                except BrokerError as error:
                    if acks == ACKS_NONE and refusal is None:
                        refusal = f"produce with acks=0 to {printable(name or '')}-{entry.partition} failed: {error}"
                    result = self._refused(entry.partition, error)
                results.append(result)
            topics.append(ProduceTopicResult(topic.name, results, topic.topic_id))
        if acks == ACKS_NONE:
            for partition, up_to_offset, _ in flushes:
                self.flush_waits.begin(partition, up_to_offset)
            if refusal is not None:
                raise CloseConnection(refusal)
            return None
        response = ProduceResponse(topics)
        answer = self.flush_waits.answer_after(flushes, response) if flushes else response
        if not replications:
            return answer
        # Here: most brokers have no standby.
        from barnabas.broker.partitions.replicated_response import answer_when_replicated

        return answer_when_replicated(replications, answer, request.timeout_ms)

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
            name = topic.name if topic.topic_id is None else self._topic_name(topic.topic_id)
            if name is None or not (access is None or access.write_topic[name]):
                continue
            for entry in topic.partitions:
                partition = self._partitions.get(name, entry.partition)
                # A mirrored partition must not become part of the transaction, whose marker it would refuse.
                if partition is not None and partition.mirror is None:
                    batches.append(Batch((name, entry.partition), partition, entry.records))
        return batches

    def _serve_admitted(
        self, session: Session, request: ProduceRequest, refusals: Deferred[Refusals]
    ) -> Deferred[ProduceResponse | Exception | None]:
        """Serve a request, which has its own copy of the records, once its admission has arrived.

        A client that disconnects meanwhile changes nothing: its records are appended.
        """
        answer: Deferred[ProduceResponse | Exception | None] = Deferred()

        def admitted(found: Refusals) -> None:
            try:
                response = self._serve(session, request, found)
            except CloseConnection as error:
                answer.resolve(BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, str(error)))  # closes it, with acks=0
                return
            except Exception as error:  # noqa: BLE001 - an error of this request, not of the coordinator's append
                answer.resolve(error)
                return
            if isinstance(response, Deferred):
                response.then(answer.resolve)
            else:
                answer.resolve(response)

        refusals.then(admitted)
        return answer

    def _append(
        self,
        session: Session,
        request: ProduceRequest,
        topic: str | None,
        number: int,
        records: memoryview,
        refusals: Refusals | None,
    ) -> tuple[Partition, AppendResult]:
        if topic is None:
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_ID, "unknown topic id")
        access = session.access
        if access is not None and not access.write_topic[topic]:
            ensure_allowed(session, Operation.WRITE, ResourceType.TOPIC, topic, ApiKey.PRODUCE)
        acks = request.acks
        if not request.takes_zstd and _is_zstd(records):
            raise BrokerError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, "zstd needs Produce version 7")
        if not ACKS_ALL <= acks <= ACKS_LEADER:
            raise BrokerError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks={acks} is not 0, 1 or -1")
        if topic in INTERNAL_TOPICS and session.client_id != ADMIN_CLIENT_ID:
            raise BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"only the broker writes to {topic}")
        partition = self._partitions.get(topic, number)
        if partition is None:
            raise self._partitions.refusal(topic, number)
        partition.ensure_not_mirrored()  # first: NOT_ENOUGH_REPLICAS would be retried
        if acks == ACKS_ALL and partition.log.config.min_insync_replicas > 1:
            raise BrokerError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"min.insync.replicas={partition.log.config.min_insync_replicas} of {topic} needs more than the one"
                " replica that a single node has",
            )
        if acks == ACKS_ALL:
            self._partitions.replication.ensure_in_time(partition)
        if refusals is None:
            return partition, partition.append(records)
        if refusals and (refusal := refusals.get((topic, number))) is not None:
            raise refusal
        return partition, partition.append_in_transaction(records)

    def _refused(self, number: int, error: BrokerError) -> ProducePartitionResult:
        self._probe.count_error(error.code.name.lower())
        return ProducePartitionResult(number, error.code, error.message, record_errors=error.record_errors)


def _stored(number: int, appended: AppendResult) -> ProducePartitionResult:
    return ProducePartitionResult(
        number,
        ErrorCode.NONE,
        None,
        appended.base_offset,
        appended.log_append_time_ms,
        appended.log_start_offset,
    )


_ATTRIBUTES_POSITION: Final = 22
"""The low byte of a batch's attributes."""


def _is_zstd(records: memoryview) -> bool:
    return len(records) > _ATTRIBUTES_POSITION and records[_ATTRIBUTES_POSITION] & CODEC_MASK == Codec.ZSTD


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
