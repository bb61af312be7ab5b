"""One client's connection: bytes in, frames to the dispatcher, responses back in the order of the requests.

Requests are served where they are received (receive_buffer.py), one at a time; plain ones by compiled kernels where
they were built (kernels/_frames.pyx), as many as the buffer has in one call, the others by the dispatcher. Later
requests wait in the buffer, which bounds them, and then in the client's socket. A muted connection sends its responses
and serves no request until the time is over.

A client that has sent its last byte (EOF) may have requests in the buffer: acks=0 producers close their connection
without waiting. As in Kafka these are served, after the end of a mute as well, before the connection is closed. A
request that waits, for records or for a thread that decodes it, ends with its connection.

A client that sends faster than the broker serves yields to the others: after a millisecond with further requests in the
buffer, and after a full buffer, the next request is served in the loop's next turn. libuv reads a socket that never
runs empty up to 32 times in a row, each time a buffer full of requests.

Responses to pipelined requests are held back and leave in one system call. Everything that can end such a series (a
request that waits, a full socket, a broken frame) must flush them first.
"""

from __future__ import annotations

import asyncio
import logging
from time import perf_counter
from typing import TYPE_CHECKING, cast

from barnabas.broker.network.deferred import Deferred
from barnabas.broker.network.receive_buffer import ReceiveBuffer
from barnabas.broker.network.response_frame import CloseConnection
from barnabas.broker.network.response_sender import ResponseSender
from barnabas.broker.repeated_warnings import Event
from barnabas.protocol.framing import REQUEST_LIMIT, SIZE_PREFIX, FrameError, FrameLimit, frame_size

if TYPE_CHECKING:
    from barnabas.broker.network.connection_registry import ConnectionRegistry
    from barnabas.broker.network.dispatch import Handler
    from barnabas.broker.network.gating import Gate, Serve
    from barnabas.broker.network.kernels._frames import FrameRun, PlainFrames
    from barnabas.broker.network.response_frame import LateResponse, ResponseFrame
    from barnabas.broker.network.session import Session

logger = logging.getLogger(__name__)


class Connection(asyncio.BufferedProtocol):
    """A client's connection. Runs in the event loop; nothing here blocks."""

    __slots__ = (
        "_buffer",
        "_busy",
        "_ended",
        "_finish_reason",
        "_frame_limit",
        "_frames",
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
        "_trimmed",
        "close_reason",
        "session",
    )

    def __init__(self, registry: ConnectionRegistry, session: Session, gate: Gate | None = None) -> None:
        """`registry` has the parts that all connections share; `gate` None: clients are not authenticated."""
        self._registry = registry
        self.session = session
        self._gate = gate
        self._serve: Serve = registry.dispatcher.serve
        self._frames = registry.dispatcher.frames
        """Serves plain requests; None where every request is `_serve`'s."""
        self._max_frame_bytes = registry.max_frame_bytes
        self._frame_limit = REQUEST_LIMIT
        if gate is not None:
            self.admit(gate.serve, gate.frame_limit)
        self._buffer = ReceiveBuffer(self, registry.memory)
        self._trimmed = 0.0
        """`last_active` when the pages of the empty buffer were released."""
        self._busy = False
        self._pumping = False
        self._paused_reading = False
        self._ended = False
        """Whether the client sends nothing more, and the connection is closed once its last request has been served."""
        self._mute: asyncio.Handle | None = None
        """Ends the time in which no request is served: a mute, or the rest of this turn of the loop."""
        self._muted_until = 0.0
        """The loop's time; 0 without a mute."""
        self._pending: Deferred[LateResponse] | None = None
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
        self.discard()
        self._registry.closed(self)
        if self.session.on_closed:
            self.session.closed()

    def discard(self) -> None:
        """Release the parts that refer to the connection. Called instead of the others if its handshake failed."""
        self._gate = None
        self._serve = self._registry.dispatcher.serve  # instead of the gate's
        self._buffer.close()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the free part of the buffer; never empty, because a full buffer pauses reading."""
        buffer = self._buffer
        return buffer.view[buffer.filled :] if buffer.filled else buffer.view

    def buffer_updated(self, nbytes: int) -> None:
        """Serve the requests that `nbytes` more bytes complete."""
        registry = self._registry
        registry.probe.received_bytes += nbytes
        buffer = self._buffer
        buffer.filled = filled = buffer.filled + nbytes
        if filled < buffer.awaited:
            self._last_active = registry.loop.time()  # a large frame has many pieces: minimal work for each
        elif self._busy:
            if filled == len(buffer.view):
                self._pause_reading()
        elif self._frames is None or filled == len(buffer.view) or not self._serve_plain(self._frames):
            self._work()

    def _serve_plain(self, frames: FrameRun) -> bool:
        """Serve a buffer that contains nothing but plain requests. Returns False where requests remain for `_work`."""
        if self._mute is not None or self._pumping or self._transport.is_closing():
            return False
        registry = self._registry
        buffer = self._buffer
        try:
            plain = frames.serve(
                self.session, buffer.view, buffer.consumed, buffer.filled, self._max_frame_bytes, registry.turn_seconds
            )
        except Exception as error:  # noqa: BLE001 - as in `_work`
            self._end_by_bug(error)
            return True
        if plain is None:
            return False
        consumed, responses, outcome, begun = plain
        if (
            begun is not None
            or consumed < buffer.filled
            or not (outcome is None or (type(outcome) is Deferred and responses is None))
        ):
            self._work(plain)
            return True
        self._last_active = registry.loop.time()
        buffer.awaited = 0
        if buffer.resized:
            buffer.consumed = consumed
            buffer.forget_served()
        else:  # the same for a buffer that has never grown, without the call
            buffer.consumed = buffer.filled = 0
        if type(outcome) is Deferred:  # as in `_answer`; nothing is held back here
            self._busy = True
            self._pending = outcome
            outcome.then(self._send_deferred)
            return True
        if responses is not None and not self._sender.send_bytes(responses):
            self._busy = True  # until the client has taken them: `_response_sent`
        return True

    def eof_received(self) -> bool:
        """Return True: complete requests are served first, and the registry closes few connections at a time."""
        self._ended = self._buffer.has_complete_frame()
        if not self._ended:
            self._registry.close_soon(self)
        return True

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

    def admit(self, serve: Serve, limit: FrameLimit | None) -> None:
        """Serve the frames after the current one by `serve`; `limit` None: that of authenticated clients."""
        dispatcher = self._registry.dispatcher
        self._serve = serve
        self._frames = dispatcher.frames if serve == dispatcher.serve else None
        if limit is None:
            self._max_frame_bytes, self._frame_limit = self._registry.max_frame_bytes, REQUEST_LIMIT
        else:
            self._max_frame_bytes, self._frame_limit = limit

    def finish(self, reason: str) -> None:
        """Close after the response to the current request. `reason` as in `close`."""
        self._finish_reason = reason

    # --- requests

    def _work(self, plain: PlainFrames | None = None) -> None:
        """Serve the complete frames in the buffer, until one has to wait for its response.

        `plain`: the first ones were served already, with this result.
        """
        if self._pumping:
            return  # called while a response is being sent from the loop below, which continues by itself
        self._pumping = True
        try:
            self._work_off_frames(plain)
        except (FrameError, CloseConnection) as error:
            gate = self._gate
            reason = "refused" if isinstance(error, CloseConnection) else "bad_frame"
            if gate is None or not isinstance(error, FrameError) or not gate.broken_frame(error):
                self._warn(reason, error)
            self._sender.flush()
            self.abort(reason)
        except Exception as error:  # noqa: BLE001 - a bug must not affect other connections
            self._end_by_bug(error)
        finally:
            self._pumping = False

    def _end_by_bug(self, error: Exception) -> None:
        """Log the error and close the connection."""
        event = Event(self.session.host, "a bug in a connection")
        registry = self._registry
        registry.warnings.bug(logger, event, error, "a bug in the connection of %s, which is closed", self.session)
        self.abort("internal_error")

    def _work_off_frames(self, plain: PlainFrames | None) -> None:
        registry = self._registry
        sender = self._sender
        buffer = self._buffer
        self._last_active = registry.loop.time()
        buffer.awaited = 0
        turn_ends = perf_counter() + registry.turn_seconds
        was_full = buffer.filled == len(buffer.view)
        served = False
        # A request in `plain` may have muted the connection.
        while plain is not None or (not self._busy and self._mute is None and not self._transport.is_closing()):
            start = buffer.consumed
            filled = buffer.filled
            begun: Handler | None = None
            frames = self._frames
            if frames is not None:
                if plain is None and not (served and perf_counter() > turn_ends):
                    plain = frames.serve(
                        self.session, buffer.view, start, filled, self._max_frame_bytes, registry.turn_seconds
                    )
                if plain is not None:
                    buffer.consumed, responses, outcome, begun = plain
                    plain = None
                    served = True
                    start = buffer.consumed
                    if responses is not None and not sender.hold_bytes(responses) and not sender.flush():
                        self._busy = True
                    if outcome is not None:
                        self._answer(outcome)
                    if begun is None:
                        if outcome is None and start == filled:
                            break
                        continue
            body = start + SIZE_PREFIX
            if body > filled:
                break
            size = frame_size(buffer.view, start, self._max_frame_bytes, self._frame_limit)
            end = body + size
            if end > filled:
                self._make_room(SIZE_PREFIX + size)
                buffer.awaited = min(buffer.consumed + SIZE_PREFIX + size, len(buffer.view))
                break
            buffer.consumed = end
            if begun is not None:
                self._busy = True
                self._answer(registry.dispatcher.serve(self.session, buffer.view[body:end], begun))
                continue
            if served and perf_counter() > turn_ends:
                buffer.consumed = start
                self._yield()
                continue
            served = True
            self._busy = True
            self._answer(self._serve(self.session, buffer.view[body:end]))
        else:
            if self._mute is not None and not self._busy and not self._transport.is_closing():
                buffer.forget_served()
                if not sender.flush():  # responses that were held back before the muted one
                    self._busy = True
            if buffer.filled == len(buffer.view):
                self._pause_reading()
            return
        if buffer.consumed == buffer.filled:
            buffer.forget_served()
        elif len(buffer.view) == buffer.filled and not buffer.starved:
            self._make_room(buffer.filled - buffer.consumed + SIZE_PREFIX)
        if was_full and served:
            self._yield()
        if not sender.flush():
            self._busy = True  # until the client has taken them: `_response_sent`
        elif self._paused_reading and not buffer.starved and not self._transport.is_closing():
            self._paused_reading = False
            self._transport.resume_reading()
        if self._ended and not self._busy:
            self.close("client")

    def _answer(self, outcome: ResponseFrame | Deferred[LateResponse] | None) -> None:
        """Send the response to the request before `consumed`, or wait for it."""
        sender = self._sender
        if isinstance(outcome, Deferred):
            sender.flush()
            self._busy = True
            self._pending = outcome
            outcome.then(self._send_deferred)
        elif self._buffer.consumed + SIZE_PREFIX < self._buffer.filled and outcome is not None and sender.hold(outcome):
            # Pipelined: more requests are in the buffer already, and their responses leave in one system call.
            self._busy = False
        else:
            self._busy = True
            self._send(outcome)

    def _send_deferred(self, answer: LateResponse) -> None:
        self._pending = None
        if isinstance(answer, CloseConnection):
            self._warn(answer.reason, answer)
            self.abort(answer.reason)
            return
        self._send(answer)
        if self._busy:
            return
        if self._buffer.filled or self._paused_reading or self._ended:
            self._work()
        else:
            self._last_active = self._registry.loop.time()  # the buffer is empty: nothing else to do

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

    # --- called by the memory

    @property
    def receiving(self) -> tuple[int, int] | None:
        """The number of the buffer's changes of size, and the bytes in it, while it receives; None if it does not."""
        buffer = self._buffer
        if self._busy or buffer.starved or self._paused_reading or buffer.filled >= buffer.awaited:
            return None
        return buffer.resized, buffer.filled

    def memory_available(self) -> None:
        """Try again to take memory for the frame that waits for it."""
        if not self._busy and not self._transport.is_closing():
            self._work()

    def release_idle(self) -> None:
        """Release the memory of a buffer that grew and is empty."""
        if not self._busy and self._buffer.filled == 0 and self._buffer.has_grown:
            self._buffer.shrink()

    def trim(self, before: float) -> None:
        """Release the pages of an empty buffer, unless bytes came after `before`, the loop's time."""
        last = self._last_active
        if last >= before or last == self._trimmed or self._busy or self._buffer.filled:
            return
        self._trimmed = last
        self._buffer.release_pages()

    # --- reading

    def _make_room(self, frame_bytes: int) -> None:
        """Make room for more of a frame of `frame_bytes`; without memory, reading is paused."""
        self._buffer.make_room(frame_bytes)
        if self._buffer.starved:
            self._pause_reading()

    def _pause_reading(self) -> None:
        if not self._paused_reading and not self._transport.is_closing():
            self._paused_reading = True
            self._transport.pause_reading()
