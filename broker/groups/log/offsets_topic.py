"""`__consumer_offsets`: its configs. Source: Kafka's GroupCoordinatorService.groupMetadataTopicConfigs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.coordinator_log.topic import CoordinatorTopic

if TYPE_CHECKING:
    from barnabas.config import BrokerConfig
    from barnabas.protocol.messages.topics.topics import NewTopic

OFFSETS_TOPIC: Final = "__consumer_offsets"


def new_offsets_topic(config: BrokerConfig) -> NewTopic:
    """Return the topic as Kafka creates it, with the one replica that a single node has."""
    from barnabas.protocol.messages.topics.topics import NewTopic  # late: most starts create no topic

    return NewTopic(
        OFFSETS_TOPIC,
        config.get_int("offsets.topic.num.partitions"),
        1,
        {
            "cleanup.policy": "compact",
            "compression.type": "producer",
            "segment.bytes": str(config.get_int("offsets.topic.segment.bytes")),
        },
    )


CONSUMER_OFFSETS: Final = CoordinatorTopic(OFFSETS_TOPIC, "offsets.topic.num.partitions", new_offsets_topic)
