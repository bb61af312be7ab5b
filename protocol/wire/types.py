"""Types of fields.

`Sequence[T]` is an array that is read into a list, `tuple[T, ...]` one that is read into a tuple; T is a type of this
module or a structure. Null:

    NullableString, NullableBytes               in every version
    Annotated[Sequence[T] | None, Nullable(2)]  from version 2 on; likewise strings, bytes and structures
"""

from __future__ import annotations

import struct
from typing import Annotated, Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.wire.pieces import RecordsPart

MAX_MESSAGE_CHARACTERS: Final = 8000
"""In UTF-8 at most 32,000 bytes: a classic string's length is an int16."""

NEVER: Final = 0x7FFF
"""As the version from which on null is allowed: in none."""


class Fixed:
    """A value of fixed size. `code`: as in `struct`; `read`: the function of generated code that converts it."""

    __slots__ = ("code", "name", "read", "size")

    def __init__(self, name: str, code: str, read: str = "") -> None:
        self.name = name
        self.code = code
        self.read = read
        self.size = struct.calcsize(f">{code}")


class Sized:
    """Bytes after their length. `longest`: a longer string is cut to that many characters when it is written.

    `is_secret`: the text of a structure does not show them.
    """

    __slots__ = ("is_secret", "longest", "name", "nullable_from")

    def __init__(
        self, name: str, nullable_from: int = NEVER, longest: int | None = None, is_secret: bool = False
    ) -> None:
        self.name = name
        self.is_secret = is_secret
        self.nullable_from = nullable_from
        self.longest = longest


class Nullable:
    """In Annotated: null is allowed from version `since` on."""

    __slots__ = ("since",)

    def __init__(self, since: int = 0) -> None:
        self.since = since


class Named:
    """In Annotated: the name that Kafka's JSON has for a field, where ours is another."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class Shared:
    """In Annotated, of a tuple of numbers: a message has few distinct ones, so each is packed once.

    Of an array of structures: one that occurs several times in a message, the same object, is written once.
    """

    __slots__ = ()


SHARED: Final = Shared()

Bool = Annotated[bool, Fixed("bool", "?")]
Int8 = Annotated[int, Fixed("int8", "b")]
Int16 = Annotated[int, Fixed("int16", "h")]
UInt16 = Annotated[int, Fixed("uint16", "H")]
Int32 = Annotated[int, Fixed("int32", "i")]
Int64 = Annotated[int, Fixed("int64", "q")]
Float64 = Annotated[float, Fixed("float64", "d")]
Uuid = Annotated[bytes, Fixed("uuid", "16s")]
Error = Annotated[ErrorCode, Fixed("int16", "h", read="known_error")]
"""An error code; one that Barnabas does not know is read as UNKNOWN_SERVER_ERROR."""

String = Annotated[str, Sized("string")]
NullableString = Annotated[str | None, Sized("string", nullable_from=0)]
Message = Annotated[str | None, Sized("string", nullable_from=0, longest=MAX_MESSAGE_CHARACTERS)]
"""An error's message, cut to what a string of a classic version holds: it may quote a very long name."""
Bytes = Annotated[bytes, Sized("bytes")]
Records = Annotated[memoryview | None, Sized("records", nullable_from=0)]
"""Record batches, read as a view of the message; strings of such a message are copied once more."""
StoredRecords = Annotated[RecordsPart, Sized("records")]
"""Record batches of an answer: the broker sends them from where they are stored, a client reads them as a view of the
message."""
NullableStoredRecords = Annotated[RecordsPart, Sized("records", nullable_from=0)]
"""The broker never sends null; None for a client."""
SecretBytes = Annotated[bytes, Sized("bytes", is_secret=True)]
"""A password, or what suffices to log in."""
NullableBytes = Annotated[bytes | None, Sized("bytes", nullable_from=0)]
