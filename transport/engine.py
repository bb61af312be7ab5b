"""TlsEngine: one end of a TLS connection in memory. Bytes in, bytes out; no sockets and no event loop.

Not thread-safe: the event loop and a handshake thread own it in turn.

OpenSSL gets the peer's records one by one. Given several, it would work off all that have no data (key updates, empty
records, warnings, renegotiations) within one call, however many there are; so they can be counted, and refused.

Cost per direction beside the cipher: OpenSSL copies ciphertext into its memory buffers and Python copies it out or in,
which the standard library's `ssl` cannot avoid. Plaintext is decrypted directly into the reader's buffer, and encrypted
directly from the writer's.
"""

from __future__ import annotations

import ssl
from time import monotonic
from typing import TYPE_CHECKING, Final, cast

from barnabas.transport.records import (
    EMPTY_RECORD_BYTES,
    EMPTY_RECORDS_MAX,
    HANDSHAKE_RECORDS_MAX,
    HEADER_BYTES,
    PAYLOAD_BYTES_MAX,
    BadRecordError,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_NOTHING: Final = memoryview(b"")


class TlsEngine:
    """SSLObject with its two memory buffers."""

    __slots__ = (
        "_decrypted",
        "_empty",
        "_empty_at",
        "_end",
        "_held",
        "_incoming",
        "_missing",
        "_outgoing",
        "_pending",
        "_read",
        "_write",
        "fed",
        "ssl_object",
    )

    def __init__(self, context: ssl.SSLContext, *, server_side: bool, server_hostname: str | None = None) -> None:
        """`server_hostname` is what a client verifies and sends. Raises ValueError if it is not a host name."""
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self.ssl_object = context.wrap_bio(self._incoming, self._outgoing, server_side, server_hostname)
        # The type stubs leave out the second form of `read`, into a buffer.
        self._read = cast("Callable[[int, memoryview], int]", self.ssl_object.read)
        self._write = self.ssl_object.write
        self._pending = self.ssl_object.pending
        self._held = _NOTHING
        """Received bytes that OpenSSL does not have yet."""
        self._missing = 0
        """Bytes between those that OpenSSL has and the end of their record."""
        self.fed = 0
        """Number of complete records that OpenSSL has got."""
        self._empty = 0.0
        """Records without data, less one for each second and each EMPTY_RECORD_BYTES since the first of them."""
        self._empty_at = 0.0
        self._decrypted = 0
        """Bytes of data since the last record without any."""
        self._end: Exception | None = None
        """What the next `read_into` raises."""

    def receive(self, data: bytes | memoryview) -> None:
        """Take bytes of the peer. A view must stay valid until the next `keep`."""
        self._held = memoryview(bytes(self._held) + data if self._held else data)

    def keep(self) -> None:
        """Copy what is left of a received view."""
        if self._held:
            self._held = memoryview(bytes(self._held))

    def handshake(self) -> bool:
        """Continue the handshake: True when it is complete.

        Raises ssl.SSLError; an alert is then in `outgoing`. Raises BadRecordError if it has too many records.
        """
        while True:
            try:
                self.ssl_object.do_handshake()
                return True
            except ssl.SSLWantReadError:
                if not self._feed():
                    return False
            if self.fed > HANDSHAKE_RECORDS_MAX:
                raise BadRecordError(f"more than {HANDSHAKE_RECORDS_MAX} records before its end")

    def read_into(self, buffer: memoryview, fed_max: int) -> int:
        """Decrypt into `buffer` while `fed` is below `fed_max`; return the number of bytes, 0 if there are none.

        Raises EOFError after the peer's close_notify, ssl.SSLError for a broken record or too many without data. Bytes
        that were decrypted before are returned first, so that the error comes with the next call.
        """
        filled = 0
        size = len(buffer)
        try:
            while filled < size and self._end is None and (self._pending() or (self.fed < fed_max and self._feed())):
                try:
                    got = self._read(size - filled, buffer[filled:])
                except ssl.SSLWantReadError:
                    self._count_empty()
                    continue
                if not got:
                    raise EOFError("close_notify")
                filled += got
        except ssl.SSLZeroReturnError:
            self._end = EOFError("close_notify")
        except (EOFError, ssl.SSLError) as error:
            self._end = error.with_traceback(None)
        if self._end is not None and not filled:
            end, self._end = self._end, None
            raise end
        self._decrypted += filled
        return filled

    def encrypt(self, data: bytes | bytearray | memoryview) -> None:
        """Encrypt `data`, which must not be empty, into `outgoing`. Raises ssl.SSLError."""
        self._write(data)

    def outgoing(self) -> bytes:
        """Return and forget the bytes for the peer."""
        return self._outgoing.read() if self._outgoing.pending else b""

    @property
    def outgoing_bytes(self) -> int:
        """Number of bytes for the peer."""
        return self._outgoing.pending

    def close_notify(self) -> None:
        """Add the alert that ends this direction to `outgoing`."""
        try:
            self.ssl_object.unwrap()
        except ssl.SSLError:
            # The peer has not answered yet, or the connection is broken; neither matters when closing.
            return

    def _feed(self) -> bool:
        """Give OpenSSL bytes up to the end of a record; return whether it has the whole record."""
        held = self._held
        missing = self._missing
        if not missing:
            if len(held) < HEADER_BYTES:
                return False
            length = held[3] << 8 | held[4]
            # Of a record that is too long, OpenSSL refuses the header.
            missing = HEADER_BYTES + (length if length <= PAYLOAD_BYTES_MAX else 0)
        size = len(held)
        if missing < size:
            self._incoming.write(held[:missing])
            self._held = held[missing:]
            self._missing = 0
        else:
            self._incoming.write(held)
            self._held = _NOTHING
            self._missing = missing = missing - size
            if missing:
                return False
        self.fed += 1
        return True

    def _count_empty(self) -> None:
        now = monotonic()
        allowed = now - self._empty_at + self._decrypted / EMPTY_RECORD_BYTES
        self._empty = max(0.0, self._empty - allowed) + 1
        self._empty_at = now
        self._decrypted = 0
        if self._empty > EMPTY_RECORDS_MAX:
            raise ssl.SSLError(ssl.SSL_ERROR_SSL, f"more than {EMPTY_RECORDS_MAX} records without data")
