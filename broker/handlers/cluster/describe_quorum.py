"""DescribeQuorum (key 55): the quorum of the metadata log, whose only voter is this node.

This node leads, so its log end offset equals the high watermark: the end of the durable records. Its times are the
current time, as in Kafka for a leader. There is no controller listener: the node is described by the client's listener.
CLUSTER_AUTHORIZATION_FAILED if the client may not DESCRIBE the cluster. A request for anything but the metadata log's
partition is answered UNKNOWN_TOPIC_OR_PARTITION for each row, as in Kafka. Source: Kafka
KafkaRaftClient.handleDescribeQuorumRequest, RaftUtil.singletonDescribeQuorumResponse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.handlers.authorization import ensure_cluster_allowed
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.cluster.describe_quorum import (
    DescribeQuorumPartition,
    DescribeQuorumPartitionResult,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumTopic,
    DescribeQuorumTopicResult,
    QuorumListener,
    QuorumNode,
    QuorumReplica,
)
from barnabas.protocol.messages.security.resources import Operation
from barnabas.protocol.topic_name import CLUSTER_METADATA_TOPIC

if TYPE_CHECKING:
    from barnabas.broker.metadata.view import MetadataView
    from barnabas.broker.network.advertised import AdvertisedAddresses
    from barnabas.broker.network.session import Session
    from barnabas.broker.storage.services.clock import Clock

_THE_LOG: Final = [DescribeQuorumTopic(name=CLUSTER_METADATA_TOPIC, partitions=[DescribeQuorumPartition(partition=0)])]


class DescribeQuorumHandler:
    """Serves DescribeQuorum."""

    def __init__(self, store: MetadataView, addresses: AdvertisedAddresses, clock: Clock) -> None:
        self._store = store
        self._addresses = addresses
        self._clock = clock

    def __call__(self, session: Session, request: DescribeQuorumRequest) -> DescribeQuorumResponse:
        """Answer one DescribeQuorum request as the module docstring specifies."""
        ensure_cluster_allowed(session, Operation.DESCRIBE, ApiKey.DESCRIBE_QUORUM)
        if request.topics != _THE_LOG:
            return DescribeQuorumResponse(
                message=None,
                topics=[
                    DescribeQuorumTopicResult(
                        name=topic.name, partitions=[_unknown(each.partition) for each in topic.partitions]
                    )
                    for topic in request.topics
                ],
            )
        store, now_ms = self._store, self._clock.wall_ms()
        end_offset = store.image.end_offset
        result = DescribeQuorumPartitionResult(
            partition=0,
            message=None,
            leader_id=store.node_id,
            leader_epoch=store.leader_epoch,
            high_watermark=end_offset,
            voters=[
                QuorumReplica(
                    node_id=store.node_id,
                    log_end_offset=end_offset,
                    last_fetch_timestamp=now_ms,
                    last_caught_up_timestamp=now_ms,
                    directory_id=store.voter.directory_id,
                )
            ],
        )
        address = self._addresses.address_for(session)
        return DescribeQuorumResponse(
            message=None,
            topics=[DescribeQuorumTopicResult(name=CLUSTER_METADATA_TOPIC, partitions=[result])],
            nodes=[
                QuorumNode(
                    node_id=store.node_id,
                    listeners=[QuorumListener(name=session.listener.name, host=address.host, port=address.port)],
                )
            ],
        )


def _unknown(partition: int) -> DescribeQuorumPartitionResult:
    message = "This server does not host this topic-partition."
    return DescribeQuorumPartitionResult(
        partition=partition, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message=message
    )
