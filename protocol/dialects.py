"""The dialects of the wire protocol, by the first byte of a frame, and the interface that dispatch uses.

A dialect is a codec between frames and the neutral requests and responses of `protocol/messages`, never a second
implementation of an API. Each is a module whose functions fit `Dialect`; dispatch imports nothing else of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Final, Protocol, cast

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.framing import NATIVE_MAGIC
from barnabas.protocol.kafka import dialect as kafka

EncodedFrame = tuple[bytes, Sequence[Any]]
"""A response frame: its first bytes, then the bytes and file slices that follow them."""


class Header(Protocol):
    """The fields of a dialect's request header that dispatch reads."""

    @property
    def api(self) -> int:
        """Kafka's key of the API."""
        ...

    @property
    def version(self) -> int:
        """Version of the API's messages."""
        ...

    @property
    def client_id(self) -> str | None:
        """The client's name for itself."""
        ...

    def without_frame(self) -> Header:
        """Return the header without views of the frame; enough to encode a response."""
        ...


class Dialect(Protocol):
    """A codec between frames and neutral messages. `header` is always the dialect's own type."""

    def read_request(self, frame: memoryview) -> Header:
        """Read the header of a request. Raises FrameError: close the connection."""
        ...

    def is_supported(self, header: Header, *, unstable: bool = False) -> bool:
        """Return whether `decode_body` handles this API and version; `unstable`: also one that Kafka holds back."""
        ...

    def refuse_unknown(self, header: Header) -> EncodedFrame:
        """Return the response to an unsupported API or version. Raises FrameError: close the connection instead."""
        ...

    def decode_body(self, header: Header) -> Any:
        """Return the neutral request. Raises BrokerError: answer it; FrameError: close the connection."""
        ...

    def encode_response(self, header: Header, response: Any) -> EncodedFrame:
        """Return the frame that answers `header`. Raises BrokerError: answer that instead."""
        ...

    def with_throttle(self, header: Header, frame: bytes, throttle_ms: int) -> bytes:
        """Return the first bytes of a response frame, which `encode_response` or `encode_error` encoded, with the time.

        The client is to send its next request after `throttle_ms`. Responses that cannot say so are left as they are.
        """
        ...

    def encode_error(self, header: Header, request: Any, code: ErrorCode, message: str) -> EncodedFrame:
        """Return the frame that refuses `request` (None: not decoded) as a whole.

        Raises FrameError where the API has no response: close the connection.
        """
        ...


KAFKA: Final = cast(Dialect, kafka)


def dialect_of(first_byte: int) -> Dialect:
    """Return the dialect of frames that begin with `first_byte`: the native one for its magic, else Kafka's."""
    return _native() if first_byte == NATIVE_MAGIC else KAFKA


@cache
def _native() -> Dialect:
    # Late: most brokers have no native clients, and a start would wait 5 ms for the codec and msgpack.
    from barnabas.protocol.native import dialect as native

    return cast(Dialect, native)
