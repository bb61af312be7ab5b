"""Types of fields that only answers have."""

from __future__ import annotations

import struct
from typing import Final, NamedTuple

from barnabas.protocol.kafka.schema import INT16, Read, Write
from barnabas.protocol.wire.source import known_error

_LAYOUT = struct.Struct(">h")


class ErrorField(NamedTuple):
    """An int16 that is read as an ErrorCode."""

    kind: str = "int16"

    def reader(self, version: int, flexible: bool) -> Read:
        """Return a function that reads one code."""
        return lambda body: known_error(body.fixed(_LAYOUT))

    def writer(self, version: int, flexible: bool) -> Write:
        """Return a function that writes one code."""
        return INT16.writer(version, flexible)


ERROR: Final = ErrorField()
