"""The partition of each key of a coordinator's topic.

The partition is `abs(hash) % partitions` with Java's String.hashCode of the group id or transactional id, where abs of
the lowest int is 0. It is not the `toPositive` mask of Kafka's producer: they differ for every negative hash, and Kafka
would look for half of the keys in the wrong partition. All records of a key are in that partition, which keeps their
order. Once the topic exists, its own partition count is used. Source: Kafka's GroupCoordinatorService.partitionFor,
TransactionStateManager.partitionFor; Utils.abs.
"""

from __future__ import annotations

from typing import Final

_INT32_MIN: Final = -(2**31)


def partition_of(key: str, partition_count: int) -> int:
    """Return the number of the partition that has the records of a group id or transactional id."""
    hashed = java_hash(key)
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
