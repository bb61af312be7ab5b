"""Reading of OpenTelemetry's MetricsData messages (protobuf), as far as Kafka's clients write them.

    MetricsData      1 ResourceMetrics*
    ResourceMetrics  2 ScopeMetrics*
    ScopeMetrics     2 Metric*
    Metric           1 name   5 Gauge   7 Sum
    Gauge            1 NumberDataPoint*
    Sum              1 NumberDataPoint*   2 temporality (1 delta, 2 cumulative)
    NumberDataPoint  4 as_double   6 as_int (sfixed64)   7 KeyValue*
    KeyValue         1 key   2 AnyValue (1 string, 2 bool, 3 int, 4 double)

Other fields and kinds of metrics are skipped: Java's clients and librdkafka send gauges and sums only. Messages are
untrusted: sizes are checked against the bytes left, and the number of points is bounded. Source: opentelemetry-proto.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from barnabas.protocol.errors import DecodeError

MAX_POINTS: Final = 5_000
"""Of one push. A Java producer sends about a hundred."""
MAX_TEXT_CHARACTERS: Final = 200
"""Of a name or an attribute; longer texts are cut."""

_DELTA: Final = 1
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_DOUBLE: Final = struct.Struct("<d")
_INT64: Final = struct.Struct("<q")

_Field = tuple[int, int | memoryview]


class Point(NamedTuple):
    """One value. `is_delta`: it adds to the earlier ones; otherwise it replaces them."""

    name: str
    attributes: tuple[tuple[str, str], ...]
    value: float
    is_delta: bool


def read_points(data: memoryview) -> list[Point]:
    """Return the points of a MetricsData message. Raises DecodeError."""
    points: list[Point] = []
    for resource in _messages(data, 1):
        for scope in _messages(resource, 2):
            for metric in _messages(scope, 2):
                points += _points_of(metric, MAX_POINTS - len(points))
    return points


def _points_of(metric: memoryview, room: int) -> list[Point]:
    name = ""
    kind = temporality = 0
    found: list[memoryview] = []
    for number, value in _fields(metric):
        if number == 1 and isinstance(value, memoryview):
            name = _text(value)
        elif number in (5, 7) and isinstance(value, memoryview):
            kind = number
            for inner, content in _fields(value):
                if inner == 1 and isinstance(content, memoryview):
                    found.append(content)
                elif inner == 2 and isinstance(content, int):
                    temporality = content
    if len(found) > room:
        raise DecodeError(f"more than {MAX_POINTS} points")
    is_delta = kind == 7 and temporality == _DELTA
    return [Point(name, *_value_of(each), is_delta) for each in found]


def _value_of(point: memoryview) -> tuple[tuple[tuple[str, str], ...], float]:
    value = 0.0
    attributes = []
    for number, content in _fields(point):
        if not isinstance(content, memoryview):
            continue
        if number == 4 and len(content) == _DOUBLE.size:
            value = _DOUBLE.unpack(content)[0]
        elif number == 6 and len(content) == _INT64.size:
            value = float(_INT64.unpack(content)[0])
        elif number == 7:
            attributes.append(_attribute(content))
    return tuple(sorted(attributes)), value


def _attribute(data: memoryview) -> tuple[str, str]:
    key = shown = ""
    for number, content in _fields(data):
        if not isinstance(content, memoryview):
            continue
        if number == 1:
            key = _text(content)
        elif number == 2:
            for kind, value in _fields(content):
                if isinstance(value, int):
                    shown = str(bool(value)).lower() if kind == 2 else str(value)
                elif kind == 1:
                    shown = _text(value)
                elif kind == 4 and len(value) == _DOUBLE.size:
                    shown = repr(_DOUBLE.unpack(value)[0])
    return key, shown


def _text(data: memoryview) -> str:
    return bytes(data[: 4 * MAX_TEXT_CHARACTERS]).decode(errors="replace")[:MAX_TEXT_CHARACTERS]


def _messages(data: memoryview, wanted: int) -> Iterator[memoryview]:
    """Yield the submessages of one field."""
    for number, value in _fields(data):
        if number == wanted and isinstance(value, memoryview):
            yield value


def _fields(data: memoryview) -> Iterator[_Field]:
    """Yield the fields of a message: a varint as an int, everything else as its bytes."""
    position, end = 0, len(data)
    while position < end:
        tag, position = _varint(data, position)
        wire = tag & 7
        if wire == _VARINT:
            value, position = _varint(data, position)
            yield tag >> 3, value
            continue
        if wire == _BYTES:
            size, position = _varint(data, position)
        elif wire in (_FIXED64, _FIXED32):
            size = 8 if wire == _FIXED64 else 4
        else:
            raise DecodeError(f"a protobuf field of the wire type {wire}")
        if size > end - position:
            raise DecodeError("a protobuf field is cut short")
        yield tag >> 3, data[position : position + size]
        position += size


def _varint(data: memoryview, position: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 70:
        if position >= len(data):
            raise DecodeError("a protobuf number is cut short")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7
    raise DecodeError("a protobuf number is longer than 64 bits")
