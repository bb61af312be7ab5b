"""Features of a cluster and their levels, which FeatureLevel records finalize.

`metadata.version` decides which record versions a metadata log may hold. Kafka 3.7 to 4.3 all read level 19 (3.7-IV4).
Level 11 introduced SCRAM credentials, 13 metadata transactions, 14 delegation tokens, 17 directory ids in partition
records, 23 the lists of eligible leaders. 30 (4.3-IV0) is the newest supported level. Kafka 4.x does not read levels
below 7 (3.3-IV3) either.

`transaction.version` decides how transactions are kept (KIP-890): 0 as up to Kafka 3.9; 1 writes version 1 of
TransactionLogValue; 2 also gives a producer a new epoch for each transaction. `share.version` 1 enables share groups
(KIP-932), `streams.version` 1 streams groups (KIP-1071). A feature without a record has level 0. Source: Kafka's
MetadataVersion, TransactionVersion, ShareVersion, StreamsVersion and Feature in org.apache.kafka.server.common.
"""

from __future__ import annotations

METADATA_VERSION = "metadata.version"
"""Name of the feature."""

GROUP_VERSION = "group.version"
"""Name of the feature that enables consumer groups (KIP-848) in Kafka, from level 1 on."""

NEWEST_GROUP_VERSION = 1

TRANSACTION_VERSION = "transaction.version"
"""Name of the feature that selects how transactions are kept."""

NEWEST_TRANSACTION_VERSION = 2

SHARE_VERSION = "share.version"
"""Name of the feature that enables share groups (KIP-932), from level 1 on."""

NEWEST_SHARE_VERSION = 1

STREAMS_VERSION = "streams.version"
"""Name of the feature that enables streams groups (KIP-1071), from level 1 on."""

NEWEST_STREAMS_VERSION = 1

KRAFT_VERSION = "kraft.version"
"""Name of the feature that keeps Raft's voters in the metadata log at level 1; it has control records of its own."""

OLDEST_KNOWN_LEVEL = 7
INITIAL_LEVEL = 19
NEWEST_KNOWN_LEVEL = 30

SCRAM_FROM = 11
"""3.5-IV2, the first level with SCRAM credentials."""

TOKENS_FROM = 14
"""3.6-IV2, the first level with delegation tokens."""

_LEVELS_THAT_CHANGED_METADATA = (8, 11, 13, 14, 15, 17, 23, 30)
"""Levels whose records older ones do not have (Kafka's didMetadataChange)."""

_TRANSACTIONS_FROM = 13
_DIRECTORIES_FROM = 17
_ELIGIBLE_LEADERS_FROM = 23


def is_known_level(level: int) -> bool:
    """Return whether logs of that level can be read and written."""
    return OLDEST_KNOWN_LEVEL <= level <= NEWEST_KNOWN_LEVEL


def has_transactions(level: int) -> bool:
    """Return whether the level has BeginTransaction, EndTransaction and AbortTransaction records."""
    return level >= _TRANSACTIONS_FROM


def changes_metadata(lower: int, higher: int) -> bool:
    """Return whether a log of `metadata.version` `higher` may hold records that `lower` does not have."""
    return any(lower < level <= higher for level in _LEVELS_THAT_CHANGED_METADATA)


def partition_record_version(level: int) -> int:
    """Return the version of Partition and PartitionChange records at `level`: 0, 1 or 2."""
    if level >= _ELIGIBLE_LEADERS_FROM:
        return 2
    return 1 if level >= _DIRECTORIES_FROM else 0
