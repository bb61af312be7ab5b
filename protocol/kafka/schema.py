"""Field tables of Kafka's messages, by which codecs read requests into neutral values and write neutral answers.

A codec declares a message as a `Message`: its fields in wire order, as Kafka's message definitions list them.

    Message(
        2,                                          # flexible from this version on
        DeleteRecordsRequest,                       # builds the value of a request; an answer has no builder
        topics=rows(DeleteRecordsTopic, ...),       # an argument of the builder, an attribute of an answer
        _timeout_ms=INT32,                          # with a leading underscore: read and dropped
        rack=since(3, NULLABLE_STRING),             # in versions 3 and later
    )

    classic     string, bytes: int16, int32 length (-1 null)      array: int32 count (-1 null)
    flexible    both, and arrays: unsigned varint length + 1 (0 null); tagged fields end every structure
    nullable structure: one byte, -1 for null

The same tables serve both sides: `protocol/kafka/client` writes requests and reads answers with them.

Messages are untrusted: a length is checked against the bytes left before anything is allocated, one request has at most
MAX_ITEMS array items, and every fault is a DecodeError that names the field. Nothing of the body is kept, except by
`Records`. Bytes after the last field are ignored, as in Kafka. tests/protocol/kafka/test_schema.py compares every table
with kio's entities, which are generated from Kafka's message definitions. Source: Kafka's message generator.
"""

# ruff: noqa: D102 - `reader` and `writer` are described once, at Type.

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any, Final, NamedTuple, Protocol

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.primitives import Reader
from barnabas.protocol.uuids import UUID_SIZE
from barnabas.protocol.varint import unsigned
from barnabas.protocol.wire.structures import MAX_ITEMS

MAX_MESSAGE_CHARACTERS: Final = 8000
"""In UTF-8 at most 32,000 bytes: a classic string's length is an int16."""

LATEST: Final = 0x7FFF
"""An upper bound of a field's versions: it is still there."""

NEVER: Final = 0x7FFF
"""As `nullable_from`: null in no version."""

_NO_TAGS = b"\x00"


class Body(Reader):
    """A message's body, which counts its array items."""

    __slots__ = ("_max_items", "items_left")

    def __init__(self, data: bytes | memoryview, max_items: int | None = None) -> None:
        """`max_items` None: the limit of requests."""
        super().__init__(data)
        self._max_items = self.items_left = MAX_ITEMS if max_items is None else max_items

    def count(self, count: int) -> int:
        """Return `count` array items, checked against the bytes left and the items this message may still have."""
        if count > self.remaining:
            raise DecodeError(f"an array of {count} items, but {self.remaining} bytes are left")
        self.items_left -= count
        if self.items_left < 0:
            raise DecodeError(f"more than {self._max_items} array items in one message")
        return count

    def view(self, size_bytes: int) -> memoryview:
        """Return the next bytes as a view of the message."""
        return self._take(size_bytes)

    def part(self, data: bytes) -> Body:
        """Return a reader of a part of this message, which counts items on behalf of it."""
        part = Body(data, self._max_items)
        part.items_left = self.items_left
        return part

    def fixed(self, layout: struct.Struct) -> Any:
        """Return the next number."""
        position = self.position
        try:
            (value,) = layout.unpack_from(self._data, position)
        except struct.error:
            raise DecodeError(f"a field of {layout.size} bytes, but {self.remaining} bytes are left") from None
        self.position = position + layout.size
        return value


Read = Callable[[Body], Any]
Write = Callable[[bytearray, Any], None]


class Type(Protocol):
    """A type on the wire.

    `reader` and `writer` return functions that read and write one value; they are called once for each version of a
    message. A reader raises DecodeError only.
    """

    def reader(self, version: int, flexible: bool) -> Read: ...

    def writer(self, version: int, flexible: bool) -> Write: ...


class Fixed(NamedTuple):
    """A number of fixed size; `code` as in `struct`."""

    kind: str
    code: str

    def reader(self, version: int, flexible: bool) -> Read:
        layout = struct.Struct(f">{self.code}")
        return lambda body: body.fixed(layout)

    def writer(self, version: int, flexible: bool) -> Write:
        pack = struct.Struct(f">{self.code}").pack

        def write(out: bytearray, value: Any) -> None:
            out += pack(value)

        return write


class Uuid(NamedTuple):
    """16 bytes as they are; zeros stand for no id."""

    kind: str = "uuid"

    def reader(self, version: int, flexible: bool) -> Read:
        return Body.uuid

    def writer(self, version: int, flexible: bool) -> Write:
        def write(out: bytearray, value: bytes) -> None:
            assert len(value) == UUID_SIZE
            out += value

        return write


class Sized(NamedTuple):
    """A string or bytes. `longest`: a longer string is cut to that many characters when it is written."""

    kind: str
    nullable_from: int = NEVER
    longest: int | None = None

    def reader(self, version: int, flexible: bool) -> Read:
        is_nullable = version >= self.nullable_from
        is_text = self.kind == "string"
        read_size = _reader_of_size(Body.int16 if is_text else Body.int32, flexible)

        def read(body: Body) -> str | bytes | None:
            size = read_size(body)
            if size < 0:
                _ensure_nullable("a string" if is_text else "bytes", is_nullable)
                return None
            data = body.raw(size)
            if not is_text:
                return data
            try:
                return data.decode()
            except UnicodeDecodeError as error:
                raise DecodeError(f"a string that is not UTF-8: {error}") from None

        return read

    def writer(self, version: int, flexible: bool) -> Write:
        is_nullable = version >= self.nullable_from
        is_text = self.kind == "string"
        longest = self.longest
        write_size = _writer_of_size("h" if is_text else "i", flexible)
        null = write_size(-1)

        def write(out: bytearray, value: Any) -> None:
            if value is None and is_nullable:
                out += null
                return
            data = value[:longest].encode() if is_text else value
            out += write_size(len(data))
            out += data

        return write


class Records(NamedTuple):
    """Record batches, read as a view of the received bytes; null is read as no bytes."""

    kind: str = "records"
    is_nullable: bool = True

    def reader(self, version: int, flexible: bool) -> Read:
        read_size = _reader_of_size(Body.int32, flexible)
        return lambda body: body.view(max(0, read_size(body)))

    def writer(self, version: int, flexible: bool) -> Write:
        return BYTES.writer(version, flexible)


class Array(NamedTuple):
    """Items of one type, read into a list."""

    item: Type
    nullable_from: int = NEVER
    make: Callable[[list[Any]], Any] | None = None
    """Turns the list that was read into another value."""

    def reader(self, version: int, flexible: bool) -> Read:
        is_nullable = version >= self.nullable_from
        read_size = _reader_of_size(Body.int32, flexible)
        read_item = self.item.reader(version, flexible)
        make = self.make

        def read(body: Body) -> Any:
            count = read_size(body)
            if count < 0:
                _ensure_nullable("an array", is_nullable)
                return None
            items = [read_item(body) for _ in range(body.count(count))]
            return items if make is None else make(items)

        return read

    def writer(self, version: int, flexible: bool) -> Write:
        is_nullable = version >= self.nullable_from
        write_size = _writer_of_size("i", flexible)
        write_item = self.item.writer(version, flexible)

        def write(out: bytearray, value: Any) -> None:
            if value is None and is_nullable:
                out += write_size(-1)
                return
            out += write_size(len(value))
            for item in value:
                write_item(out, item)

        return write


class Versions(NamedTuple):
    """A field that is not in all versions."""

    type: AnyType
    since: int = 0
    until: int = LATEST


class Computed(NamedTuple):
    """A field of an answer that is computed from the structure's value."""

    type: Type
    compute: Callable[[Any], Any]


class Constant(NamedTuple):
    """A field of an answer that is always the same."""

    type: Type
    value: Any


class Tagged(NamedTuple):
    """A tagged field. It is not written with its default, and has its default if it is not among those read."""

    type: Type
    tag: int
    default: Any


AnyType = Type | Computed | Constant | Tagged
Field = AnyType | Versions


class Struct:
    """A structure: its fields in wire order, by the builder's keyword and the answer's attribute.

    `build` gets the fields that the version has, without those whose name begins with an underscore.
    """

    def __init__(self, build: Callable[..., Any] | None = None, /, **fields: Field) -> None:
        self.build = build
        self.fields = fields

    def present(self, version: int) -> Iterator[tuple[str, AnyType]]:
        """The fields of a version."""
        for name, kind in self.fields.items():
            if isinstance(kind, Versions):
                if kind.since <= version <= kind.until:
                    yield name, kind.type
            else:
                yield name, kind

    def reader(self, version: int, flexible: bool) -> Read:
        build = self.build
        assert build is not None
        steps: list[tuple[str, Read]] = []
        tagged: list[tuple[str, Tagged, Read]] = []
        for name, kind in self.present(version):
            assert not isinstance(kind, Computed | Constant)
            if isinstance(kind, Tagged):
                tagged.append((name, kind, kind.type.reader(version, flexible)))
            else:
                steps.append((name, kind.reader(version, flexible)))
        dropped = [name for name, _ in steps if name.startswith("_")]

        def read(body: Body) -> Any:
            values: dict[str, Any] = {}
            name = ""
            try:
                for name, read_value in steps:
                    values[name] = read_value(body)
                if flexible:
                    name = "tagged fields"
                    found = body.tagged_fields()
                    for name, kind, read_value in tagged:
                        data = found.get(kind.tag)
                        if data is None:
                            values[name] = kind.default
                        else:
                            part = body.part(data)
                            values[name] = read_value(part)
                            body.items_left = part.items_left
            except DecodeError as error:
                raise DecodeError(f"{name.removeprefix('_')}: {error}") from None
            for name in dropped:
                del values[name]
            return build(**values)

        return read

    def writer(self, version: int, flexible: bool) -> Write:
        steps: list[Write] = []
        tagged: list[tuple[str, Tagged, Write]] = []
        for name, kind in self.present(version):
            write_value = (kind.type if isinstance(kind, Computed | Constant | Tagged) else kind).writer(
                version, flexible
            )
            if isinstance(kind, Tagged):
                tagged.append((name, kind, write_value))
            elif isinstance(kind, Constant):
                steps.append(_constant(kind.value, write_value))
            else:
                get = kind.compute if isinstance(kind, Computed) else attrgetter(name)
                steps.append(_part(get, write_value))
        if tagged:
            steps.append(_tags(tagged))
        elif flexible:
            steps.append(_constant(_NO_TAGS, bytearray.extend))

        def write(out: bytearray, value: Any) -> None:
            for step in steps:
                step(out, value)

        return write


class Nullable(NamedTuple):
    """A structure that may be null."""

    struct: Struct

    def reader(self, version: int, flexible: bool) -> Read:
        read = self.struct.reader(version, flexible)
        return lambda body: None if body.int8() < 0 else read(body)

    def writer(self, version: int, flexible: bool) -> Write:
        write_struct = self.struct.writer(version, flexible)

        def write(out: bytearray, value: Any) -> None:
            if value is None:
                out += b"\xff"
            else:
                out += b"\x01"
                write_struct(out, value)

        return write


class Message:
    """One direction of an API in all its versions, each compiled at its first use."""

    def __init__(self, flexible_from: int, build: Callable[..., Any] | None = None, /, **fields: Field) -> None:
        self.flexible_from = flexible_from
        self.body = Struct(build, **fields)
        self._readers: dict[int, Read] = {}
        self._writers: dict[int, Write] = {}

    def read(self, version: int, body: memoryview, max_items: int | None = None) -> Any:
        """Return the value that the structure's builder makes of a body. Raises DecodeError, naming the field.

        `max_items`: the most array items, by default those of a request.
        """
        read = self._readers.get(version)
        if read is None:
            read = self._readers[version] = self.body.reader(version, version >= self.flexible_from)
        return read(Body(body, max_items))

    def write(self, version: int, value: Any) -> bytes:
        """Return the bytes of a body."""
        write = self._writers.get(version)
        if write is None:
            write = self._writers[version] = self.body.writer(version, version >= self.flexible_from)
        out = bytearray()
        write(out, value)
        return bytes(out)


def rows(build: Callable[..., Any] | None = None, /, **fields: Field) -> Array:
    """An array of structures."""
    return Array(Struct(build, **fields))


def since(version: int, kind: AnyType) -> Versions:
    """A field of `version` and later."""
    return Versions(kind, since=version)


def until(version: int, kind: AnyType) -> Versions:
    """A field of `version` and earlier."""
    return Versions(kind, until=version)


def _reader_of_size(read_classic: Callable[[Body], int], flexible: bool) -> Callable[[Body], int]:
    return (lambda body: body.unsigned_varint() - 1) if flexible else read_classic


def _writer_of_size(code: str, flexible: bool) -> Callable[[int], bytes]:
    return (lambda size: unsigned(size + 1)) if flexible else struct.Struct(f">{code}").pack


def _ensure_nullable(what: str, is_nullable: bool) -> None:
    if not is_nullable:
        raise DecodeError(f"{what} that is null where it must not be")


def _part(get: Callable[[Any], Any], write_value: Write) -> Write:
    return lambda out, value: write_value(out, get(value))


def _constant(value: Any, write_value: Write) -> Write:
    encoded = bytearray()
    write_value(encoded, value)
    return lambda out, _: out.extend(encoded)


def _tags(fields: list[tuple[str, Tagged, Write]]) -> Write:
    def write(out: bytearray, value: Any) -> None:
        encoded = bytearray()
        count = 0
        for name, tagged, write_value in fields:
            field = getattr(value, name)
            if field != tagged.default:
                data = bytearray()
                write_value(data, field)
                encoded += unsigned(tagged.tag) + unsigned(len(data)) + data
                count += 1
        out += unsigned(count) + encoded

    return write


BOOL: Final = Fixed("bool", "?")
INT8: Final = Fixed("int8", "b")
INT16: Final = Fixed("int16", "h")
INT32: Final = Fixed("int32", "i")
INT64: Final = Fixed("int64", "q")
UUID: Final = Uuid()
STRING: Final = Sized("string")
NULLABLE_STRING: Final = Sized("string", nullable_from=0)
MESSAGE: Final = Sized("string", nullable_from=0, longest=MAX_MESSAGE_CHARACTERS)
"""An error's message, cut to what a string of a classic version holds: it may quote a very long name."""
BYTES: Final = Sized("bytes")
NO_THROTTLE: Final = Constant(INT32, 0)
"""`throttle_time_ms`: no client is throttled."""
