"""`metadata.version`: the feature level that says which record versions a metadata log may hold.

Level 19 (3.7-IV4) is what Kafka 3.7 to 4.3 all read; 17 brought directory ids into partition records, 13 metadata
transactions, 23 the lists of eligible leaders. 30 (4.3-IV0) is the newest that we know. Levels below 7 (3.3-IV3)
are not read by Kafka 4.x either. Source: Kafka's org.apache.kafka.server.common.MetadataVersion.
"""

from __future__ import annotations

METADATA_VERSION = "metadata.version"
"""Name of the feature."""

GROUP_VERSION = "group.version"
"""Name of the feature by which Kafka serves consumer groups (KIP-848), from level 1 on."""

NEWEST_GROUP_VERSION = 1

OLDEST_KNOWN_LEVEL = 7
INITIAL_LEVEL = 19
NEWEST_KNOWN_LEVEL = 30

_TRANSACTIONS_FROM = 13
_DIRECTORIES_FROM = 17
_ELIGIBLE_LEADERS_FROM = 23


def is_known_level(level: int) -> bool:
    """Whether we read and write logs of that level."""
    return OLDEST_KNOWN_LEVEL <= level <= NEWEST_KNOWN_LEVEL


def has_transactions(level: int) -> bool:
    """Whether Begin-, End- and AbortTransaction records may be written."""
    return level >= _TRANSACTIONS_FROM


def partition_record_version(level: int) -> int:
    """Version in which Partition and PartitionChange records are written at `level`: 0, 1 or 2."""
    if level >= _ELIGIBLE_LEADERS_FROM:
        return 2
    return 1 if level >= _DIRECTORIES_FROM else 0
