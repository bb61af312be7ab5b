"""A blocking connection that receives whole frames, below the test clients of Kafka's protocol."""

from __future__ import annotations

import socket
from types import TracebackType
from typing import Self

TIMEOUT_S = 30.0


class FrameConnection:
    """One connection of a client. `correlation_id` is that of the last request."""

    def __init__(self, host: str, port: int, source: str = "") -> None:
        """`source` is the client's address, of this machine; "": the system's choice."""
        self.socket = socket.create_connection((host, port), timeout=TIMEOUT_S, source_address=(source, 0))
        self.correlation_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.socket.close()

    def receive_frame(self) -> bytes:
        """Read the bytes of the next response after its size."""
        return self.read(int.from_bytes(self.read(4), "big"))

    def is_closed_by_broker(self) -> bool:
        """Wait for data; return whether the broker closes the connection without sending a byte."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def read(self, size: int) -> bytes:
        """Read so many bytes. Raises ConnectionError if the connection ends before."""
        parts = []
        while size:
            part = self.socket.recv(min(size, 1 << 20))
            if not part:
                raise ConnectionError("the broker closed the connection")
            parts.append(part)
            size -= len(part)
        return b"".join(parts)
