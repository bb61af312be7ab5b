"""TlsEngine: one end of a TLS connection in memory. Bytes in, bytes out; no sockets and no event loop.

Not thread-safe: the event loop and a handshake thread own it in turn.

Cost per direction beside the cipher: OpenSSL copies ciphertext into its memory buffers and Python copies it out or in,
which the standard library's `ssl` cannot avoid. Plaintext is decrypted directly into the reader's buffer, and encrypted
directly from the writer's.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Callable


class TlsEngine:
    """SSLObject with its two memory buffers."""

    __slots__ = ("_incoming", "_outgoing", "_read", "_write", "ssl_object")

    def __init__(self, context: ssl.SSLContext, *, server_side: bool, server_hostname: str | None = None) -> None:
        """`server_hostname` is what a client verifies and sends. Raises ValueError if it is not a host name."""
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self.ssl_object = context.wrap_bio(self._incoming, self._outgoing, server_side, server_hostname)
        # The type stubs leave out the second form of `read`, into a buffer.
        self._read = cast("Callable[[int, memoryview], int]", self.ssl_object.read)
        self._write = self.ssl_object.write

    def receive(self, data: bytes | memoryview) -> None:
        """Take bytes of the peer."""
        self._incoming.write(data)

    def handshake(self) -> bool:
        """Continue the handshake: True when it is complete. Raises ssl.SSLError; an alert is then in `outgoing`."""
        try:
            self.ssl_object.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True

    def read_into(self, buffer: memoryview) -> int:
        """Decrypt received records into `buffer`; return the number of bytes, 0 if no whole record is left.

        Raises EOFError after the peer's close_notify, ssl.SSLError for a broken record. Bytes that were decrypted
        before are returned first, so that the error comes with the next call.
        """
        filled = 0
        size = len(buffer)
        try:
            while filled < size and (self._incoming.pending or self.ssl_object.pending()):
                got = self._read(size - filled, buffer[filled:])
                if not got:
                    raise EOFError("close_notify")
                filled += got
        except ssl.SSLWantReadError:
            return filled
        except (EOFError, ssl.SSLZeroReturnError) as error:
            if not filled:
                raise EOFError("close_notify") from error
        except ssl.SSLError:
            if not filled:
                raise
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
