"""Steps of a SASL exchange, and what a mechanism's server side is to the broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol


class Challenge(NamedTuple):
    """The exchange goes on: send `data`, and give the client's answer to `respond`."""

    data: bytes


class Success(NamedTuple):
    """The client is authenticated as `user`. `expires_at_ms` is the end of its credential, in ms since the epoch."""

    data: bytes
    user: str
    expires_at_ms: int | None = None
    token_authenticated: bool = False


class Failure(NamedTuple):
    """The client is refused; `reason` is logged. `public` is the sentence that it may read, None the generic one."""

    reason: str
    public: str | None = None


class Work(NamedTuple):
    """The next step needs `run`, which blocks or computes for long; its result goes to `resume`."""

    run: Callable[[], Any]


Step = Challenge | Success | Failure | Work


class SaslServer(Protocol):
    """The server side of one exchange."""

    def respond(self, data: bytes) -> Step:
        """Take the client's next message."""
        ...

    def resume(self, result: Any) -> Step:
        """Take the result of the last step's Work."""
        ...
