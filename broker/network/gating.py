"""What a connection and the authentication of its client are to each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from barnabas.broker.network.deferred import Deferred
from barnabas.broker.network.response_frame import LateResponse, ResponseFrame
from barnabas.broker.network.session import Session
from barnabas.protocol.framing import FrameError, FrameLimit

Serve = Callable[[Session, memoryview], ResponseFrame | Deferred[LateResponse] | None]
"""Serves one frame of a connection: before its client is authenticated another function than afterwards."""


class GatedConnection(Protocol):
    """A connection whose client must be authenticated."""

    session: Session

    def admit(self, serve: Serve, limit: FrameLimit | None) -> None:
        """Serve the frames after the current one by `serve`; `limit` None: that of authenticated clients."""
        ...

    def finish(self, reason: str) -> None:
        """Close after the response to the current request. `reason` becomes a label, as in `abort`."""
        ...

    def abort(self, reason: str) -> None:
        """Close now."""
        ...


class Gate(Protocol):
    """The authentication of one connection: it serves the frames until it admits the client."""

    @property
    def frame_limit(self) -> FrameLimit:
        """Limit on the frames of a client that is not authenticated."""
        ...

    def opened(self, connection: GatedConnection) -> None:
        """Begin; the connection has been accepted."""
        ...

    def closed(self) -> None:
        """End; the connection is closed."""
        ...

    def broken_frame(self, error: FrameError) -> bool:
        """Log a frame without a valid size. Returns False for an authenticated client: the connection logs it."""
        ...

    def serve(self, session: Session, frame: memoryview) -> ResponseFrame | Deferred[LateResponse] | None:
        """Serve one frame of a client that is not authenticated."""
        ...
