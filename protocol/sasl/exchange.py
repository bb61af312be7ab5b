"""Steps of a SASL exchange, and the two sides of a mechanism.

A server answers each message of the client with a Step. A client produces messages until `is_complete`; its faults are
SaslError.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol


class Challenge(NamedTuple):
    """The exchange continues: send `data`, and pass the client's answer to `respond`."""

    data: bytes


class Success(NamedTuple):
    """The client is authenticated as `user`. `expires_at_ms` is the end of its credential, in ms since the epoch."""

    data: bytes
    user: str
    expires_at_ms: int | None = None
    token_authenticated: bool = False


class Failure(NamedTuple):
    """The client is refused.

    `reason` is for the log: one of few texts, without anything of the client's message. `public` is the sentence that
    the client may read, None the generic one. `user` is the name that the client claims, unchecked; None: unknown.
    """

    reason: str
    public: str | None = None
    user: str | None = None


class Work(NamedTuple):
    """The next step needs `run`, which blocks or computes for long; pass its result to `resume`."""

    run: Callable[[], Any]


Step = Challenge | Success | Failure | Work


class SaslServer(Protocol):
    """The server side of one exchange."""

    def respond(self, data: bytes) -> Step:
        """Take the client's next message. Never raises, whatever the message contains."""
        ...

    def resume(self, result: Any) -> Step:
        """Take the result of the last step's Work."""
        ...


class SaslError(Exception):
    """The server's message is malformed, or proves that it does not know the password."""


class SaslClient(Protocol):
    """The client side of one exchange."""

    @property
    def is_complete(self) -> bool:
        """Whether the exchange has ended well. A server that ends it earlier has not proved its identity."""
        ...

    def start(self) -> bytes:
        """Return the first message."""
        ...

    def respond(self, data: bytes) -> bytes | None:
        """Return the answer to the server's message; None if there is nothing more to send.

        Deriving a key from a password takes milliseconds: call it on a thread. Raises SaslError.
        """
        ...
