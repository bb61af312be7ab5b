"""`__share_group_state`: its configs. Source: Kafka's ShareCoordinatorService.shareGroupStateTopicConfigs.

Kafka sets min.insync.replicas to share.coordinator.state.topic.min.isr, 2 by default. A single node has one replica, so
that property is not served and the topic has 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.coordinator_log.topic import CoordinatorTopic

if TYPE_CHECKING:
    from barnabas.config import BrokerConfig
    from barnabas.protocol.messages.topics.topics import NewTopic

SHARE_STATE_TOPIC: Final = "__share_group_state"


def new_share_state_topic(config: BrokerConfig) -> NewTopic:
    """Return the topic as Kafka creates it, with the one replica that a single node has."""
    from barnabas.protocol.messages.topics.topics import NewTopic  # late: most starts create no topic

    return NewTopic(
        SHARE_STATE_TOPIC,
        config.get_int("share.coordinator.state.topic.num.partitions"),
        1,
        {
            "cleanup.policy": "delete",
            "compression.type": "producer",
            "min.insync.replicas": "1",
            "retention.ms": "-1",
            "segment.bytes": str(config.get_int("share.coordinator.state.topic.segment.bytes")),
        },
    )


SHARE_STATE: Final = CoordinatorTopic(
    SHARE_STATE_TOPIC, "share.coordinator.state.topic.num.partitions", new_share_state_topic
)
