"""Conversion of records to output lines, for `barnabas consume`.

JSON lines: topic, partition, offset, timestamp, key, value, headers. Keys, values and headers are bytes, written as
text if they are UTF-8. Otherwise they are written as base64, and the object has one more field, `base64`, that lists
which of its fields (`key`, `value`, `headers`) are. With `--base64` all of them are, so that a program need not check.
Headers are `[name, value]` pairs in order: names may repeat. Names are text; if one is not UTF-8, the names of its
record are base64 and `base64` lists `header_names`.

Plain lines are the value's bytes as they are, after the chosen parts of the record, as Kafka's console consumer prints
them. A value with a newline makes them ambiguous; use JSON then.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from barnabas.clients.records import ConsumerRecord, Headers, ShareRecord
from barnabas.protocol.records.record import header_name_bytes

AnyRecord = ConsumerRecord | ShareRecord
_TIMESTAMP_TYPES = {0: b"CreateTime", 1: b"LogAppendTime"}


class RecordFormat(Protocol):
    """Writer of output lines."""

    def lines(self, records: Sequence[AnyRecord]) -> bytes:
        """Format records, each with a newline."""
        ...


@dataclass(slots=True)
class JsonFormat:
    """One JSON object per line, ASCII only. `unreadable` counts the records that are not all UTF-8."""

    all_base64: bool = False
    unreadable: int = 0

    def lines(self, records: Sequence[AnyRecord]) -> bytes:
        """Format records as one JSON object per line."""
        return b"".join(map(self.line, records))

    def line(self, record: AnyRecord) -> bytes:
        """Format one record as JSON. See the module's docstring."""
        if self.all_base64:
            return self._base64_line(record, _fields_not_utf8(record) | {"key", "value", "headers"})
        try:
            entry = {
                "topic": record.topic,
                "partition": record.partition,
                "offset": record.offset,
                "timestamp": record.timestamp,
                "key": None if record.key is None else record.key.decode(),
                "value": None if record.value is None else record.value.decode(),
                "headers": [(_utf8(name), None if value is None else value.decode()) for name, value in record.headers],
            }
        except UnicodeError:
            self.unreadable += 1
            return self._base64_line(record, _fields_not_utf8(record))
        return json.dumps(entry).encode("ascii") + b"\n"

    def _base64_line(self, record: AnyRecord, encoded: frozenset[str]) -> bytes:
        entry: dict[str, object] = {
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
            "timestamp": record.timestamp,
            "key": _text(record.key, "key" in encoded),
            "value": _text(record.value, "value" in encoded),
            "headers": [
                (
                    _text(header_name_bytes(name), "header_names" in encoded),
                    _text(value, "headers" in encoded),
                )
                for name, value in record.headers
            ],
            "base64": sorted(encoded),
        }
        return json.dumps(entry).encode("ascii") + b"\n"


@dataclass(frozen=True, slots=True)
class PlainFormat:
    """The value, after the chosen parts."""

    separator: bytes = b"\t"
    null_marker: bytes = b"null"
    with_timestamp: bool = False
    with_partition: bool = False
    with_offset: bool = False
    with_headers: bool = False
    with_key: bool = False
    with_value: bool = True

    def lines(self, records: Sequence[AnyRecord]) -> bytes:
        """Format records, each with a newline."""
        values_only = PlainFormat(self.separator, self.null_marker)
        if self != values_only:
            return b"".join(map(self.line, records))
        # Without a call for each record, the default takes a fifth of the time.
        marker = self.null_marker
        values = [marker if (value := record.value) is None else value for record in records]
        values.append(b"")  # for the newline of the last one
        return b"\n".join(values)

    def line(self, record: AnyRecord) -> bytes:
        """Format one record, with its parts in the order of Kafka's DefaultMessageFormatter."""
        parts = []
        if self.with_timestamp:
            parts.append(b"%s:%d" % (_TIMESTAMP_TYPES.get(record.timestamp_type, b"Timestamp"), record.timestamp))
        if self.with_partition:
            parts.append(b"Partition:%d" % record.partition)
        if self.with_offset:
            parts.append(b"Offset:%d" % record.offset)
        if self.with_headers:
            parts.append(self._headers(record.headers))
        if self.with_key:
            parts.append(self._or_marker(record.key))
        if self.with_value:
            parts.append(self._or_marker(record.value))
        return self.separator.join(parts) + b"\n"

    def _headers(self, headers: Headers) -> bytes:
        if not headers:
            return b"NO_HEADERS"
        return b",".join(header_name_bytes(name) + b":" + self._or_marker(value) for name, value in headers)

    def _or_marker(self, data: bytes | None) -> bytes:
        return self.null_marker if data is None else data


def _fields_not_utf8(record: AnyRecord) -> frozenset[str]:
    fields: dict[str, list[bytes | None]] = {
        "key": [record.key],
        "value": [record.value],
        "headers": [value for _, value in record.headers],
        "header_names": [header_name_bytes(name) for name, _ in record.headers],
    }
    return frozenset(name for name, values in fields.items() if not all(is_utf8(value) for value in values))


def _utf8(name: str) -> str:
    """Return the name. Raises UnicodeError if its bytes are not UTF-8."""
    if not name.isascii():
        name.encode("utf-8")
    return name


def is_utf8(data: bytes | None) -> bool:
    """Whether the bytes can be written as text. True for None, which is written as null."""
    if data is None:
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _text(data: bytes | None, as_base64: bool) -> str | None:
    if data is None:
        return None
    return base64.b64encode(data).decode("ascii") if as_base64 else data.decode()
