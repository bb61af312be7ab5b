"""One client's connection: bytes in, frames to the dispatcher, responses back in the order of the requests.

The receive buffer is an anonymous mapping, so its pages cost nothing before they are touched. The kernel reads into it,
requests are decoded in it, and a produced batch is patched in it and written from it to its segment file: no byte is
copied in Python. This requires that a handler keeps no view after it returns, and that only one request of a
connection is served at a time. Later requests wait in the buffer, which bounds them, and then in the client's socket.
A muted connection sends its responses and serves no request until the time is over.

A client that sends faster than the broker serves yields to the others: after a millisecond with further requests in the
buffer, and after a full buffer, the next request is served in the loop's next turn. libuv reads a socket that never
runs empty up to 32 times in a row, each time a buffer full of requests.

Responses to pipelined requests are held back and leave in one system call. Everything that can end such a series (a
request that waits, a full socket, a broken frame) must flush them first.
"""

from __future__ import annotations

import asyncio
import logging
import mmap
from time import perf_counter
from typing import TYPE_CHECKING, Final, cast

from barnabas.broker.network.deferred import Deferred
from barnabas.broker.network.response_frame import CloseConnection
from barnabas.broker.network.response_sender import ResponseSender
from barnabas.broker.repeated_warnings import Event
from barnabas.protocol.framing import REQUEST_LIMIT, SIZE_PREFIX, FrameError, frame_size

if TYPE_CHECKING:
    from barnabas.broker.network.connection_registry import ConnectionRegistry
    from barnabas.broker.network.gating import Gate, Serve
    from barnabas.broker.network.response_frame import ResponseFrame
    from barnabas.broker.network.session import Session

logger = logging.getLogger(__name__)

RECEIVE_BUFFER_BYTES: Final = 256 * 1024
"""The buffer of a new connection; a larger frame makes it grow."""

KEEP_BUFFER_BYTES: Final = 4 * 1024 * 1024
"""A buffer that grew beyond this is released once its frame has been served."""


class Connection(asyncio.BufferedProtocol):
    """A client's connection. Runs in the event loop; nothing here blocks."""

    __slots__ = (
        "_awaited",
        "_buffer",
        "_busy",
        "_consumed",
        "_filled",
        "_finish_reason",
        "_frame_limit",
        "_gate",
        "_last_active",
        "_max_frame_bytes",
        "_mute",
        "_muted_until",
        "_paused_reading",
        "_pending",
        "_pumping",
        "_registry",
        "_sender",
        "_serve",
        "_transport",
        "_view",
        "close_reason",
        "session",
    )

    def __init__(self, registry: ConnectionRegistry, session: Session, gate: Gate | None = None) -> None:
        """`registry` has the parts that all connections share; `gate` None: clients are not authenticated."""
        self._registry = registry
        self.session = session
        self._gate = gate
        self._serve: Serve = registry.dispatcher.serve
        self._max_frame_bytes = registry.max_frame_bytes
        self._frame_limit = REQUEST_LIMIT
        if gate is not None:
            self.admit(gate.serve, gate.max_frame_bytes)
        self._buffer = _anonymous(RECEIVE_BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._filled = 0
        self._consumed = 0
        self._awaited = 0
        """End position in the buffer of the frame being received; 0 while its size is unknown."""
        self._busy = False
        self._pumping = False
        self._paused_reading = False
        self._mute: asyncio.Handle | None = None
        """Ends the time in which no request is served: a mute, or the rest of this turn of the loop."""
        self._muted_until = 0.0
        """The loop's time; 0 without a mute."""
        self._pending: Deferred[ResponseFrame | CloseConnection | None] | None = None
        self._transport: asyncio.Transport
        self._sender: ResponseSender
        self._finish_reason: str | None = None
        """Why the connection is closed after the current response; None: it stays open."""
        self.close_reason = "client"
        self._last_active = 0.0

    # --- called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Set up the session and the sender; the registry closes the connection if there are too many."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is not a subclass
        registry = self._registry
        self.session.connected(transport)
        registry.bind_access(self.session)
        self._last_active = registry.loop.time()
        self._sender = ResponseSender(
            self._transport,
            registry.loop,
            registry.blocking_io,
            registry.probe,
            on_idle=self._response_sent,
            on_failure=self._send_failed,
        )
        registry.opened(self)
        if self._gate is not None:
            self._gate.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the pending request, if any, and release everything."""
        if exc is not None and self.close_reason == "client":
            self.close_reason = "connection_reset"
        if self._pending is not None:
            self._pending.cancel()
            self._pending = None
        self._end_mute()
        if self._gate is not None:
            self._gate.closed()
        self._sender.close()
        # Not when the garbage collector comes: the transport and the connection refer to each other.
        del self._buffer
        self._view = memoryview(b"")
        self._filled = self._consumed = self._awaited = 0
        self._registry.closed(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the free part of the buffer; never empty, because a full buffer pauses reading."""
        return self._view[self._filled :]

    def buffer_updated(self, nbytes: int) -> None:
        """Serve the requests that `nbytes` more bytes complete."""
        registry = self._registry
        registry.probe.received_bytes += nbytes
        self._filled = filled = self._filled + nbytes
        if filled < self._awaited:
            self._last_active = registry.loop.time()  # a large frame has many pieces: minimal work for each
        elif not self._busy:
            self._work()
        elif filled == len(self._view):
            self._pause_reading()

    def eof_received(self) -> bool:
        """Let the transport close after everything written has been sent."""
        return False

    def pause_writing(self) -> None:
        """The socket is full."""
        self._sender.pause_writing()

    def resume_writing(self) -> None:
        """The kernel has accepted everything written."""
        self._sender.resume_writing()

    # --- called by the registry

    @property
    def last_active(self) -> float:
        """The loop's time when a part of a request last arrived or a part of a response last left."""
        return max(self._last_active, self._sender.last_progress)

    @property
    def waits_for_broker(self) -> bool:
        """Whether the client waits for a response that is not available yet, or for the end of its mute."""
        return self._pending is not None or self._mute is not None

    def close(self, reason: str) -> None:
        """Close after everything written has been sent. `reason` becomes a label of the closed-connections metric."""
        if not self._transport.is_closing():
            self.close_reason = reason
            self._transport.close()

    def abort(self, reason: str) -> None:
        """Close now and drop what the kernel has not accepted."""
        self.close_reason = reason
        self._transport.abort()

    def drain(self) -> None:
        """Finish the current request, answer it, and close."""
        self._end_mute()
        if self._busy:
            self.finish("draining")
        else:
            self.close("draining")

    def mute(self, seconds: float) -> None:
        """Serve no further request for this time, or until a longer one that has begun before is over (KIP-219).

        Responses are still sent. Reading pauses only when the buffer is full.
        """
        if self._finish_reason is not None or self._transport.is_closing():
            return
        loop = self._registry.loop
        until = loop.time() + seconds
        if self._mute is not None:
            if until <= self._muted_until:
                return
            self._mute.cancel()
        if not self._muted_until:
            self._registry.probe.muted += 1
        self._muted_until = until
        self._mute = loop.call_at(until, self._unmute)

    def _unmute(self) -> None:
        self._end_mute()
        if not self._busy and not self._transport.is_closing():
            self._work()

    def _end_mute(self) -> None:
        if self._mute is not None:
            self._mute.cancel()
            self._mute = None
        if self._muted_until:
            self._muted_until = 0.0
            self._registry.probe.muted -= 1

    def _yield(self) -> None:
        """Serve the next request in the loop's next turn."""
        if self._mute is None:
            self._mute = self._registry.loop.call_soon(self._unmute)

    # --- called by the gate

    def admit(self, serve: Serve, max_frame_bytes: int | None) -> None:
        """Serve the frames after the current one by `serve`; `max_frame_bytes` None: those of authenticated clients."""
        self._serve = serve
        if max_frame_bytes is None:
            self._max_frame_bytes, self._frame_limit = self._registry.max_frame_bytes, REQUEST_LIMIT
        else:
            self._max_frame_bytes, self._frame_limit = max_frame_bytes, "sasl.server.max.receive.size"

    def finish(self, reason: str) -> None:
        """Close after the response to the current request. `reason` as in `close`."""
        self._finish_reason = reason

    # --- requests

    def _work(self) -> None:
        """Serve the complete frames in the buffer, until one has to wait for its response."""
        if self._pumping:
            return  # called while a response is being sent from the loop below, which continues by itself
        self._pumping = True
        try:
            self._work_off_frames()
        except (FrameError, CloseConnection) as error:
            gate = self._gate
            reason = "refused" if isinstance(error, CloseConnection) else "bad_frame"
            if gate is None or not isinstance(error, FrameError) or not gate.broken_frame(error):
                self._warn(reason, error)
            self._sender.flush()
            self.abort(reason)
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
        turn_ends = perf_counter() + registry.turn_seconds
        was_full = self._filled == len(self._view)
        served = False
        while not self._busy and self._mute is None and not self._transport.is_closing():
            start = self._consumed
            filled = self._filled
            body = start + SIZE_PREFIX
            if body > filled:
                break
            size = frame_size(self._view, start, self._max_frame_bytes, self._frame_limit)
            end = body + size
            if end > filled:
                self._make_room(SIZE_PREFIX + size)
                self._awaited = self._consumed + SIZE_PREFIX + size
                break
            if served and perf_counter() > turn_ends:
                self._yield()
                continue
            self._consumed = end
            served = True
            self._busy = True
            outcome = self._serve(self.session, self._view[body:end])
            if isinstance(outcome, Deferred):
                sender.flush()
                self._pending = outcome
                outcome.then(self._send_deferred)
            elif end + SIZE_PREFIX < filled and outcome is not None and sender.hold(outcome):
                # Pipelined: more requests are in the buffer already, and their responses leave in one system call.
                self._busy = False
            else:
                self._send(outcome)
        else:
            if self._mute is not None and not self._busy and not self._transport.is_closing():
                self._forget_served()
                if not sender.flush():  # responses that were held back before the muted one
                    self._busy = True
            if self._filled == len(self._view):
                self._pause_reading()
            return
        if self._consumed == self._filled:
            self._forget_served()
        elif len(self._view) == self._filled:
            self._make_room(self._filled - self._consumed + SIZE_PREFIX)
        if was_full and served:
            self._yield()
        if not sender.flush():
            self._busy = True  # until the client has taken them: `_response_sent`
        elif self._paused_reading and not self._transport.is_closing():
            self._paused_reading = False
            self._transport.resume_reading()

    def _send_deferred(self, answer: ResponseFrame | CloseConnection | None) -> None:
        self._pending = None
        if isinstance(answer, CloseConnection):
            self._warn("refused", answer)
            self.abort("refused")
            return
        self._send(answer)
        if not self._busy:
            self._work()

    def _send(self, answer: ResponseFrame | None) -> None:
        if self._transport.is_closing():
            return  # a late response to a client that has disconnected; writing would raise
        if answer is None or self._sender.send(answer):
            self._busy = False
            if self._finish_reason is not None:
                self.close(self._finish_reason)

    def _response_sent(self) -> None:
        """The kernel has accepted the rest of a response that did not fit into the socket."""
        if not self._busy or self._pending is not None:
            return  # held responses were sent, and the request after them still waits for its own
        self._busy = False
        if self._finish_reason is not None:
            self.close(self._finish_reason)
        else:
            self._work()

    def _send_failed(self, error: Exception) -> None:
        if isinstance(error, ConnectionError):
            self.abort("connection_reset")
            return
        self._warn("answer_failed", f"an answer could not be sent: {error}")
        self.abort("answer_failed")

    def _warn(self, reason: str, text: object) -> None:
        """Log why the broker closes the connection; `reason` as in `close`."""
        event = Event(self.session.host, "a connection was closed", f" reason={reason}")
        self._registry.warnings.warn(logger, event, "closing the connection of %s: %s", self.session, text)

    # --- the buffer

    def _forget_served(self) -> None:
        """Use the buffer from its start again if every byte in it was served."""
        if self._consumed == self._filled:
            self._consumed = self._filled = 0
            if len(self._view) > KEEP_BUFFER_BYTES:
                self._replace_buffer(RECEIVE_BUFFER_BYTES)

    def _make_room(self, frame_bytes: int) -> None:
        """Make a frame of `frame_bytes` at `_consumed` fit: move it to the front, of a larger buffer if needed."""
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
    """Map `size` zero bytes that take no memory before they are touched."""
    return mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
