"""The value of a record in the metadata log: a frame around one message.

    unsigned varint  frame version   1
    unsigned varint  record key
    unsigned varint  record version
    message                          to the end of the value

A record with an unserved key is kept as raw bytes and never dropped. A served record with a newer version than known
is refused, because the version may change its meaning.
Source: Kafka's AbstractApiMessageSerde and MetadataRecordType.
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.metadata.levels import partition_record_version
from barnabas.protocol.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ClearElrRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
    ServedRecord,
    TopicRecord,
    UnknownRecord,
)
from barnabas.protocol.metadata.security_records import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    DelegationTokenRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from barnabas.protocol.primitives import Reader, Writer

FRAME_VERSION = 1

_SERVED: Final[dict[int, tuple[type[ServedRecord], int]]] = {
    2: (TopicRecord, 0),
    3: (PartitionRecord, 2),
    4: (ConfigRecord, 0),
    5: (PartitionChangeRecord, 2),
    9: (RemoveTopicRecord, 0),
    10: (DelegationTokenRecord, 0),
    11: (UserScramCredentialRecord, 0),
    12: (FeatureLevelRecord, 0),
    14: (ClientQuotaRecord, 0),
    15: (ProducerIdsRecord, 0),
    18: (AccessControlEntryRecord, 0),
    19: (RemoveAccessControlEntryRecord, 0),
    22: (RemoveUserScramCredentialRecord, 0),
    23: (BeginTransactionRecord, 0),
    24: (EndTransactionRecord, 0),
    25: (AbortTransactionRecord, 0),
    26: (RemoveDelegationTokenRecord, 0),
    28: (ClearElrRecord, 0),
}
"""Key -> the record and its newest version."""

_KEYS: Final = {record_class: (key, newest) for key, (record_class, newest) in _SERVED.items()}

SECURITY_KEYS: Final = frozenset({10, 11, 14, 18, 19, 22, 26})
"""Keys of the records in security_records."""

RECORD_NAMES: Final = {
    0: "RegisterBroker",
    1: "UnregisterBroker",
    2: "Topic",
    3: "Partition",
    4: "Config",
    5: "PartitionChange",
    7: "FenceBroker",
    8: "UnfenceBroker",
    9: "RemoveTopic",
    10: "DelegationToken",
    11: "UserScramCredential",
    12: "FeatureLevel",
    14: "ClientQuota",
    15: "ProducerIds",
    17: "BrokerRegistrationChange",
    18: "AccessControlEntry",
    19: "RemoveAccessControlEntry",
    20: "NoOp",
    21: "ZkMigrationState",
    22: "RemoveUserScramCredential",
    23: "BeginTransaction",
    24: "EndTransaction",
    25: "AbortTransaction",
    26: "RemoveDelegationToken",
    27: "RegisterController",
    28: "ClearElr",
}
"""Names of the record keys of Kafka 3.7 to 4.3, for messages and tools."""


class UnsupportedRecordError(DecodeError):
    """A served record in an unsupported version; `key` is the record's, None for an unsupported frame."""

    key: int | None = None


def encode_frame(record: MetadataRecord, level: int) -> bytes:
    """Encode the record's value for a log with `metadata.version` `level`."""
    if isinstance(record, UnknownRecord):
        return _head(record.key, record.version) + record.body
    key, version = _KEYS[type(record)]
    if isinstance(record, PartitionRecord | PartitionChangeRecord):
        version = partition_record_version(level)
    return _head(key, version) + record.encode(version)


def decode_frame(value: bytes) -> MetadataRecord:
    """Decode a record's value. Raises DecodeError; UnsupportedRecordError for a newer version than known."""
    reader = Reader(value)
    frame_version = reader.unsigned_varint()
    if frame_version != FRAME_VERSION:
        raise UnsupportedRecordError(f"frame version {frame_version} is not {FRAME_VERSION}")
    key, version = reader.unsigned_varint(), reader.unsigned_varint()
    if key not in _SERVED:
        return UnknownRecord(key, version, reader.rest())
    record_class, newest = _SERVED[key]
    if version > newest:
        error = UnsupportedRecordError(
            f"{RECORD_NAMES[key]} record has version {version}, the newest known is {newest}"
        )
        error.key = key
        raise error
    try:
        return record_class.decode_whole(version, reader.rest())
    except DecodeError as error:
        raise DecodeError(f"{RECORD_NAMES[key]} record: {error}") from error


def _head(key: int, version: int) -> bytes:
    return Writer().unsigned_varint(FRAME_VERSION).unsigned_varint(key).unsigned_varint(version).to_bytes()
