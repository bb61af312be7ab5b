"""The base classes of the records that coordinators keep in internal topics: RecordKey and RecordValue.

    key      int16 type of the record | fields of version 0, never flexible
    value    int16 version            | fields of the version

    class TransactionLogKey(RecordKey, number=0, frozen=True, kw_only=False):
        transactional_id: String

    class TransactionLogValue(RecordValue, newest=1, flexible=1, frozen=True):
        producer_id: Int64
        ...

    key = TransactionLogKey("payments").to_bytes()
    value = TransactionLogValue.from_bytes(record.value)

Source: Kafka's CoordinatorRecordSerde.
"""

from __future__ import annotations

from typing import ClassVar, Self

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.wire.structures import Struct

HEAD_SIZE = 2
"""Bytes before the fields."""


def head_of(data: bytes) -> int:
    """Return the type of a key or the version of a value, as Kafka's int16. Raises DecodeError."""
    if len(data) < HEAD_SIZE:
        raise DecodeError(f"{len(data)} bytes are neither key nor value of a coordinator's record")
    number = data[0] << 8 | data[1]
    return number if data[0] < 0x80 else number - 0x10000


class RecordKey(Struct, frozen=True):
    """The key of a record. `number` is its type."""

    number: ClassVar[int]

    def to_bytes(self) -> bytes:
        """Return the bytes of the key. Raises ValueError for a string above 32,767 bytes."""
        return self.encode(0)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Return the key of bytes whose type is `number`. Raises DecodeError."""
        value: Self = (cls._readers.get(0) or cls._reader(0))(data)
        return value

    @classmethod
    def wire_head(cls, version: int) -> int:
        """Return the type of the record."""
        return cls.number


class RecordValue(Struct, frozen=True):
    """The value of a record. `newest` is its last version."""

    newest: ClassVar[int]

    @property
    def usual_version(self) -> int:
        """The version that Kafka writes, if no other is asked."""
        return self.newest

    def to_bytes(self, version: int | None = None) -> bytes:
        """Return the bytes in a version. Raises ValueError for a string above 32,767 bytes that is not compact."""
        return self.encode(self.usual_version if version is None else version)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Return the value of bytes of any version. Raises DecodeError, also for a version that is not known."""
        reader = cls._readers.get(data[:HEAD_SIZE])
        if reader is None:
            if not cls.knows(data):
                raise DecodeError(f"{cls.__name__} has version {head_of(data)}, the newest known is {cls.newest}")
            reader = cls._readers[data[:HEAD_SIZE]] = cls._reader(head_of(data))
        value: Self = reader(data)
        return value

    @classmethod
    def knows(cls, data: bytes) -> bool:
        """Return whether a value has a version that is known. Raises DecodeError if it is too short for one."""
        return 0 <= head_of(data) <= cls.newest

    @classmethod
    def wire_head(cls, version: int) -> int:
        """Return the version."""
        return version
