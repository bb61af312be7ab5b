"""One TCP connection to one broker by Kafka's protocol, with pipelined requests.

Each response resolves the future of its request, which is sent in the highest version that both sides have.

The broker answers a connection's requests in order, so a response belongs to the oldest waiting request; its
correlation id must agree. For the same reason a request without a response in time blocks all later ones: the
connection is then closed, and every waiting request fails.

With SASL the client logs in after the greeting, and again before its session ends. While it does, requests are held
back: the broker refuses all others in the middle of a login.
"""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, cast

from barnabas.clients.addresses import Address
from barnabas.clients.errors import (
    AuthenticationError,
    BrokerConnectionError,
    BrokerTimeoutError,
    ClientError,
    ClosedError,
    ProtocolViolationError,
    RefusedError,
)
from barnabas.clients.errors import (
    reason_of as refusal_of,
)
from barnabas.clients.network.connection_errors import cannot_connect, copy_of, no_greeting, reason_of
from barnabas.clients.network.frame_receiver import FrameReceiver
from barnabas.clients.network.pending_requests import PendingRequest, PendingRequests
from barnabas.clients.network.throttle import Throttle
from barnabas.clients.network.versions import VersionRanges, version_of
from barnabas.clients.security.settings import PLAINTEXT_SETTINGS, SecuritySettings
from barnabas.clients.security.tls_context import TlsContextSource, tls_fault
from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.kafka.client_codec import read_answer, request_head
from barnabas.protocol.messages.api_key import OWN_KEYS, OWN_SOFTWARE, ApiKey
from barnabas.protocol.messages.cluster.api_versions import OWN_VERSIONS, ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.wire.structures import Answer, Request

MAX_CORRELATION_ID = (1 << 31) - 1

_COPIED_BYTES: Final = 16 * 1024
"""A longer body is sent as it is, after its header."""

REAUTHENTICATION_RANGE = (0.85, 0.95)
"""Part of a session's lifetime after which the client logs in again, as in Kafka's clients."""

logger = logging.getLogger(__name__)

Frame = list[bytes | memoryview]
"""The parts of a frame, in order."""


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """The part of a client's configuration that concerns a connection."""

    client_id: str
    client_version: str
    connect_timeout_ms: int
    request_timeout_ms: int
    max_frame_bytes: int
    security: SecuritySettings = PLAINTEXT_SETTINGS
    tls: TlsContextSource | None = None
    """Shared by the client's connections; None without TLS."""


class Connection(asyncio.BufferedProtocol):
    """Open it with `Connection.open`. Call every method in the event loop's thread."""

    def __init__(self, address: Address, settings: ConnectionSettings, loop: asyncio.AbstractEventLoop) -> None:
        self.address = address
        self.on_writable: Callable[[], None] | None = None
        self.on_closed: Callable[[Connection], None] | None = None
        self._settings = settings
        self._loop = loop
        self._is_paused = False
        self._throttle = Throttle(loop, self._write_now)
        self._throttle.on_end = self._became_writable
        self._transport: asyncio.Transport | None = None
        self._greeting: ApiVersionsResponse | None = None
        self._served: VersionRanges = {}
        self._client_id = settings.client_id.encode()
        self._pending = PendingRequests(loop, self._give_up)
        self._next_correlation_id = 0
        self._closed_by: ClientError | None = None
        self._gone = loop.create_future()
        self._frames = FrameReceiver(settings.max_frame_bytes, self._answer, "max_frame_bytes")
        self._held: deque[tuple[PendingRequest | None, Frame]] | None = None
        """Requests held back during a login, with their frames; None: no login runs."""
        self._is_answered = False
        """Whether the broker has answered a request beyond the greeting."""
        self._closes_when_idle = False
        self._idle: asyncio.Future[None] | None = None
        """Of a login that waits until no request waits for an answer."""
        self._login_due: asyncio.TimerHandle | None = None
        self._login: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, address: Address, settings: ConnectionSettings) -> Connection:
        """Connect, exchange ApiVersions, and log in.

        Raises BrokerConnectionError, naming the address and what to check, and AuthenticationError.
        """
        loop = asyncio.get_running_loop()
        connection = cls(address, settings, loop)
        is_open = False
        try:
            tls = None if settings.tls is None else await settings.tls.context()
            async with asyncio.timeout(settings.connect_timeout_ms / 1000):
                await loop.create_connection(lambda: connection, address.host, address.port, ssl=tls)
                is_open = True
                await connection._greet()
                if settings.security.mechanism is not None:
                    await connection._log_in(settings.security)
        except BaseException as error:
            connected = connection._transport is not None
            connection.close()
            if is_open:  # otherwise the loop has closed the socket; uvloop does that without connection_lost()
                await connection.wait_closed()
            if isinstance(error, TimeoutError) and connected:
                raise no_greeting(address, settings.connect_timeout_ms) from error
            if isinstance(error, ssl.SSLError):
                raise tls_fault(str(address), address.host, error, settings.security.tls) from error
            if isinstance(error, OSError) and not isinstance(error, BrokerConnectionError):
                raise cannot_connect(
                    address, settings.connect_timeout_ms, error, with_tls=settings.tls is not None
                ) from error
            raise
        return connection

    @property
    def writable(self) -> bool:
        """Whether requests leave now; otherwise `on_writable` is called when they do again.

        They wait while the transport's write buffer is above its limit, and while the broker throttles this client.
        """
        return not self._is_paused and not self._throttle.is_active

    @property
    def closed(self) -> bool:
        """Whether the connection is closed or closing."""
        return self._closed_by is not None

    @property
    def features(self) -> dict[str, int]:
        """The levels of the cluster's features, for example transaction.version."""
        found = () if self._greeting is None else self._greeting.finalized_features
        return {each.name: each.max_level for each in found}

    def request(
        self, request: Request[Answer], *, highest: int | None = None, timeout_ms: int | None = None
    ) -> asyncio.Future[Answer]:
        """Send `request` now, in a version of at most `highest`, and return the future of its answer.

        The future fails with BrokerConnectionError when the connection is lost, BrokerTimeoutError without a response
        within `timeout_ms` (default: request_timeout_ms), ProtocolViolationError for an answer that is not valid.
        Raises ClosedError or BrokerConnectionError if nothing was sent, RefusedError if the broker does not serve it.
        """
        waiting, buffers = self._encode(request, highest, timeout_ms or self._settings.request_timeout_ms)
        if self._held is not None:
            self._held.append((waiting, buffers))
        else:
            self._write(buffers)
            self._await(waiting)
        return waiting.future

    def version_of(self, api: ApiKey, highest: int | None = None) -> int | None:
        """Return the version in which requests of this API are sent; None if broker and client share none."""
        return version_of(api, self._served, highest)

    def send_without_answer(self, request: Any) -> None:
        """Send a request that the broker does not answer (produce with acks=0). Raises as `request` does."""
        _, buffers = self._encode(request, None, 0)
        if self._held is not None:
            self._held.append((None, buffers))
        else:
            self._write(buffers)

    def close(self, reason: ClientError | None = None) -> None:
        """Close the socket and fail waiting requests with `reason` (default: ClosedError). Idempotent."""
        if self._closed_by is None:
            self._closed_by = reason or ClosedError(f"the connection to {self.address} was closed by this client")
        self._frames.stop()
        if self._login_due is not None:
            self._login_due.cancel()
        if self._transport is not None:
            self._transport.abort()
        self._throttle.cancel()
        self._fail_waiting(self._closed_by)

    def close_when_idle(self) -> None:
        """Close the socket once no request waits for an answer."""
        self._closes_when_idle = True
        self._close_if_idle()

    def _note_idle(self) -> None:
        """Let a login begin that waits for the last answer, or close a connection that is not used any more."""
        if not self._pending and self._idle is not None and not self._idle.done():
            self._idle.set_result(None)
        self._close_if_idle()

    def _close_if_idle(self) -> None:
        if self._closes_when_idle and not self._pending and self._held is None:
            self.close()

    async def wait_closed(self) -> None:
        """Wait after close() until the socket is closed. A loop that ends before leaves it to the garbage collector."""
        if self._transport is not None:
            await asyncio.shield(self._gone)

    # called by asyncio

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast(asyncio.Transport, transport)
        if self._closed_by is not None:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail waiting requests."""
        if self._closed_by is None:
            if isinstance(exc, ssl.SSLError):
                self._closed_by = tls_fault(str(self.address), self.address.host, exc, self._settings.security.tls)
            else:
                self._closed_by = BrokerConnectionError(self._lost_sentence(exc))
        self._throttle.cancel()
        self._fail_waiting(self._closed_by)
        self._transport = None
        if self._login_due is not None:
            self._login_due.cancel()
        if not self._gone.done():
            self._gone.set_result(None)
        if self.on_closed is not None:
            self.on_closed(self)
        if self.on_writable is not None:
            self.on_writable()

    def eof_received(self) -> bool:
        """Close the connection."""
        return False

    def pause_writing(self) -> None:
        """Note that the transport's write buffer is above its limit."""
        self._is_paused = True

    def resume_writing(self) -> None:
        """Call `on_writable`."""
        self._is_paused = False
        self._became_writable()

    def _became_writable(self) -> None:
        if self.writable and self.on_writable is not None:
            self.on_writable()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer for the next bytes."""
        return self._frames.buffer()

    def buffer_updated(self, nbytes: int) -> None:
        """Take in `nbytes` received into the last buffer."""
        try:
            self._frames.received(nbytes)
        except DecodeError as error:
            self._violation(str(error))

    def _answer(self, frame: memoryview) -> None:
        """Resolve the request that this frame answers."""
        if not self._pending:
            raise DecodeError("an answer, and no request waits for one")
        waiting = self._pending.oldest()
        try:
            response = read_answer(waiting.asked, waiting.version, waiting.correlation_id, frame)
        except DecodeError as error:
            raise DecodeError(f"{waiting.api.label}: {error}") from error
        self._pending.remove_oldest()
        self._is_answered = self._is_answered or waiting.api is not ApiKey.API_VERSIONS
        throttle_ms: int = getattr(response, "throttle_ms", 0)
        if throttle_ms > 0:
            self._begin_throttle(throttle_ms)
        if not waiting.future.done():  # else cancelled by its caller
            waiting.future.set_result(response)
        self._note_idle()

    def _encode(self, request: Request[Any], highest: int | None, timeout_ms: int) -> tuple[PendingRequest, Frame]:
        """Return what waits for the answer, and the parts of the request's frame."""
        if self._closed_by is not None or self._transport is None:
            raise self._closed_by or ClosedError(f"not connected to {self.address}")
        if self._transport.is_closing():
            # The peer has closed, and connection_lost is due. asyncio's writelines fails here from Python 3.12 on.
            raise BrokerConnectionError(self._lost_sentence(None))
        api: ApiKey = request.api_key
        version = version_of(api, self._served, highest)
        if version is None:
            raise self._not_served(api)
        correlation_id = self._next_correlation_id
        waiting = PendingRequest(api, correlation_id, timeout_ms, self._loop.create_future(), version, type(request))
        buffers = self._frame(version, correlation_id, request)
        self._next_correlation_id = 0 if correlation_id == MAX_CORRELATION_ID else correlation_id + 1
        return waiting, buffers

    def _frame(self, version: int, correlation_id: int, request: Request[Any]) -> Frame:
        body = request.encode(version)
        is_flexible = version >= request.flexible_from
        head = request_head(request.api_key, version, correlation_id, self._client_id, len(body), is_flexible)
        return [head + body] if len(body) <= _COPIED_BYTES else [head, body]

    def _not_served(self, api: ApiKey) -> RefusedError:
        if api in OWN_KEYS and not any(key in OWN_KEYS for key in self._served):
            return RefusedError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"{api.label} needs a Barnabas broker; {self.address} is Apache Kafka or an old Barnabas",
            )
        low, high = self._served.get(api, (0, -1))
        served = f" in a version that this client has, only in {low} to {high}" if low <= high else ""
        return RefusedError(
            ErrorCode.UNSUPPORTED_VERSION, f"the broker at {self.address} does not serve {api.label}{served}"
        )

    def _write(self, buffers: Frame) -> None:
        """Write one frame, when the broker's throttle is over."""
        self._throttle.send(buffers)

    def _write_now(self, buffers: Frame) -> None:
        if self._transport is None or self._transport.is_closing():
            return  # while its frame was held back; the loss of the connection fails its request
        if len(buffers) == 1:
            self._transport.write(buffers[0])
        else:
            self._transport.writelines(buffers)

    def _await(self, waiting: PendingRequest) -> None:
        """Expect the answer to a request that was written."""
        self._pending.add(waiting, max(self._loop.time(), self._throttle.until))

    async def _log_in(self, security: SecuritySettings) -> None:
        """Authenticate, and arrange for the next time if the session has a limit."""
        from barnabas.clients.security.authentication import authenticate

        lifetime_ms = await authenticate(security, self._ask_in_login, str(self.address))
        if lifetime_ms > 0:
            part = random.uniform(*REAUTHENTICATION_RANGE)
            self._login_due = self._loop.call_later(part * lifetime_ms / 1000, self._begin_login, security)

    def _begin_login(self, security: SecuritySettings) -> None:
        self._login = self._loop.create_task(self._log_in_again(security), name="barnabas-login")

    async def _log_in_again(self, security: SecuritySettings) -> None:
        """Renew the session; close the connection if that fails.

        Answers come in order, so the login waits for those of requests that are on their way, which may take long: a
        join waits for the other members. Each has its own timeout.
        """
        self._held = deque()
        while self._pending:
            self._idle = self._loop.create_future()
            await self._idle
        try:
            async with asyncio.timeout_at(
                max(self._loop.time(), self._throttle.until) + self._settings.connect_timeout_ms / 1000
            ):
                await self._log_in(security)
        except (ClientError, TimeoutError) as error:
            if self._closed_by is None:
                logger.warning("the session at %s was not renewed: %s", self.address, error)
            if isinstance(error, ClientError):
                self.close(error)
            else:
                self.close(BrokerTimeoutError(f"{self.address} did not answer a login in time"))
            return
        except Exception as error:  # else every later request would be held back for ever
            logger.exception("the login at %s failed by an internal error", self.address)
            self.close(AuthenticationError(f"the login at {self.address} failed by an internal error: {error!r}"))
            return
        held, self._held = self._held, None
        for waiting, buffers in held or ():
            self._write(buffers)
            if waiting is not None:
                self._await(waiting)
        self._close_if_idle()

    async def _ask_in_login(self, request: Any) -> Any:
        waiting, buffers = self._encode(request, None, self._settings.connect_timeout_ms)
        self._write(buffers)
        self._await(waiting)
        return await waiting.future

    def _begin_throttle(self, throttle_ms: int) -> None:
        """Send nothing for this time; requests that were sent already are not served before either."""
        self._throttle.begin(throttle_ms)
        self._pending.postpone(self._throttle.until)

    async def _greet(self) -> None:
        """Exchange ApiVersions and keep the versions that the broker serves."""
        greeting = ApiVersionsRequest(client=OWN_SOFTWARE, client_version=self._settings.client_version)
        timeout_ms = self._settings.connect_timeout_ms
        self._served = {ApiKey.API_VERSIONS: OWN_VERSIONS}
        found: ApiVersionsResponse = await self.request(greeting, timeout_ms=timeout_ms)
        if found.error is ErrorCode.UNSUPPORTED_VERSION:  # an older broker
            found = await self.request(greeting, highest=0, timeout_ms=timeout_ms)
        if found.error is not ErrorCode.NONE:
            raise BrokerConnectionError(f"{self.address} refused the greeting: {refusal_of(found.error)}")
        self._greeting = found
        self._served = found.ranges

    def _violation(self, reason: str) -> ProtocolViolationError:
        """Close the connection: after broken framing, later bytes of the peer cannot be trusted."""
        error = ProtocolViolationError(
            f"{self.address} does not speak Kafka's protocol as expected ({reason}); the connection is closed"
        )
        self.close(error)
        return error

    def _lost_sentence(self, cause: Exception | None) -> str:
        how = "closed by the broker" if cause is None else reason_of(cause)
        if self._greeting is None:
            return (
                f"{self.address} closed the connection before it answered the greeting ({how}); "
                f"check that a broker listens there, and as {self._security()}"
            )
        check = "that the broker still runs"
        if not self._is_answered and self._settings.security.mechanism is None:
            check += f", and that its listener requires no login (security.protocol={self._security()})"
        return (
            f"the connection to {self.address} was lost ({how}) with unanswered requests ({len(self._pending)}); "
            f"check {check}"
        )

    def _security(self) -> str:
        return self._settings.security.protocol

    def _fail_waiting(self, reason: ClientError) -> None:
        waiting_requests = self._pending.clear()
        if self._held is not None:
            waiting_requests.extend(waiting for waiting, _ in self._held if waiting is not None)
            self._held = deque()
        for waiting in waiting_requests:
            if not waiting.future.done():
                waiting.future.set_exception(copy_of(reason))
        if self._idle is not None and not self._idle.done():
            self._idle.set_result(None)

    def _give_up(self, overdue: PendingRequest) -> None:
        """Close the connection: a request without an answer blocks all later ones."""
        self.close(
            BrokerTimeoutError(
                f"{self.address} did not answer {overdue.api.label} within {overdue.timeout_ms} ms; "
                "the connection is closed, and the request may have been carried out"
            )
        )
