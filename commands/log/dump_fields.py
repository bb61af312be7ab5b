"""Fields that `barnabas log dump` prints of batches, records, index entries, ..., named as in Kafka's DumpLogSegments.

One mapping of fields per line. As text it is what DumpLogSegments prints (`name: value name: value`), so that programs
for that tool's output can read this one. As JSON it is an object, with data that the text leaves out: header values,
and keys and payloads that are not UTF-8 as base64 (listed in the field `base64`, as `barnabas consume --json` does).
Two things differ from Kafka's text: control characters in keys and payloads are escaped, so that a line stays a line
and cannot control the terminal, and damage is reported in other words.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from typing import Any

from barnabas.broker.storage.index.offset_index import OffsetPosition
from barnabas.broker.storage.index.time_index import TimestampOffset
from barnabas.broker.storage.index.transaction_index import AbortedTxn
from barnabas.broker.storage.inspection.log_walk import StoredBatch, StoredMessage
from barnabas.broker.storage.producers.snapshot import SnapshotRow
from barnabas.commands.records.record_lines import is_utf8
from barnabas.protocol.compression import CODECS
from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.records.layout import CODEC_MASK, TIMESTAMP_TYPE_MASK
from barnabas.protocol.records.legacy.messages import LegacyMessage, read_inner_messages, read_legacy_records
from barnabas.protocol.records.reader import read_records
from barnabas.protocol.records.record import Record, header_name_bytes

Fields = dict[str, Any]

_INT32_MAX = 0x7FFF_FFFF
_CONTROL_CHARACTERS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def batch_fields(step: StoredBatch) -> Fields:
    """Fields of a batch with magic 2."""
    batch = step.batch
    return {
        "baseOffset": batch.base_offset,
        "lastOffset": batch.last_offset,
        "count": batch.record_count,
        "baseSequence": batch.base_sequence,
        "lastSequence": batch.last_sequence,
        "producerId": batch.producer_id,
        "producerEpoch": batch.producer_epoch,
        "partitionLeaderEpoch": batch.partition_leader_epoch,
        "isTransactional": batch.is_transactional,
        "isControl": batch.is_control,
        "deleteHorizonMs": batch.base_timestamp if batch.has_delete_horizon else None,
        "position": step.position,
        _time_name(batch.attributes): batch.max_timestamp,
        "size": batch.size_bytes,
        "magic": batch.magic,
        "compresscodec": _codec_name(batch.attributes),
        "crc": batch.crc,
        "isvalid": step.fault is None,
    }


def message_fields(step: StoredMessage) -> Fields:
    """Fields of a message with magic 0 or 1; a compressed wrapper is one message."""
    message = step.message
    return {
        "offset": message.offset,
        "position": step.position,
        _legacy_time_name(message): message.timestamp,
        "size": message.size_bytes,
        "magic": message.magic,
        "compresscodec": _codec_name(message.attributes),
        "crc": message.crc,
        "isvalid": step.fault is None,
    }


def stored_records(step: StoredBatch | StoredMessage) -> Iterator[tuple[Fields, Record]]:
    """Read a batch's or message's records with their fields, without key and payload. Raises DecodeError."""
    if isinstance(step, StoredBatch):
        for record in read_records(step.batch):
            yield record_fields(step.batch, record), record
        return
    outer = step.message
    inner = read_inner_messages(outer) if outer.is_wrapper else [(outer.offset, outer)]
    for (_, message), record in zip(inner, read_legacy_records(outer), strict=True):
        yield (
            {
                "offset": record.offset,
                _legacy_time_name(outer): record.timestamp,
                "keySize": _size(record.key),
                "valueSize": _size(record.value),
                "isValid": True,  # an invalid one would not have been read
                "crc": message.crc,
            },
            record,
        )


def record_fields(batch: RecordBatch, record: Record) -> Fields:
    """Fields of one record, without key and payload."""
    sequence = batch.base_sequence
    if sequence >= 0:
        sequence = (sequence + record.offset - batch.base_offset) & _INT32_MAX
    return {
        "offset": record.offset,
        _time_name(batch.attributes): record.timestamp,
        "keySize": _size(record.key),
        "valueSize": _size(record.value),
        "sequence": sequence,
        "headerKeys": [header_name_bytes(name).decode("utf-8", "replace") for name, _ in record.headers],
    }


def record_text_data(record: Record) -> Fields:
    """Key and payload as text; null ones are left out, as in Kafka."""
    fields: Fields = {}
    if record.key is not None:
        fields["key"] = readable(record.key)
    if record.value is not None:
        fields["payload"] = readable(record.value)
    return fields


def record_json_data(record: Record) -> Fields:
    """Key, payload and headers as JSON. See the module's docstring."""
    encoded: list[str] = []

    def convert(name: str, data: bytes | None) -> str | None:
        if data is None:
            return None
        return base64.b64encode(data).decode("ascii") if name in encoded else data.decode()

    names = [header_name_bytes(name) for name, _ in record.headers]
    values: dict[str, list[bytes | None]] = {
        "key": [record.key],
        "payload": [record.value],
        "headers": [value for _, value in record.headers],
        "header_names": [*names],
    }
    encoded += [name for name, parts in values.items() if not all(is_utf8(part) for part in parts)]
    fields: Fields = {
        "key": convert("key", record.key),
        "payload": convert("payload", record.value),
        "headers": [
            [convert("header_names", name), convert("headers", value)]
            for name, (_, value) in zip(names, record.headers, strict=True)
        ],
    }
    return {**fields, "base64": encoded} if encoded else fields


def offset_entry_fields(entry: OffsetPosition) -> Fields:
    """Fields of an entry of a `.index`."""
    return {"offset": entry.offset, "position": entry.position}


def time_entry_fields(entry: TimestampOffset) -> Fields:
    """Fields of an entry of a `.timeindex`."""
    return {"timestamp": entry.timestamp, "offset": entry.offset}


def aborted_fields(row: AbortedTxn) -> Fields:
    """Fields of a row of a `.txnindex`."""
    return {
        "version": row.version,
        "producerId": row.producer_id,
        "firstOffset": row.first_offset,
        "lastOffset": row.last_offset,
        "lastStableOffset": row.last_stable_offset,
    }


def producer_fields(row: SnapshotRow) -> Fields:
    """Fields of a producer in a snapshot. `text_line` writes the open transaction's offset as Kafka's tool does."""
    fields = {
        "producerId": row.producer_id,
        "producerEpoch": row.producer_epoch,
        "coordinatorEpoch": row.coordinator_epoch,
        "currentTxnFirstOffset": row.txn_first_offset if row.txn_first_offset >= 0 else None,
        "lastTimestamp": row.timestamp,
    }
    if row.last_offset < 0:
        return fields
    return {
        **fields,
        "firstSequence": (row.last_sequence - row.offset_delta) & _INT32_MAX,
        "lastSequence": row.last_sequence,
        "lastOffset": row.last_offset,
        "offsetDelta": row.offset_delta,
        "timestamp": row.timestamp,
    }


def text_line(fields: Fields) -> str:
    """Format as `name: value name: value`, with values as Java prints them."""
    return " ".join(f"{name}: {_text(name, value)}" for name, value in fields.items())


def readable(data: bytes) -> str:
    """Decode bytes for people: invalid UTF-8 is replaced, control characters are escaped."""
    return _CONTROL_CHARACTERS.sub(
        lambda match: match.group().encode("unicode_escape").decode("ascii"), data.decode("utf-8", "replace")
    )


_OPTIONAL_LONGS = frozenset({"deleteHorizonMs", "currentTxnFirstOffset"})


def _text(name: str, value: Any) -> str:
    if name in _OPTIONAL_LONGS:
        return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{','.join(readable(str(item).encode()) for item in value)}]"
    return str(value)


def _time_name(attributes: int) -> str:
    return "LogAppendTime" if attributes & TIMESTAMP_TYPE_MASK else "CreateTime"


def _legacy_time_name(message: LegacyMessage) -> str:
    return _time_name(message.attributes) if message.magic else "NoTimestampType"


def _codec_name(attributes: int) -> str:
    codec_id = attributes & CODEC_MASK
    return CODECS[codec_id].config_name if codec_id < len(CODECS) else f"unknown({codec_id})"


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)
