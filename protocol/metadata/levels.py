"""`metadata.version`: the feature level that decides which record versions a metadata log may hold.

Kafka 3.7 to 4.3 all read level 19 (3.7-IV4). Level 13 introduced metadata transactions, 17 directory ids in partition
records, 23 the lists of eligible leaders. 30 (4.3-IV0) is the newest supported level. Kafka 4.x does not read levels
below 7 (3.3-IV3) either. Source: Kafka's org.apache.kafka.server.common.MetadataVersion.
"""

from __future__ import annotations

METADATA_VERSION = "metadata.version"
"""Name of the feature."""

GROUP_VERSION = "group.version"
"""Name of the feature that enables consumer groups (KIP-848) in Kafka, from level 1 on."""

NEWEST_GROUP_VERSION = 1

OLDEST_KNOWN_LEVEL = 7
INITIAL_LEVEL = 19
NEWEST_KNOWN_LEVEL = 30

_TRANSACTIONS_FROM = 13
_DIRECTORIES_FROM = 17
_ELIGIBLE_LEADERS_FROM = 23


def is_known_level(level: int) -> bool:
    """Return whether logs of that level can be read and written."""
    return OLDEST_KNOWN_LEVEL <= level <= NEWEST_KNOWN_LEVEL


def has_transactions(level: int) -> bool:
    """Return whether the level has BeginTransaction, EndTransaction and AbortTransaction records."""
    return level >= _TRANSACTIONS_FROM


def partition_record_version(level: int) -> int:
    """Return the version of Partition and PartitionChange records at `level`: 0, 1 or 2."""
    if level >= _ELIGIBLE_LEADERS_FROM:
        return 2
    return 1 if level >= _DIRECTORIES_FROM else 0
