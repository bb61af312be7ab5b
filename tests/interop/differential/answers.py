"""Answers as nested plain values that are equal for equal behaviour: ids are the script's names, clocks are masked."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import datetime
from itertools import groupby
from typing import Any
from uuid import UUID

from kio.schema.errors import ErrorCode

from barnabas.broker.storage.producers.snapshot import SnapshotRow
from barnabas.protocol.records.batch import iter_batches
from barnabas.protocol.records.layout import CONTROL_MASK, CRC_POSITION, HEADER_SIZE, LOG_OVERHEAD
from tests.interop.differential import steps
from tests.interop.differential.batches import (
    ATTRIBUTES,
    EPOCH,
    LENGTH,
    LOG_APPEND_TIME,
    MAX_TIMESTAMP,
    PRODUCER_ID,
)
from tests.interop.differential.decoded import decoded, without_horizons
from tests.interop.differential.requests import Names
from tests.support.kafka.two_brokers import first_difference

CLOSED = "the connection was closed"
NO_MESSAGE, A_MESSAGE = "no message", "a message"
NO_SESSION = "no session"
SILENCE = "no answer came in time"
UNANSWERED = "no answer was due, and the connection is open"

_LEFT_OUT = ("throttle_time", "node_endpoints")
"""Waits are each broker's; addresses are each broker's own."""
_MESSAGES = ("error_message", "batch_index_error_message")
"""Wording may differ. Barnabas also explains errors that Kafka leaves without a message."""
_REFUSALS = (
    ErrorCode.invalid_record,
    ErrorCode.corrupt_message,
    ErrorCode.invalid_timestamp,
    ErrorCode.unsupported_compression_type,
    ErrorCode.transactional_id_authorization_failed,
)
_TIMES = ("timestamp", "last_timestamp")
_EPOCHS = ("leader_epoch", "current_leader", "coordinator_epoch")
_MARKER_END = 5
"""Bytes of a marker from the epoch of its coordinator on: that is the leader epoch of a partition, too."""


@dataclass
class Masks:
    """What differs between the brokers with good reason."""

    names: Names
    ids: dict[int, int] = field(default_factory=dict)
    """Producer id of the broker -> number of the producer in the script's order."""
    without_epochs: bool = False
    """Kafka raises leader epochs at each start by 0 to 2, Barnabas by 1 after an unclean stop."""

    in_order: bool = True
    """Kafka keeps the order of topics and partitions in the answers to a Fetch; in others it is that of hash tables."""
    has_own_clock: bool = False
    """A topic's records have the time of their append."""
    decodes: bool = False
    """Records are compared as they were before a broker compressed them."""

    def plain(self, value: Any) -> Any:
        """Return an entity, or a part of one, as plain values."""
        if is_dataclass(value):
            return {
                each.name: self._field(each.name, getattr(value, each.name))
                for each in fields(value)
                if each.name not in _LEFT_OUT
            }
        if isinstance(value, tuple):
            found = [self.plain(each) for each in value]
            # Kafka answers once for a partition that a request names twice, Barnabas at each place.
            return found if self.in_order else [each for each, _ in groupby(sorted(found, key=repr))]
        if isinstance(value, UUID):
            known = {topic_id: name for name, topic_id in self.names.topic_ids.items()} | self.names.old_ids
            return known.get(value, str(value))
        if isinstance(value, datetime):
            return "a time"
        return value

    def _field(self, name: str, value: Any) -> Any:
        if name in _MESSAGES:
            return NO_MESSAGE if value is None else A_MESSAGE
        if name == "records" and value:
            return self.records(bytes(value))
        if name == "aborted_transactions":
            return self.plain(value or ())  # Kafka answers null where a first batch is too large to be sent
        if name == "producer_id":
            return self.ids.get(value, value)
        if name == "session_id":
            known = {session_id: each for each, (session_id, _) in self.names.sessions.items()}
            return known.get(value, NO_SESSION if value == 0 else "a session that the script does not name")
        if name in _EPOCHS and self.without_epochs:
            return "an epoch"
        if name in _TIMES and self.has_own_clock and value >= 0:
            return "a time"
        return self.plain(value)

    def producer_id(self, data: bytes) -> bytes:
        """Mask the 8 bytes of a producer id."""
        (value,) = struct.unpack(">q", data)
        return struct.pack(">q", self.ids.get(value, value))

    def row(self, row: SnapshotRow) -> SnapshotRow:
        """Mask a row of a producer snapshot."""
        timestamp = 0 if self.has_own_clock or row.coordinator_epoch >= 0 else row.timestamp
        epoch = min(row.coordinator_epoch, 0) if self.without_epochs else row.coordinator_epoch
        producer_id = self.ids.get(row.producer_id, row.producer_id)
        return row._replace(producer_id=producer_id, timestamp=timestamp, coordinator_epoch=epoch)

    def records(self, data: bytes) -> bytes:
        """Mask producer ids that a broker gave out, append times, and CRCs over them."""
        masked = bytearray(without_horizons(decoded(data) if self.decodes else data))
        at = 0
        while at < len(masked):
            if at + HEADER_SIZE > len(masked):  # a fetch ends within a header
                return bytes(masked[: at + EPOCH])
            (length,) = struct.unpack_from(">i", masked, at + LENGTH)
            self._mask_batch(masked, at)
            at += max(length, HEADER_SIZE - LOG_OVERHEAD) + LOG_OVERHEAD
        return bytes(masked)

    def _mask_batch(self, data: bytearray, at: int) -> None:
        (producer_id,) = struct.unpack_from(">q", data, at + PRODUCER_ID)
        (attributes,) = struct.unpack_from(">h", data, at + ATTRIBUTES)
        if producer_id in self.ids:
            struct.pack_into(">q", data, at + PRODUCER_ID, self.ids[producer_id])
            data[at + CRC_POSITION : at + CRC_POSITION + 4] = bytes(4)
        if attributes & (LOG_APPEND_TIME | CONTROL_MASK):
            data[at + MAX_TIMESTAMP : at + MAX_TIMESTAMP + 8] = bytes(8)
            data[at + CRC_POSITION : at + CRC_POSITION + 4] = bytes(4)
        if attributes & CONTROL_MASK:
            data[at + MAX_TIMESTAMP - 8 : at + MAX_TIMESTAMP] = bytes(8)
            value = at + LOG_OVERHEAD + field_of(data, at + LENGTH) - _MARKER_END
            if self.without_epochs and value + 4 <= len(data):
                data[value : value + 4] = bytes(4)
        if self.without_epochs:
            data[at + EPOCH : at + EPOCH + 4] = bytes(4)


def field_of(data: bytearray, at: int) -> int:
    """Read an int32."""
    return int.from_bytes(data[at : at + 4], "big", signed=True)


def differing(ours: Any, theirs: Any, path: str = "") -> list[str]:
    """Return the differences of two plain values, a line each."""
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        if ours.get("aborted_transactions") != theirs.get("aborted_transactions"):
            theirs = {**theirs, "aborted_transactions": _needed(theirs)}
        codes = ours.get("error_code"), theirs.get("error_code")
        if steps.LOOSE_TOPIC in str(ours.get("name", ours.get("topic_id"))):
            return _loosely(ours, theirs, path)
        if codes == (ErrorCode.invalid_record, ErrorCode.unknown_server_error):
            return []  # Kafka has no code for what its decompression throws, Barnabas says what is wrong
        return [
            line
            for key in dict.fromkeys([*ours, *theirs])
            for line in differing(ours.get(key, "-"), theirs.get(key, "-"), f"{path}.{key}")
        ]
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return [
            line
            for number, (one, other) in enumerate(zip(ours, theirs, strict=True))
            for line in differing(one, other, f"{path}[{number}]")
        ]
    if ours == theirs or (ours == A_MESSAGE and theirs == NO_MESSAGE):
        return []
    if isinstance(ours, bytes) and isinstance(theirs, bytes):
        return [f"{path}: {first_difference(ours, theirs)}"]
    return [f"{path}: ours {_short(ours)}, Kafka's {_short(theirs)}"]


def _needed(partition: Mapping[str, Any]) -> Any:
    """Return the aborted transactions that begin among the records of a fetched partition.

    Kafka finds them by the offset index, and so names some that begin later.
    """
    records = partition["records"]
    end = max((batch.next_offset for batch in iter_batches(records)), default=0)
    return [each for each in partition["aborted_transactions"] if each["first_offset"] < end]


def _loosely(ours: Mapping[str, Any], theirs: Mapping[str, Any], path: str) -> list[str]:
    """Compare the errors of batches of which Kafka stores some that Barnabas refuses."""
    one, other = (each["partition_responses"][0]["error_code"] for each in (ours, theirs))
    if one == other or (one in _REFUSALS and other in (*_REFUSALS, ErrorCode.none, ErrorCode.unknown_server_error)):
        return []
    return [f"{path}: ours {one}, Kafka's {other}"]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 700 else f"{text[:700]}..."
