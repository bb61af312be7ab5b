"""TransactionMetadata: the state of one transactional id, as an immutable value.

Source: Kafka's TransactionMetadata, TxnTransitMetadata.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple

from barnabas.broker.coordinator_log.topic import java_hash
from barnabas.broker.transactions.state import TransactionState
from barnabas.protocol.transactions.records import TransactionPartitions

NO_PRODUCER_ID: Final = -1
NO_EPOCH: Final = -1
NO_TIME: Final = -1
MAX_EPOCH: Final = 2**15 - 1
LAST_CLIENT_EPOCH: Final = MAX_EPOCH - 1
"""The last epoch that a client gets: the coordinator must be able to fence it with one more."""
NO_TIMEOUT_MS: Final = 2**31 - 1
"""Timeout of transactions with two-phase commit: the coordinator never ends them."""

EPOCH_PER_TRANSACTION: Final = 2
"""transaction.version from which on the producer's epoch changes with each transaction (KIP-890)."""

PartitionKey = tuple[str, int]
"""Topic and partition number."""


class Partitions(dict[PartitionKey, None]):
    """Partitions of a transaction, in the iteration order of Kafka's HashSet, which is their order in the log.

    Not changed after its creation: states of several transactions share it.
    """

    __slots__ = ("of_topics",)

    def __init__(self, keys: Iterable[PartitionKey] = ()) -> None:
        super().__init__(dict.fromkeys(keys))
        self.of_topics: tuple[TransactionPartitions, ...] | None = None
        """Their form in a record, once it was needed."""


NO_PARTITIONS: Final = Partitions()

_SHARED_MAX: Final = 64
"""Largest number of partitions of a set that is kept: most producers write the same partitions in each transaction."""

_MIN_TABLE_SIZE: Final = 16
_INT32_MASK: Final = 0xFFFF_FFFF


class TransactionMetadata(NamedTuple):
    """State of one transactional id. Times are wall clocks in ms.

    previous_producer_id  producer id before the last change
    next_producer_id      producer id after the prepared transaction, if its epochs are exhausted
    last_producer_epoch   epoch before the last change; in memory only, as in Kafka, so unknown after a start
    start_ms              first partition added, -1 if there was no transaction since the last InitProducerId
    client_version        the client's transaction.version when the state changed
    """

    transactional_id: str
    producer_id: int
    producer_epoch: int = NO_EPOCH
    timeout_ms: int = 0
    state: TransactionState = TransactionState.EMPTY
    partitions: Partitions = NO_PARTITIONS
    update_ms: int = NO_TIME
    start_ms: int = NO_TIME
    previous_producer_id: int = NO_PRODUCER_ID
    next_producer_id: int = NO_PRODUCER_ID
    last_producer_epoch: int = NO_EPOCH
    client_version: int = 0

    @property
    def is_epoch_exhausted(self) -> bool:
        """Whether the producer id has no further epoch for a client."""
        return self.producer_epoch >= LAST_CLIENT_EPOCH

    @property
    def has_no_timeout(self) -> bool:
        """Whether its transactions stay open until they are ended (two-phase commit)."""
        return self.timeout_ms == NO_TIMEOUT_MS


def ordered(partitions: Iterable[PartitionKey]) -> Partitions:
    """Return distinct partitions in the order in which a Java HashSet of TopicPartition iterates."""
    keys = tuple(partitions)
    return _shared_order(keys) if len(keys) <= _SHARED_MAX else _ordered(keys)


def _ordered(partitions: Iterable[PartitionKey]) -> Partitions:
    keys = dict.fromkeys(partitions)
    if len(keys) < 2:
        return Partitions(keys)
    mask = _table_size(len(keys)) - 1
    topic_hashes: dict[str, int] = {}
    buckets = {}
    for key in keys:
        topic, number = key
        topic_hash = topic_hashes.get(topic)
        if topic_hash is None:
            topic_hash = topic_hashes[topic] = java_hash(topic)
        hashed = 31 * (31 + number) + topic_hash & _INT32_MASK
        buckets[key] = (hashed ^ hashed >> 16) & mask
    return Partitions(sorted(keys, key=buckets.__getitem__))


_shared_order: Final = lru_cache(maxsize=1024)(_ordered)


def by_topic(partitions: Iterable[PartitionKey]) -> list[tuple[str, list[int]]]:
    """Group partitions, in the order in which a Java HashMap of topics iterates."""
    found: dict[str, list[int]] = {}
    for topic, partition in partitions:
        found.setdefault(topic, []).append(partition)
    if len(found) < 2:
        return list(found.items())
    mask = _table_size(len(found)) - 1
    return sorted(found.items(), key=lambda item: _spread(java_hash(item[0])) & mask)


def _spread(hashed: int) -> int:
    """Return HashMap's spreading of an int32, as an unsigned int32."""
    hashed &= _INT32_MASK
    return hashed ^ hashed >> 16


def _table_size(count: int) -> int:
    """Return the number of buckets of a HashMap that grew to `count` entries, with the load factor of 3/4."""
    size = _MIN_TABLE_SIZE
    while count * 4 > size * 3:
        size *= 2
    return size
