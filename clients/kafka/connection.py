"""One connection to a broker by Kafka's protocol, with several requests in flight.

A broker answers a connection's requests in order, so an answer belongs to the oldest request in flight, and its
correlation id must agree. For the same reason a request without an answer in time blocks all later ones: the connection
is then closed, and every request in flight fails. A caller that is cancelled leaves the connection as it is; its answer
is dropped when it comes.

A login is not repeated on the connection.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Mapping
from typing import Any, Final, Self, TypeVar, cast

from barnabas import __version__
from barnabas.clients.addresses import Address
from barnabas.clients.config import ClientConfig
from barnabas.clients.errors import (
    BrokerConnectionError,
    BrokerTimeoutError,
    ClientError,
    ClosedError,
    ProtocolViolationError,
)
from barnabas.clients.network.connection_errors import copy_of
from barnabas.clients.network.frame_receiver import FrameReceiver
from barnabas.clients.network.pending_requests import PendingRequest, PendingRequests
from barnabas.clients.security.authentication import authenticate
from barnabas.clients.security.tls_context import TlsContextSource, tls_fault
from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.framing import SIZE_PREFIX
from barnabas.protocol.kafka.client.api import ClientApi, VersionRanges
from barnabas.protocol.kafka.client.api_versions import API_VERSIONS
from barnabas.protocol.kafka.client.sasl import SASL_AUTHENTICATE, SASL_HANDSHAKE
from barnabas.protocol.messages.api_key import OWN_SOFTWARE, ApiKey
from barnabas.protocol.messages.cluster.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.wire.structures import Request

MAX_ANSWER_BYTES: Final = 16 * 1024 * 1024
"""Far above any answer without records: a larger one is refused before memory is allocated."""

_MAX_CORRELATION_ID: Final = (1 << 31) - 1
_CORRELATION_ID_SIZE: Final = 4
_API_POSITION: Final = SIZE_PREFIX
_SOFTWARE: Final = ApiVersionsRequest(client=OWN_SOFTWARE, client_version=__version__)
_LOGIN: Final[Mapping[ApiKey, ClientApi]] = {each.key: each for each in (SASL_HANDSHAKE, SASL_AUTHENTICATE)}


Answer = TypeVar("Answer")


class KafkaConnection(asyncio.BufferedProtocol):
    """Open it by `open`. Its methods may run concurrently, all in the event loop's thread."""

    def __init__(
        self, address: Address, config: ClientConfig, loop: asyncio.AbstractEventLoop, max_answer_bytes: int
    ) -> None:
        self.address = address
        self._config = config
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._served: VersionRanges = {}
        self._pending = PendingRequests(loop, self._give_up)
        self._correlation_id = 0
        self._closed_by: ClientError | None = None
        self._frames = FrameReceiver(max_answer_bytes, self._answered, "the limit of this client")

    @classmethod
    async def open(
        cls,
        address: Address,
        config: ClientConfig,
        needed: Mapping[ApiKey, int] | None = None,
        purpose: str = "",
        *,
        tls: TlsContextSource | None = None,
        max_answer_bytes: int = MAX_ANSWER_BYTES,
    ) -> Self:
        """Connect, log in, and check that the broker serves the `needed` versions of APIs.

        `purpose` ends the sentence of the error otherwise. `tls`: the context that several connections share.
        Raises BrokerConnectionError, BrokerTimeoutError, AuthenticationError, ClientConfigError for TLS files;
        ProtocolViolationError if the broker does not serve a needed version.
        """
        timeout_s = config.connect_timeout_ms / 1000
        security = config.security
        loop = asyncio.get_running_loop()
        connection = cls(address, config, loop, max_answer_bytes)
        try:
            if tls is None and security.tls is not None:
                tls = TlsContextSource(security.tls)
            context = None if tls is None else await tls.context()
            async with asyncio.timeout(timeout_s):
                await loop.create_connection(lambda: connection, address.host, address.port, ssl=context)
        except TimeoutError as error:
            connection.close()
            raise BrokerTimeoutError(f"{address}: no connection within {timeout_s:g} s") from error
        except ssl.SSLError as error:
            raise tls_fault(str(address), address.host, error, security.tls) from error
        except OSError as error:
            raise BrokerConnectionError(f"{address}: {error.strerror or error}") from error
        except BaseException:
            connection.close()
            raise
        try:
            await connection._greet()
            connection._ensure_served(needed or {}, purpose)
            if security.mechanism is not None:
                await authenticate(security, connection._ask_in_login, str(address))
        except BaseException:
            connection.close()
            raise
        return connection

    @property
    def is_closed(self) -> bool:
        """Whether the connection is closed or closing."""
        return self._closed_by is not None or self._transport is None or self._transport.is_closing()

    def version_of(self, api: ClientApi, highest: int | None = None) -> int | None:
        """Return the version in which requests of this API are sent; None if the broker and this client share none.

        `highest` lowers this side's limit.
        """
        return api.version_at(self._served, highest)

    def close(self) -> None:
        """Close it. Requests in flight fail with ClosedError."""
        self._close(ClosedError(f"the connection to {self.address} was closed by this client"))

    async def request(
        self, api: ClientApi, request: Any, *, highest: int | None = None, timeout_ms: int | None = None
    ) -> Any:
        """Send a request in the highest version that both sides have, and return the answer.

        `timeout_ms`: by default request_timeout_ms. Raises BrokerConnectionError, BrokerTimeoutError, ClosedError;
        ProtocolViolationError for an answer that is not valid, and if the sides share no version.
        """
        version = self.version_of(api, highest)
        if version is None:
            low, high = self._served.get(api.key, (0, -1))
            serves = f"serves versions {low} to {high}" if low <= high else "does not serve it"
            raise ProtocolViolationError(
                f"{self.address}: {api.key.label} is needed in a version from {api.lowest} to "
                f"{api.highest if highest is None else highest}, and the broker {serves}"
            )
        return await self._exchange(api, version, request, timeout_ms)

    async def ask(self, frame: Callable[[int, str], bytes], read: Callable[[int, bytes], Answer]) -> Answer:
        """Send a request of a fixed version and return its answer.

        `frame` gets the correlation id and the client id, `read` the correlation id and the answer without its size.
        Raises as `request` does.
        """
        correlation_id = self._next_correlation_id()
        answer = await self._send(correlation_id, frame(correlation_id, self._config.client_id), None)
        try:
            return read(correlation_id, bytes(answer))
        except DecodeError as error:
            raise self._violation(error) from error

    # called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast(asyncio.Transport, transport)
        if self._closed_by is not None:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail requests in flight."""
        if isinstance(exc, ssl.SSLError):  # TLS 1.3 refuses a client's certificate after the handshake
            reason: ClientError = tls_fault(str(self.address), self.address.host, exc, self._config.security.tls)
        elif isinstance(exc, OSError):
            reason = BrokerConnectionError(f"{self.address}: {exc.strerror or exc}")
        else:
            reason = self._lost()
        self._close(reason)

    def eof_received(self) -> bool:
        """Close the connection."""
        return False

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer for the next bytes."""
        return self._frames.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        """Take in `nbytes` received into the last buffer."""
        try:
            self._frames.received(nbytes)
        except DecodeError as error:
            self._violation(error)

    def _answered(self, frame: memoryview) -> None:
        """Resolve the oldest request in flight."""
        if not self._pending:
            raise DecodeError("an answer, and no request is in flight")
        if len(frame) < _CORRELATION_ID_SIZE:
            raise DecodeError(f"an answer of {len(frame)} bytes")
        waiting = self._pending.oldest()
        found = int.from_bytes(frame[:_CORRELATION_ID_SIZE], "big", signed=True)
        if found != waiting.correlation_id:
            raise DecodeError(f"the answer has correlation id {found}, not {waiting.correlation_id}")
        self._pending.remove_oldest()
        if not waiting.future.done():  # else cancelled by its caller
            waiting.future.set_result(frame)

    async def _exchange(self, api: ClientApi, version: int, request: Any, timeout_ms: int | None = None) -> Any:
        correlation_id = self._next_correlation_id()
        frame = api.frame(version, correlation_id, self._config.client_id, request)
        answer = (await self._send(correlation_id, frame, timeout_ms))[_CORRELATION_ID_SIZE:]
        try:
            if api is API_VERSIONS and version and int.from_bytes(answer[:2], "big") == ErrorCode.UNSUPPORTED_VERSION:
                version = 0  # in which a broker answers that it does not have the requested one
            return api.read(version, answer)
        except DecodeError as error:
            raise self._violation(error) from error

    async def _send(self, correlation_id: int, frame: bytes, timeout_ms: int | None) -> memoryview:
        """Send a frame; return the answer without its size."""
        if self._closed_by is not None:
            raise copy_of(self._closed_by)
        if self._transport is None or self._transport.is_closing():
            raise self._lost()
        self._transport.write(frame)
        api = ApiKey(int.from_bytes(frame[_API_POSITION : _API_POSITION + 2], "big"))
        waiting = PendingRequest(
            api, correlation_id, timeout_ms or self._config.request_timeout_ms, self._loop.create_future(), 0, Request
        )
        self._pending.add(waiting, self._loop.time())
        answer: memoryview = await waiting.future
        return answer

    def _next_correlation_id(self) -> int:
        self._correlation_id = self._correlation_id % _MAX_CORRELATION_ID + 1
        return self._correlation_id

    async def _greet(self) -> None:
        served: ApiVersionsResponse = await self._exchange(API_VERSIONS, API_VERSIONS.highest, _SOFTWARE)
        if served.error is ErrorCode.UNSUPPORTED_VERSION:
            served = await self._exchange(API_VERSIONS, API_VERSIONS.lowest, _SOFTWARE)
        if served.error is not ErrorCode.NONE:
            raise self._violation(DecodeError(f"ApiVersions was answered with error {served.error}"))
        self._served = served.ranges

    def _ensure_served(self, needed: Mapping[ApiKey, int], purpose: str) -> None:
        for api, version in needed.items():
            low, high = self._served.get(api, (1, 0))
            if not low <= version <= high:
                raise ProtocolViolationError(
                    f"{self.address}: the broker does not serve version {version} of {api.label}, which {purpose}"
                )

    async def _ask_in_login(self, request: Any) -> Any:
        return await self.request(_LOGIN[request.api_key], request)

    def _violation(self, error: DecodeError) -> ClientError:
        """Close the connection to a peer that sent invalid bytes; return the error."""
        fault = ProtocolViolationError(f"{self.address}: {error}; is it a Kafka broker?")
        self._close(fault)
        return fault

    def _give_up(self, overdue: PendingRequest) -> None:
        """Close the connection: a request without an answer blocks all later ones."""
        self._close(BrokerTimeoutError(f"{self.address}: no answer within {overdue.timeout_ms / 1000:g} s"))

    def _lost(self) -> BrokerConnectionError:
        return BrokerConnectionError(f"{self.address}: the broker closed the connection")

    def _close(self, reason: ClientError) -> None:
        if self._closed_by is None:
            self._closed_by = reason
        self._frames.stop()
        if self._transport is not None:
            # Without TLS's closing handshake, which would outlive the event loop of a command.
            self._transport.abort()
        for waiting in self._pending.clear():
            if not waiting.future.done():
                waiting.future.set_exception(copy_of(reason))
