"""The epoch under which Kafka's controller knows this broker, from the registrations that the metadata log carries.

Kafka's broker says at its registration under which epoch it was stopped cleanly (`.kafka_cleanshutdown` keeps it).
Where that is not the epoch of its last registration, the controller takes the stop for an unclean one and elects every
partition's leader uncleanly (RECOVERING). So a clean stop of ours leaves that epoch in the marker.
Source: Kafka ClusterControlManager.registerBroker, RegisterBrokerRecord.json.
"""

from __future__ import annotations

from barnabas.broker.metadata.image import MetadataImage
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.metadata.records import UnknownRecord
from barnabas.protocol.primitives import Reader

NO_BROKER_EPOCH = -1

_REGISTER_BROKER = 0
_NEWEST_VERSION = 4
_MIGRATING_FROM = 2


def registered_broker_epoch(image: MetadataImage, node_id: int) -> int:
    """The epoch of the broker's last registration, or -1 where Kafka never ran, or wrote it in a way not known here."""
    epoch = NO_BROKER_EPOCH
    for record in image.carried:
        if record.key == _REGISTER_BROKER and record.version <= _NEWEST_VERSION:
            epoch = _epoch_of(record, node_id, epoch)
    return epoch


def _epoch_of(record: UnknownRecord, node_id: int, otherwise: int) -> int:
    reader = Reader(record.body)
    try:
        if reader.int32() != node_id:
            return otherwise
        if record.version >= _MIGRATING_FROM:
            reader.boolean()
        reader.uuid()  # incarnation
        return reader.int64()
    except DecodeError:
        return otherwise
