"""DeleteRecords (key 21): delete the records of partitions below an offset; -1 means the high watermark.

Order of checks per partition: the client may DELETE the topic (TOPIC_AUTHORIZATION_FAILED); it exists
(UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR if its directory is offline); the topic is not internal
(INVALID_TOPIC_EXCEPTION); its cleanup.policy includes delete, since a topic that is only compacted keeps its records
(POLICY_VIOLATION); it is not a mirror (POLICY_VIOLATION); the offset is -1 or in [0, high watermark]
(OFFSET_OUT_OF_RANGE). An offset below the log start offset changes nothing and is not an error. The response has the
log start offset. One bad partition never fails the others.

Deleted records are unreadable once the response is sent. As in Kafka the new log start offset becomes durable with the
next log-start-offset-checkpoint (log.flush.start.offset.checkpoint.interval.ms, or a clean stop), and the bytes are
freed by the next run of log-retention. Kafka's answer has no message: the log says why a policy refuses. Differs from
Kafka for a partition that is being moved to another log directory: Kafka waits for the copy, here the copy follows with
its next chunk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.broker.handlers.authorization import denial
from barnabas.broker.handlers.turns import Turns, denied_in_turns, in_turns
from barnabas.broker.network.unsaid_refusals import log_unsaid
from barnabas.broker.repeated_warnings import RepeatedWarnings
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.data.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from barnabas.protocol.messages.security.resources import Operation, ResourceType
from barnabas.protocol.topic_name import is_internal

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Coroutine

    from barnabas.broker.network.session import Session
    from barnabas.broker.partitions.registry import PartitionRegistry
    from barnabas.broker.probes import ApiProbe


class DeleteRecordsHandler:
    """Serves DeleteRecords."""

    def __init__(self, partitions: PartitionRegistry, probe: ApiProbe, loop: asyncio.AbstractEventLoop) -> None:
        self._partitions = partitions
        self._probe = probe
        self._warnings = RepeatedWarnings(loop)

    def __call__(
        self, session: Session, request: DeleteRecordsRequest
    ) -> DeleteRecordsResponse | Coroutine[Any, Any, DeleteRecordsResponse]:
        """Answer one DeleteRecords request as the module docstring specifies; of many partitions in several turns."""
        return in_turns(self._delete_all(session, request))

    async def _delete_all(self, session: Session, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
        turns = Turns()
        offsets = request.offsets()
        denied = await denied_in_turns(
            turns, session, Operation.DELETE, ResourceType.TOPIC, offsets, ApiKey.DELETE_RECORDS
        )
        topics = []
        for topic, partitions in offsets.items():
            results = []
            for number, offset in partitions.items():
                if turns.is_over:
                    await turns.next()
                results.append(self._delete(session, topic, number, offset, is_denied=topic in denied))
            topics.append(DeleteRecordsTopicResult(name=topic, partitions=results))
        return DeleteRecordsResponse(topics=topics)

    def _delete(
        self, session: Session, topic: str, number: int, offset: int, *, is_denied: bool
    ) -> DeleteRecordsPartitionResult:
        try:
            if is_denied:
                raise denial(ResourceType.TOPIC)
            partition = self._partitions.get(topic, number)
            if partition is None:
                raise self._partitions.refusal(topic, number)
            if is_internal(topic):
                raise BrokerError(
                    ErrorCode.INVALID_TOPIC_EXCEPTION, f"records of the internal topic {topic} cannot be deleted"
                )
            config = partition.log.config
            if not config.may_delete_records:
                policy = "not understood" if "cleanup.policy" in config.unread else "compact, without delete"
                raise BrokerError(
                    ErrorCode.POLICY_VIOLATION, f"records of {topic} cannot be deleted: its cleanup.policy is {policy}"
                )
            start = partition.delete_records(offset)
        except BrokerError as error:
            self._probe.count_error(error.code.name.lower())
            log_unsaid(self._warnings, session, ApiKey.DELETE_RECORDS, error)
            return DeleteRecordsPartitionResult(partition=number, error=error.code, message=error.message)
        return DeleteRecordsPartitionResult(partition=number, low_watermark=start)
