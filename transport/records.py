"""TLS records: their completeness before the end of the handshake, and bounds on what an unknown peer may send.

A handshake step gets whole records only, so that a peer that sends single bytes costs no step for each of them.

    type i8   version u16   length u16   payload
"""

from __future__ import annotations

from typing import Final

HEADER_BYTES: Final = 5

PAYLOAD_BYTES_MAX: Final = 16 * 1024 + 2048
"""Of an encrypted record of TLS 1.2; those of TLS 1.3 are shorter."""

HANDSHAKE_BYTES_MAX: Final = 64 * 1024
"""Of all records until the handshake ends. Java's limit on a certificate chain is 32 KiB."""

HANDSHAKE_RECORDS_MAX: Final = 128
"""Of all records until the handshake ends. A chain of 32 KiB in the smallest fragments that TLS knows takes 64."""

EMPTY_RECORDS_MAX: Final = 16
"""Records without data that a peer may send at once after the handshake, and one more each second and each
EMPTY_RECORD_BYTES of data. A key update is one, and costs 19 us; clients send them after gigabytes or hours."""

EMPTY_RECORD_BYTES: Final = 1 << 20
"""Takes 50 times as long to decrypt as a key update. Java's jdk.tls.keyLimits may ask for an update so often."""

READ_BYTES: Final = 16 * 1024
"""Bytes to read at a time until the handshake ends. The last read may contain application data, which does not count
towards the bound."""

CHANGE_CIPHER_SPEC: Final = 20
HANDSHAKE: Final = 22
APPLICATION_DATA: Final = 23


class BadRecordError(Exception):
    """The peer's bytes are not TLS, or are beyond a bound; the text continues "TLS handshake failed: "."""


class HandshakeRecords:
    """Collects bytes until records are complete."""

    __slots__ = ("_partial", "_received")

    def __init__(self) -> None:
        self._partial = bytearray()
        self._received = 0

    @property
    def received(self) -> int:
        """Number of bytes received so far."""
        return self._received

    def take(self, data: memoryview) -> bytes:
        """Return the complete records at the front of all bytes so far, and keep the rest. Raises BadRecordError."""
        if not self._received and data and data[0] != HANDSHAKE:
            raise BadRecordError("the first bytes are not TLS; does the client use PLAINTEXT or SASL_PLAINTEXT?")
        if self._received > HANDSHAKE_BYTES_MAX:
            raise BadRecordError(f"more than {HANDSHAKE_BYTES_MAX} bytes before its end")
        self._received += len(data)
        self._partial += data
        end = self._complete_end()
        complete = bytes(self._partial[:end])
        del self._partial[:end]
        return complete

    def rest(self) -> bytes:
        """Return and forget the bytes of the incomplete record."""
        rest = bytes(self._partial)
        self._partial.clear()
        return rest

    def _complete_end(self) -> int:
        end = 0
        held = self._partial
        while end + HEADER_BYTES <= len(held):
            if not CHANGE_CIPHER_SPEC <= held[end] <= APPLICATION_DATA or held[end + 1] != 3:
                raise BadRecordError("the bytes are not a TLS record")
            length = held[end + 3] << 8 | held[end + 4]
            if length > PAYLOAD_BYTES_MAX:
                raise BadRecordError(f"a record of {length} bytes")
            if end + HEADER_BYTES + length > len(held):
                break
            end += HEADER_BYTES + length
        return end
