"""TlsTransport: TLS of a server between an event loop's transport and a BufferedProtocol.

Own code instead of the loops' TLS: uvloop's never calls `resume_writing` with a write buffer limit of 0, which the
broker's sender uses, and both loops show a connection to its protocol after the handshake only, when limits are late.

    loop's transport <-> TlsTransport <-> protocol

  - The handshake runs on a HandshakeRunner. Until it ends the protocol has no connection; a deadline and bounds on what
    the peer may send hold (`records`).
  - A turn of the loop decrypts TURN_RECORDS records of a connection. Records without data are bounded (`records`).
  - All connections of a loop receive into one buffer (`scratch`): between `get_buffer` and `buffer_updated` the loop
    does nothing else. Plaintext is decrypted into the protocol's own buffer, without a copy in Python.
  - Flow control is that of the loop's transport, whose write buffer limit the protocol sets: while it is paused nothing
    is encrypted, and written bytes wait as plaintext.
  - The end of the stream, with close_notify or without, is the protocol's `eof_received`. A stream that was cut off is
    recognized by Kafka's framing.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, cast

from barnabas.transport.engine import TlsEngine
from barnabas.transport.handshakes import HandshakeRunner
from barnabas.transport.records import READ_BYTES, BadRecordError, HandshakeRecords

logger = logging.getLogger(__name__)

SCRATCH_BYTES: Final = 128 * 1024
"""Bytes received at a time."""

PIECE_BYTES: Final = 256 * 1024
"""Bytes encrypted at a time."""

TURN_RECORDS: Final = 128
"""Records decrypted before others get their turn: half a millisecond if they are tiny, 2 MiB if they are full."""

UNSENT_ALERT_BYTES_MAX: Final = 64 * 1024
"""Limit on answers to key updates that a peer requests without reading them."""


@dataclass(slots=True, kw_only=True)
class TlsParts:
    """What the connections of one listener share."""

    context: Callable[[], ssl.SSLContext]
    """Called for each connection: the context may be replaced meanwhile."""
    handshakes: HandshakeRunner
    scratch: memoryview
    """Of one event loop; `new_scratch` creates it."""
    handshake_seconds: float
    """Limit on the time from the connection to the end of the handshake."""
    failure_seconds: float = 0.0
    """Delay before a connection whose handshake failed is closed."""

    on_broken: Callable[[TlsTransport, str], None] | None = None
    """Called with the reason before a connection is cut off for an error after its handshake; None: it is logged.

    Clients can repeat this, so a server has to bound what it logs.
    """


def new_scratch() -> memoryview:
    """Return a receive buffer for the connections of one event loop."""
    return memoryview(bytearray(SCRATCH_BYTES))


def _accept(transport: TlsTransport) -> None:
    """Accept every peer that the context accepts."""


def _told_before(*_: object) -> None:
    """Stand in for the callbacks of a closed connection."""


_NOBODY: Final = asyncio.BufferedProtocol()
"""The protocol of a closed connection."""


class TlsTransport(asyncio.Transport, asyncio.BufferedProtocol):
    """The protocol of the loop's transport, and the transport of `protocol`."""

    __slots__ = (
        "_backlog",
        "_closing",
        "_connected",
        "_deadline",
        "_delivers_later",
        "_ended",
        "_engine",
        "_inner",
        "_failure",
        "_inner_paused",
        "_is_made",
        "_loop",
        "_on_complete",
        "_on_failed",
        "_parts",
        "_protocol",
        "_reading_paused",
        "_records",
        "_scratch",
        "_told_paused",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        protocol: asyncio.BufferedProtocol,
        parts: TlsParts,
        on_failed: Callable[[Exception], None],
        on_complete: Callable[[TlsTransport], None] = _accept,
    ) -> None:
        """`on_complete` is called after the handshake, before the protocol has the connection.

        `on_failed` is called instead of the protocol's `connection_lost` if the connection ends before that. Its
        argument is ssl.SSLError, BadRecordError, TimeoutError, OSError, or what `on_complete` raised.
        """
        super().__init__()
        self._loop = loop
        self._protocol = protocol
        self._parts = parts
        self._on_failed = on_failed
        self._on_complete = on_complete
        self._failure: Exception | None = None
        self._inner: asyncio.Transport
        """Set by `connection_made`, a turn of the loop after the constructor."""
        self._is_made = False
        self._engine: TlsEngine | None = None
        self._records: HandshakeRecords | None = HandshakeRecords()
        """None after the handshake."""
        self._scratch = parts.scratch[:READ_BYTES]
        self._connected = False
        self._deadline: asyncio.TimerHandle | None = None
        self._backlog: deque[memoryview] = deque()
        self._inner_paused = False
        self._told_paused = False
        self._reading_paused = False
        self._delivers_later = False
        self._ended = False
        """After the peer's close_notify. Reading on would only collect what it sends behind it."""
        self._closing = False

    # --- called by the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Start the deadline."""
        self._inner = cast("asyncio.Transport", transport)
        self._is_made = True
        if self._closing:
            self._inner.abort()
            return
        self._deadline = self._loop.call_later(self._parts.handshake_seconds, self._too_late)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell the protocol if it has the connection, otherwise the owner."""
        self._closing = True
        self._backlog.clear()
        self._end_deadline()
        if self._connected:
            self._protocol.connection_lost(exc)
        else:
            self._on_failed(self._failure or exc or ConnectionResetError("the peer disconnected"))
        # Without these, a closed connection is in no cycle, and its memory is free at once.
        self._protocol = _NOBODY
        self._on_failed = self._on_complete = _told_before
        self._failure = None

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer that all connections of the loop share."""
        return self._scratch

    def buffer_updated(self, nbytes: int) -> None:
        """Continue the handshake, or decrypt."""
        data = self._scratch[:nbytes]
        engine = self._engine
        if self._records is not None:
            self._handshake_received(data)
        elif engine is not None and not self._closing:
            engine.receive(data)
            self._deliver()
            engine.keep()

    def eof_received(self) -> bool:
        """Pass the end of the stream on. Responses to requests already received may still be written."""
        if self._connected and not self._closing:
            return bool(self._protocol.eof_received())
        return False

    def pause_writing(self) -> None:
        """Stop encrypting."""
        self._inner_paused = True
        if self._connected and not self._told_paused:
            self._told_paused = True
            self._protocol.pause_writing()

    def resume_writing(self) -> None:
        """Encrypt what was written meanwhile; resume the protocol when nothing is left."""
        self._inner_paused = False
        self._send_backlog()
        self._resume_protocol()

    # --- called by the protocol

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Encrypt and send; `data` must not change afterwards."""
        if not data or self._closing:
            return
        engine = self._engine
        if self._backlog or self._inner_paused or len(data) > PIECE_BYTES or engine is None:
            self._backlog.append(memoryview(data))
            self._send_backlog()
            return
        self._encrypt(engine, data)

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        """Send as one piece: one record and one system call, if it is small."""
        self.write(b"".join(list_of_data))

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Set the limits of the loop's transport, which count encrypted bytes."""
        self._inner.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        """Return the number of bytes that the kernel has not accepted."""
        return self._inner.get_write_buffer_size() + sum(len(piece) for piece in self._backlog)

    def pause_reading(self) -> None:
        """Stop calling the protocol's `buffer_updated`."""
        self._reading_paused = True
        if not self._closing:
            self._inner.pause_reading()

    def resume_reading(self) -> None:
        """Deliver what is already here, then read on."""
        if not self._reading_paused:
            return
        self._reading_paused = False
        # Later: the protocol may be in the middle of its own work. Records already here cause no event of the socket.
        self._deliver_later()

    def is_reading(self) -> bool:
        """Whether the protocol gets data."""
        return not self._reading_paused and not self._ended and not self.is_closing()

    def is_closing(self) -> bool:
        """Whether the connection is closed or closing."""
        return self._closing or self._inner.is_closing()

    def close(self) -> None:
        """Close after everything written has been sent."""
        if self._closing:
            return
        self._closing = True
        if not self._backlog:
            self._close_inner()

    def abort(self) -> None:
        """Close now and drop what the kernel has not accepted. Before `connection_made`: close then."""
        self._closing = True
        self._end_deadline()
        self._backlog.clear()
        if self._is_made:
            self._inner.abort()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return TLS details (`sslcontext`, `ssl_object`, `peercert_der`), or what the loop's transport has.

        Not its `socket`: whatever is written to that is not encrypted.
        """
        if name == "socket":
            return default
        engine = self._engine
        if engine is not None and name in ("sslcontext", "ssl_object", "peercert_der"):
            if name == "sslcontext":
                return engine.ssl_object.context
            if name == "ssl_object":
                return engine.ssl_object
            return engine.ssl_object.getpeercert(binary_form=True)
        return self._inner.get_extra_info(name, default)

    # --- the handshake

    def _handshake_received(self, data: memoryview) -> None:
        records = self._records
        if records is None or self._closing:
            return
        try:
            complete = records.take(data)
            if not complete:
                return
        except BadRecordError as error:
            self._handshake_failed(error)
            return
        if self._engine is None:
            self._engine = TlsEngine(self._parts.context(), server_side=True)
        self._engine.receive(complete)
        # With reading paused: a thread owns the engine meanwhile.
        self._inner.pause_reading()
        self._parts.handshakes.run(self._engine.handshake, self._stepped)

    def _stepped(self, outcome: bool | Exception) -> None:
        engine = self._engine
        if engine is None or self._closing or self._inner.is_closing():
            return
        self._send_protocol_messages(engine)
        if isinstance(outcome, Exception):
            self._handshake_failed(outcome)
        elif outcome:
            self._handshake_complete(engine)
        elif not self._inner.is_closing():
            self._inner.resume_reading()

    def _handshake_complete(self, engine: TlsEngine) -> None:
        self._end_deadline()
        records, self._records = self._records, None
        self._scratch = self._parts.scratch
        if records is not None:
            engine.receive(records.rest())
        try:
            self._on_complete(self)
        except Exception as error:  # noqa: BLE001 - reported by on_failed
            self._handshake_failed(error)
            return
        self._connected = True
        self._protocol.connection_made(self)
        if self._closing or self._inner.is_closing():
            return
        if self._inner_paused:
            self.pause_writing()
        if not self._reading_paused and self._deliver():
            self._inner.resume_reading()

    def _handshake_failed(self, error: Exception) -> None:
        """Close, but not immediately, so that a client cannot try again immediately."""
        self._closing = True
        self._end_deadline()
        self._failure = error
        delay = self._parts.failure_seconds
        if delay <= 0:
            self._inner.close()
            return
        self._inner.pause_reading()
        self._loop.call_later(delay, self._inner.close)

    def _too_late(self) -> None:
        if self._closing or self._connected:
            return
        self._failure = TimeoutError(f"not complete after {self._parts.handshake_seconds:g} s")
        self.abort()

    def _end_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    # --- data

    def _deliver(self) -> bool:
        """Decrypt into the protocol's buffer until it pauses, no whole record is left, or the turn is over.

        Return whether to read on. When the turn is over, reading is paused.
        """
        engine = self._engine
        if engine is None:
            return False
        protocol = self._protocol
        fed_max = engine.fed + TURN_RECORDS
        try:
            while not self._reading_paused and not self._closing:
                filled = engine.read_into(protocol.get_buffer(-1), fed_max)  # type: ignore[arg-type]
                if not filled:
                    break
                protocol.buffer_updated(filled)
        except EOFError:
            self._ended = True
            if not self.is_closing():
                self._inner.pause_reading()
                if not protocol.eof_received():
                    self.close()
            return False
        except ssl.SSLError as error:
            self._broke(error)
            return False
        self._send_protocol_messages(engine)
        if not self.is_reading():
            return False
        if engine.fed == fed_max:
            self._inner.pause_reading()
            self._deliver_later()
            return False
        return True

    def _deliver_later(self) -> None:
        if not self._delivers_later:
            self._delivers_later = True
            self._loop.call_soon(self._resume_delivery)

    def _resume_delivery(self) -> None:
        self._delivers_later = False
        if self.is_reading() and self._deliver():
            self._inner.resume_reading()

    def _send_protocol_messages(self, engine: TlsEngine) -> None:
        """Send what TLS itself has to say: handshake messages, tickets, alerts, answers to key updates."""
        if not engine.outgoing_bytes:
            return
        if not self._inner_paused:
            self._inner.write(engine.outgoing())
        elif engine.outgoing_bytes > UNSENT_ALERT_BYTES_MAX:
            self._report_broken("the peer requests key updates without reading them")
            self.abort()

    def _send_backlog(self) -> None:
        engine = self._engine
        if engine is None:
            return
        backlog = self._backlog
        while backlog and not self._inner_paused:
            piece = backlog[0]
            if len(piece) > PIECE_BYTES:
                backlog[0] = piece[PIECE_BYTES:]
                piece = piece[:PIECE_BYTES]
            else:
                backlog.popleft()
            self._encrypt(engine, piece)
        if not backlog and not self._inner_paused:
            self._send_protocol_messages(engine)
            if self._closing:
                # Later: asyncio's transport calls connection_lost twice when it is closed within resume_writing.
                self._loop.call_soon(self._close_inner)

    def _encrypt(self, engine: TlsEngine, data: bytes | bytearray | memoryview) -> None:
        try:
            engine.encrypt(data)
        except ssl.SSLError as error:
            self._broke(error)
            return
        self._inner.write(engine.outgoing())

    def _broke(self, error: ssl.SSLError) -> None:
        self._report_broken(str(error))
        if self._engine is not None:
            self._send_protocol_messages(self._engine)
        self.abort()

    def _report_broken(self, reason: str) -> None:
        if self._parts.on_broken is not None:
            self._parts.on_broken(self, reason)
        else:
            logger.info("TLS of %s broke: %s", self.get_extra_info("peername"), reason)

    def _resume_protocol(self) -> None:
        if self._told_paused and not self._inner_paused and not self._backlog:
            self._told_paused = False
            if not self._closing:
                self._protocol.resume_writing()

    def _close_inner(self) -> None:
        if self._inner.is_closing():
            return
        engine = self._engine
        if engine is not None and self._connected:
            engine.close_notify()
            if engine.outgoing_bytes:
                self._inner.write(engine.outgoing())
        self._inner.close()
