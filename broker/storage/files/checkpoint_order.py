"""The row order of Kafka's recovery-point and log-start-offset checkpoints.

Kafka iterates over Scala's mutable.HashMap, whose order depends on the keys alone: by bucket, and within a bucket by
hash. The order has no meaning; it is reproduced so that the files equal Kafka's byte for byte.
`replication-offset-checkpoint` and `cleaner-offset-checkpoint` come from other maps, whose order also depends on when a
partition was inserted; ours are sorted. Source: Kafka LogManager, TopicPartition.hashCode; Scala 2.13 mutable.HashMap.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

from barnabas.protocol.topic_partition import TopicPartition

_LOAD_FACTOR = 0.75
PRESIZED_BUCKETS = 8
"""Minimum number of buckets of a map created for a known number of keys: the recovery points."""
DEFAULT_BUCKETS = 16
"""Minimum number of buckets of a map that grows: the log start offsets, few of which get a row."""
_UINT32_MAX = 0xFFFF_FFFF
_SIGN = 0x8000_0000


def in_kafkas_order(partitions: Collection[TopicPartition], least_buckets: int) -> list[TopicPartition]:
    """Return the partitions in the iteration order of a map with at least this many buckets."""
    mask = max(_bucket_count(len(partitions)), least_buckets) - 1

    def place(partition: TopicPartition) -> tuple[int, int, TopicPartition]:
        value = _hash(partition)
        return value & mask, value ^ _SIGN, partition  # hashes are compared with their sign

    return sorted(partitions, key=place)


def _bucket_count(size: int) -> int:
    """Return the map's table size for a number of keys, a power of two."""
    capacity = int((size + 1) / _LOAD_FACTOR)
    return 1 << (capacity - 1).bit_length()


def _hash(partition: TopicPartition) -> int:
    """Return TopicPartition.hashCode with the map's bit spreading, as an unsigned int32."""
    value = (31 * (31 + partition.partition) + _string_hash(partition.topic)) & _UINT32_MAX
    return value ^ value >> 16


@lru_cache(maxsize=10_000)
def _string_hash(text: str) -> int:
    """Return java.lang.String.hashCode of a topic name, which is ASCII."""
    value = 0
    for character in text.encode():
        value = (31 * value + character) & _UINT32_MAX
    return value
