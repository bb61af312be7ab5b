"""`__consumer_offsets`: its configs, and the partition of each group.

The partition is `abs(hash) % partitions` with Java's String.hashCode of the group id, where abs of the lowest int is 0.
It is not the `toPositive` mask of Kafka's producer: they differ for every negative hash, and Kafka would look for half
of the groups in the wrong partition. All records of a group are in that partition, which keeps their order. Once the
topic exists, its own partition count is used. Source: Kafka's GroupCoordinatorService.partitionFor,
groupMetadataTopicConfigs; Utils.abs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.protocol.messages.topics.topics import NewTopic

if TYPE_CHECKING:
    from barnabas.config import BrokerConfig

OFFSETS_TOPIC: Final = "__consumer_offsets"

_INT32_MIN: Final = -(2**31)


def partition_of(group_id: str, partition_count: int) -> int:
    """Return the number of the group's partition."""
    hashed = java_hash(group_id)
    return 0 if hashed == _INT32_MIN else abs(hashed) % partition_count


def java_hash(text: str) -> int:
    """Return java.lang.String.hashCode: an int32 over the UTF-16 code units."""
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
    """Return the topic as Kafka creates it, with the one replica that a single node has."""
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
    """Return the topic that auto-creation creates: with the broker's defaults, or the configs of this topic."""
    return new_offsets_topic(config) if name == OFFSETS_TOPIC else NewTopic(name)
