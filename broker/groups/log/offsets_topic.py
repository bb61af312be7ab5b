"""`__consumer_offsets`: its configs, and which of its partitions a group belongs to.

The partition is `abs(hash) % partitions` with Java's String.hashCode of the group's id, where abs of the lowest int is
0. A group's records are all in that one partition, so that they have an order. The count of partitions is the topic's,
once it is there. Source: Kafka's GroupCoordinatorService.partitionFor, groupMetadataTopicConfigs; Utils.abs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.protocol.messages.topics.topics import NewTopic

if TYPE_CHECKING:
    from barnabas.config import BrokerConfig

OFFSETS_TOPIC: Final = "__consumer_offsets"

_INT32_MIN: Final = -(2**31)


def partition_of(group_id: str, partition_count: int) -> int:
    """The number of the group's partition."""
    hashed = java_hash(group_id)
    return 0 if hashed == _INT32_MIN else abs(hashed) % partition_count


def java_hash(text: str) -> int:
    """java.lang.String.hashCode: an int32 over the UTF-16 code units."""
    hashed = 0
    if text.isascii():
        for unit in text.encode("ascii"):
            hashed = hashed * 31 + unit & 0xFFFF_FFFF
    else:
        data = text.encode("utf-16-be", "surrogatepass")
        for position in range(0, len(data), 2):
            hashed = hashed * 31 + (data[position] << 8 | data[position + 1]) & 0xFFFF_FFFF
    return hashed - 2**32 if hashed >= 2**31 else hashed


def new_offsets_topic(config: BrokerConfig) -> NewTopic:
    """As Kafka creates it, but for the one replica that a single node has."""
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


def auto_created(name: str, config: BrokerConfig) -> NewTopic:
    """What a client's asking for an unknown topic creates: the broker's defaults, but for this topic its own."""
    return new_offsets_topic(config) if name == OFFSETS_TOPIC else NewTopic(name)
