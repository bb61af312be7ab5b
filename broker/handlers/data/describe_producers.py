"""DescribeProducers (key 61): the active producers of each partition, idempotent and transactional.

Errors per partition: INVALID_TOPIC_EXCEPTION for an illegal topic name, TOPIC_AUTHORIZATION_FAILED if the client may
not READ the topic, UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR if its directory is offline. Expired producers
(producer.id.expiration.ms) are not listed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.handlers.authorization import ensure_allowed
from barnabas.protocol.errors import BrokerError
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.data.describe_producers import (
    DescribeProducersPartitionResult,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersTopic,
    DescribeProducersTopicResult,
)
from barnabas.protocol.messages.security.resources import Operation, ResourceType
from barnabas.protocol.topic_name import validate_topic_name

if TYPE_CHECKING:
    from barnabas.broker.network.session import Session
    from barnabas.broker.partitions.registry import PartitionRegistry
    from barnabas.broker.probes import ApiProbe


class DescribeProducersHandler:
    """Serves DescribeProducers."""

    def __init__(self, partitions: PartitionRegistry, probe: ApiProbe) -> None:
        self._partitions = partitions
        self._probe = probe

    def __call__(self, session: Session, request: DescribeProducersRequest) -> DescribeProducersResponse:
        """Answer one DescribeProducers request as the module docstring specifies."""
        return DescribeProducersResponse(
            [
                DescribeProducersTopicResult(topic.name, self._describe_topic(session, topic, request.producer_id))
                for topic in request.topics
            ]
        )

    def _describe_topic(
        self, session: Session, topic: DescribeProducersTopic, producer_id: int | None
    ) -> list[DescribeProducersPartitionResult]:
        try:
            validate_topic_name(topic.name)
            ensure_allowed(session, Operation.READ, ResourceType.TOPIC, topic.name, ApiKey.DESCRIBE_PRODUCERS)
        except BrokerError as error:
            return [self._refuse(number, error) for number in topic.partitions]
        return [self._describe(topic.name, number, producer_id) for number in topic.partitions]

    def _describe(self, topic: str, number: int, producer_id: int | None) -> DescribeProducersPartitionResult:
        try:
            partition = self._partitions.get(topic, number)
            if partition is None:
                raise self._partitions.refusal(topic, number)
            producers = partition.log.active_producers()
            if producer_id is not None:
                producers = [each for each in producers if each.producer_id == producer_id]
            return DescribeProducersPartitionResult(number, producers=producers)
        except BrokerError as error:
            return self._refuse(number, error)

    def _refuse(self, number: int, error: BrokerError) -> DescribeProducersPartitionResult:
        self._probe.count_error(error.code.name.lower())
        return DescribeProducersPartitionResult(number, error.code, error.message)
