"""The order in which Kafka writes the rows of its checkpoints of recovery points and log start offsets.

Kafka walks a hash map of Scala's standard library (mutable.HashMap), whose order depends on nothing but its keys: by
bucket, and within a bucket by hash. It is kept so that our files are Kafka's byte for byte; whoever reads them, reads a
map. `replication-offset-checkpoint` and `cleaner-offset-checkpoint` come from other tables, whose order depends on
when a partition came into them as well; ours are sorted. Source: Kafka LogManager, TopicPartition.hashCode;
Scala 2.13 mutable.HashMap.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

from barnabas.protocol.topic_partition import TopicPartition

_LOAD_FACTOR = 0.75
MADE_TO_SIZE = 8
"""The least number of buckets of a map that is made for a known number of keys: of recovery points."""
MADE_TO_GROW = 16
"""Of one that is made for an unknown number: of log start offsets, most of which are not worth a row."""
_UINT32_MAX = 0xFFFF_FFFF
_SIGN = 0x8000_0000


def in_kafkas_order(partitions: Collection[TopicPartition], least_buckets: int) -> list[TopicPartition]:
    """The partitions as that map walks them."""
    mask = max(_bucket_count(len(partitions)), least_buckets) - 1

    def place(partition: TopicPartition) -> tuple[int, int, TopicPartition]:
        value = _hash(partition)
        return value & mask, value ^ _SIGN, partition  # hashes are compared with their sign

    return sorted(partitions, key=place)


def _bucket_count(size: int) -> int:
    """A power of two."""
    capacity = int((size + 1) / _LOAD_FACTOR)
    return 1 << (capacity - 1).bit_length()


def _hash(partition: TopicPartition) -> int:
    """TopicPartition.hashCode, spread as the map does; an unsigned int32."""
    value = (31 * (31 + partition.partition) + _string_hash(partition.topic)) & _UINT32_MAX
    return value ^ value >> 16


@lru_cache(maxsize=10_000)
def _string_hash(text: str) -> int:
    """java.lang.String.hashCode of a topic's name, which is ASCII."""
    value = 0
    for character in text.encode():
        value = (31 * value + character) & _UINT32_MAX
    return value
