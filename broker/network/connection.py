"""One client's connection: bytes in, frames out to the dispatcher, answers back in the order of the requests.

The receive buffer is an anonymous mapping, so its pages cost nothing before they are touched; the kernel reads into it,
requests are decoded in it, and a produced batch is stamped in it and written from it to its segment file: no byte is
copied in Python. That holds only because a handler is done with the views when it returns, and because one request of a
connection is worked on at a time; the ones behind it wait in the buffer, which bounds them, and once it is full in the
client's socket.
"""

from __future__ import annotations

import asyncio
import logging
import mmap
from typing import TYPE_CHECKING, Final, cast

from barnabas.broker.network.deferred import Deferred
from barnabas.broker.network.response_frame import CloseConnection
from barnabas.broker.network.response_sender import ResponseSender
from barnabas.protocol.framing import SIZE_PREFIX, FrameError, frame_size

if TYPE_CHECKING:
    from barnabas.broker.network.connection_registry import ConnectionRegistry
    from barnabas.broker.network.response_frame import ResponseFrame
    from barnabas.broker.network.session import Session

logger = logging.getLogger(__name__)

RECEIVE_BUFFER_BYTES: Final = 256 * 1024
"""The buffer of a new connection; a larger frame makes it grow."""

KEEP_BUFFER_BYTES: Final = 4 * 1024 * 1024
"""A buffer that grew beyond this is given back once its frame is worked off."""


class Connection(asyncio.BufferedProtocol):
    """A client's connection. Everything runs in the event loop; nothing in here blocks."""

    __slots__ = (
        "_awaited",
        "_buffer",
        "_busy",
        "_consumed",
        "_filled",
        "_last_active",
        "_paused_reading",
        "_pending",
        "_pumping",
        "_registry",
        "_sender",
        "_transport",
        "_view",
        "close_reason",
        "draining",
        "session",
    )

    def __init__(self, registry: ConnectionRegistry, session: Session) -> None:
        """`registry` is what all connections share: the dispatcher, the limits, the counters."""
        self._registry = registry
        self.session = session
        self._buffer = _anonymous(RECEIVE_BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._filled = 0
        self._consumed = 0
        self._awaited = 0
        """Where in the buffer the frame that is being received will end; 0 while its size is not known."""
        self._busy = False
        self._pumping = False
        self._paused_reading = False
        self._pending: Deferred[ResponseFrame | CloseConnection | None] | None = None
        self._transport: asyncio.Transport
        self._sender: ResponseSender
        self.draining = False
        self.close_reason = "client"
        self._last_active = 0.0

    # --- asyncio's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The transport is there; too many connections, and it goes again."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is no subclass of it
        registry = self._registry
        self.session.connected(transport)
        self._last_active = registry.loop.time()
        self._sender = ResponseSender(
            self._transport,
            registry.loop,
            registry.blocking_io,
            registry.probe,
            on_idle=self._answer_left,
            on_failure=self._answer_failed,
        )
        registry.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """The transport has gone; whoever works on the request at hand is told."""
        if exc is not None and self.close_reason == "client":
            self.close_reason = "connection_reset"
        if self._pending is not None:
            self._pending.cancel()
            self._pending = None
        self._sender.close()
        self._registry.closed(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Where the next bytes go; never empty, because a full buffer pauses reading."""
        return self._view[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        """`nbytes` more are in the buffer."""
        registry = self._registry
        registry.probe.received_bytes += nbytes
        self._filled = filled = self._filled + nbytes
        if filled < self._awaited:
            self._last_active = registry.loop.time()  # a large frame comes in many pieces: no more than this for each
        elif not self._busy:
            self._work()
        elif filled == len(self._view):
            self._pause_reading()

    def eof_received(self) -> bool:
        """The client sends no more: close, after what was written has left."""
        return False

    def pause_writing(self) -> None:
        """The kernel took less than all of what was written."""
        self._sender.pause_writing()

    def resume_writing(self) -> None:
        """The kernel has taken all that was written."""
        self._sender.resume_writing()

    # --- the server's side

    @property
    def last_active(self) -> float:
        """The loop's time at which something of a request came, or something of an answer left."""
        return max(self._last_active, self._sender.last_progress)

    @property
    def waits_for_broker(self) -> bool:
        """The client waits for an answer that is not there yet."""
        return self._pending is not None

    def close(self, reason: str) -> None:
        """Close after what was written has left. `reason` becomes a label of the closed-connections metric."""
        if not self._transport.is_closing():
            self.close_reason = reason
            self._transport.close()

    def abort(self, reason: str) -> None:
        """Close now; what is not with the kernel is dropped."""
        self.close_reason = reason
        self._transport.abort()

    def drain(self) -> None:
        """Finish the request at hand, answer it, and close."""
        self.draining = True
        if not self._busy:
            self.close("draining")

    # --- requests

    def _work(self) -> None:
        """Work off the complete frames in the buffer, until one has to wait for its answer."""
        if self._pumping:
            return  # an answer left while it was being handed over: the loop below goes on by itself
        self._pumping = True
        try:
            self._work_off_frames()
        except (FrameError, CloseConnection) as error:
            logger.warning("closing the connection of %s: %s", self.session, error)
            self._sender.flush()
            self.abort("refused" if isinstance(error, CloseConnection) else "bad_frame")
        except Exception:
            logger.exception("a bug in the connection of %s, which is closed", self.session)
            self.abort("internal_error")
        finally:
            self._pumping = False

    def _work_off_frames(self) -> None:
        registry = self._registry
        sender = self._sender
        self._last_active = registry.loop.time()
        self._awaited = 0
        while not self._busy and not self._transport.is_closing():
            start = self._consumed
            filled = self._filled
            body = start + SIZE_PREFIX
            if body > filled:
                break
            size = frame_size(self._view, start, registry.max_frame_bytes)
            end = body + size
            if end > filled:
                self._make_room(SIZE_PREFIX + size)
                self._awaited = self._consumed + SIZE_PREFIX + size
                break
            self._consumed = end
            self._busy = True
            outcome = registry.dispatcher.serve(self.session, self._view[body:end])
            if isinstance(outcome, Deferred):
                sender.flush()
                self._pending = outcome
                outcome.then(self._deferred_answer)
            elif end + SIZE_PREFIX < filled and outcome is not None and sender.hold(outcome):
                # Pipelined requests: more are here already, and their answers leave in one system call.
                self._busy = False
            else:
                self._answer(outcome)
        else:
            if self._busy and self._filled == len(self._view):
                self._pause_reading()
            return
        if self._consumed == self._filled:
            self._consumed = self._filled = 0
            if len(self._view) > KEEP_BUFFER_BYTES:
                self._replace_buffer(RECEIVE_BUFFER_BYTES)
        elif len(self._view) == self._filled:
            self._make_room(self._filled - self._consumed + SIZE_PREFIX)
        if not sender.flush():
            self._busy = True  # until the client has taken them: `_answer_left`
        elif self._paused_reading and not self._transport.is_closing():
            self._paused_reading = False
            self._transport.resume_reading()

    def _deferred_answer(self, answer: ResponseFrame | CloseConnection | None) -> None:
        self._pending = None
        if isinstance(answer, CloseConnection):
            logger.warning("closing the connection of %s: %s", self.session, answer)
            self.abort("refused")
            return
        self._answer(answer)
        if not self._busy:
            self._work()

    def _answer(self, answer: ResponseFrame | None) -> None:
        if self._transport.is_closing():
            return  # a late answer to a client that has gone: there is nobody to write to
        if answer is None or self._sender.send(answer):
            self._busy = False
            if self.draining:
                self.close("draining")

    def _answer_left(self) -> None:
        """The sender has handed over what did not fit the socket at once."""
        if not self._busy or self._pending is not None:
            return  # the held answers left, and the request behind them still waits for its own
        self._busy = False
        if self.draining:
            self.close("draining")
        else:
            self._work()

    def _answer_failed(self, error: Exception) -> None:
        if isinstance(error, ConnectionError):
            self.abort("connection_reset")
            return
        logger.warning("closing the connection of %s: an answer could not be sent: %s", self.session, error)
        self.abort("answer_failed")

    # --- the buffer

    def _make_room(self, frame_bytes: int) -> None:
        """Let a frame of `frame_bytes` from `_consumed` on fit: move it to the front, of a larger buffer if needed."""
        if self._consumed + frame_bytes <= len(self._view):
            return
        if frame_bytes <= len(self._view):
            held = self._filled - self._consumed
            self._buffer.move(0, self._consumed, held)
            self._consumed, self._filled = 0, held
        else:
            self._replace_buffer(1 << (frame_bytes - 1).bit_length())

    def _replace_buffer(self, size: int) -> None:
        held = self._filled - self._consumed
        buffer = _anonymous(size)
        view = memoryview(buffer)
        view[:held] = self._view[self._consumed : self._filled]
        self._buffer, self._view = buffer, view
        self._consumed, self._filled = 0, held

    def _pause_reading(self) -> None:
        if not self._paused_reading and not self._transport.is_closing():
            self._paused_reading = True
            self._transport.pause_reading()


def _anonymous(size: int) -> mmap.mmap:
    """`size` zero bytes that take no memory before they are touched."""
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
