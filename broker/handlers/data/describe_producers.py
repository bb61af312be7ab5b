"""DescribeProducers (key 61): the active producers of each partition, idempotent and transactional.

Errors per partition: INVALID_TOPIC_EXCEPTION for an illegal topic name, TOPIC_AUTHORIZATION_FAILED if the client may
not READ the topic, UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR if its directory is offline. Expired producers
(producer.id.expiration.ms) are not listed. Differs from Kafka: INVALID_REQUEST for each occurrence of a partition that
is listed more than ten times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from barnabas.broker.handlers.authorization import ensure_allowed
from barnabas.broker.handlers.repetitions import DESCRIBED_MAX, repeated, repetition_error
from barnabas.broker.handlers.turns import Turns, in_turns
from barnabas.protocol.errors import BrokerError
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.data.describe_producers import (
    DescribeProducersPartitionResult,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersTopicResult,
)
from barnabas.protocol.messages.security.resources import Operation, ResourceType
from barnabas.protocol.topic_name import validate_topic_name

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from barnabas.broker.network.session import Session
    from barnabas.broker.partitions.registry import PartitionRegistry
    from barnabas.broker.probes import ApiProbe


class DescribeProducersHandler:
    """Serves DescribeProducers."""

    def __init__(self, partitions: PartitionRegistry, probe: ApiProbe) -> None:
        self._partitions = partitions
        self._probe = probe

    def __call__(
        self, session: Session, request: DescribeProducersRequest
    ) -> DescribeProducersResponse | Coroutine[Any, Any, DescribeProducersResponse]:
        """Answer one DescribeProducers request as the module docstring specifies; of many partitions in turns."""
        return in_turns(self._describe_all(session, request))

    async def _describe_all(self, session: Session, request: DescribeProducersRequest) -> DescribeProducersResponse:
        turns = Turns()
        refused = repeated(
            ((topic.name, number) for topic in request.topics for number in topic.partitions), DESCRIBED_MAX
        )
        topics = []
        for topic in request.topics:
            refusal = _topic_refusal(session, topic.name)
            results = []
            for number in topic.partitions:
                if turns.is_over:
                    await turns.next()
                error = (
                    repetition_error("partition", DESCRIBED_MAX)
                    if refusal is None and (topic.name, number) in refused
                    else refusal
                )
                results.append(self._describe(topic.name, number) if error is None else self._refuse(number, error))
            topics.append(DescribeProducersTopicResult(name=topic.name, partitions=results))
        return DescribeProducersResponse(topics=topics)

    def _describe(self, topic: str, number: int) -> DescribeProducersPartitionResult:
        try:
            partition = self._partitions.get(topic, number)
            if partition is None:
                raise self._partitions.refusal(topic, number)
            return DescribeProducersPartitionResult(partition=number, producers=partition.log.active_producers())
        except BrokerError as error:
            return self._refuse(number, error)

    def _refuse(self, number: int, error: BrokerError) -> DescribeProducersPartitionResult:
        self._probe.count_error(error.code.name.lower())
        return DescribeProducersPartitionResult(partition=number, error=error.code, message=error.message)


def _topic_refusal(session: Session, topic: str) -> BrokerError | None:
    """Return the error of all partitions of a topic, or None."""
    try:
        validate_topic_name(topic)
        ensure_allowed(session, Operation.READ, ResourceType.TOPIC, topic, ApiKey.DESCRIBE_PRODUCERS)
    except BrokerError as error:
        return error
    return None
