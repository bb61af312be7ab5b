"""A connection on a transport in memory, with a clock that the test advances."""

from __future__ import annotations

import asyncio
import math
import struct
from collections.abc import Callable, Iterable
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

from barnabas.broker.network.connection import Connection
from barnabas.broker.network.connection_registry import ConnectionRegistry
from barnabas.broker.network.deferred import Deferred
from barnabas.broker.network.receive_memory import ReceiveMemory
from barnabas.broker.network.response_frame import ResponseFrame
from barnabas.broker.network.session import Session
from barnabas.broker.probes import ConnectionProbe
from barnabas.broker.repeated_warnings import RepeatedWarnings
from barnabas.config.listeners import Listener


class Pipe:
    """A transport that records writes and whether reading is paused; while `is_full` it accepts no more data."""

    def __init__(self) -> None:
        self.written = b""
        self.reading = True
        self.closing = False
        self.is_full = False
        self.paused_writing = False
        self.connection: Connection

    def set_write_buffer_limits(self, high: int) -> None:
        assert high == 0

    def get_extra_info(self, name: str) -> None:
        return None

    def write(self, data: bytes) -> None:
        self.written += data
        if self.is_full and not self.paused_writing:
            self.paused_writing = True
            self.connection.pause_writing()

    def writelines(self, pieces: Iterable[bytes]) -> None:
        self.write(b"".join(pieces))

    def take_all(self) -> None:
        """Drain the transport, as if the client had read everything."""
        self.is_full = False
        if self.paused_writing:
            self.paused_writing = False
            self.connection.resume_writing()

    def is_closing(self) -> bool:
        return self.closing

    def pause_reading(self) -> None:
        assert self.reading
        self.reading = False

    def resume_reading(self) -> None:
        assert not self.reading
        self.reading = True

    def close(self) -> None:
        self.closing = True

    abort = close


class Clock:
    """The loop's time, which the test advances, and its timers."""

    def __init__(self) -> None:
        self.now = 0.0
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.ready: list[Callable[[], None]] = []

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, callback: Callable[[], None]) -> SimpleNamespace:
        timer = (when, callback)
        self.timers.append(timer)

        def cancel() -> None:
            if timer in self.timers:
                self.timers.remove(timer)

        return SimpleNamespace(cancel=cancel)

    def call_later(self, delay: float, callback: Callable[..., None], *args: Any) -> SimpleNamespace:
        return self.call_at(self.now + delay, partial(callback, *args))

    def call_soon(self, callback: Callable[[], None]) -> SimpleNamespace:
        self.ready.append(callback)

        def cancel() -> None:
            if callback in self.ready:
                self.ready.remove(callback)

        return SimpleNamespace(cancel=cancel)

    def turn(self) -> None:
        """Run what is due in the loop's next turn."""
        ready, self.ready = self.ready, []
        for callback in ready:
            callback()

    def pass_to(self, now: float) -> None:
        self.now = now
        for timer in [timer for timer in self.timers if timer[0] <= now]:
            self.timers.remove(timer)
            timer[1]()


Serve = Callable[[bytes], ResponseFrame | Deferred[ResponseFrame | None] | None]
"""Serves the bytes of a frame."""

ServeSession = Callable[[Session, memoryview], Any]
"""Dispatcher.serve."""


class Harness:
    """A connection whose dispatcher is `serve`."""

    def __init__(
        self,
        serve: ServeSession,
        *,
        turn_seconds: float = math.inf,
        turns: bool = True,
        memory: ReceiveMemory | None = None,
        clock: Clock | None = None,
        host: str = "",
    ) -> None:
        """`memory` None: as much as it takes. `turns` False: the test calls `clock.turn` itself."""
        self._turns = turns
        self.pipe = Pipe()
        self.clock = clock or Clock()
        self.probe = ConnectionProbe()
        dispatcher = SimpleNamespace(serve=serve, frames=None)
        loop = cast("asyncio.AbstractEventLoop", self.clock)
        registry = SimpleNamespace(
            loop=self.clock,
            dispatcher=dispatcher,
            blocking_io=None,
            probe=self.probe,
            max_frame_bytes=64 << 20,
            turn_seconds=turn_seconds,
            memory=memory or ReceiveMemory(1 << 40, loop, self.probe, RepeatedWarnings(loop)),
            warnings=RepeatedWarnings(loop),
            opened=lambda connection: None,
            closed=lambda connection: None,
            bind_access=lambda session: None,
        )
        session = Session(Listener("PLAINTEXT", "127.0.0.1", 0))
        session.host = host
        self.connection = Connection(cast("ConnectionRegistry", registry), session)
        self.pipe.connection = self.connection
        self.connection.connection_made(cast("asyncio.BaseTransport", self.pipe))

    def reads(self) -> bool:
        """Return whether the connection accepts bytes."""
        return self.pipe.reading and not self.pipe.closing

    def is_closed(self) -> bool:
        """Return whether the broker closed the connection."""
        return self.pipe.closing

    def feed(self, data: bytes, at_most: Callable[[], int] = lambda: 1 << 30) -> bytes:
        """Feed `data` in pieces while the connection reads; return the rest."""
        while data and self.reads():
            room = self.connection.get_buffer(-1)
            assert len(room) > 0, "a transport that reads needs room"
            size = min(len(room), len(data), at_most())
            room[:size] = data[:size]
            data = data[size:]
            self.connection.buffer_updated(size)
            if self._turns:
                self.clock.turn()
        return data


def harness_of(serve: Serve, *, turn_seconds: float = math.inf, turns: bool = True) -> Harness:
    """Return a connection whose dispatcher gets each frame's bytes."""
    return Harness(lambda session, frame: serve(bytes(frame)), turn_seconds=turn_seconds, turns=turns)


def framed(content: bytes) -> bytes:
    """Return a frame with its size."""
    return struct.pack(">i", len(content)) + content
