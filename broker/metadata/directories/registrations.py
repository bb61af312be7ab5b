"""The broker's epoch at Kafka's controller, from the registrations in the metadata log.

When Kafka's broker registers, it sends the broker epoch of its last clean stop, stored in `.kafka_cleanshutdown`. If it
differs from the epoch of the last registration, the controller assumes an unclean stop and elects every partition's
leader uncleanly (RECOVERING). So our clean stop writes the registration's epoch into the marker.
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
    """Return the epoch of the last registration; -1 if Kafka never ran, or its record's version is unknown."""
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
