"""One TCP connection to one broker, with pipelined requests; each response resolves the future of its request.

An asyncio.BufferedProtocol: small responses are read through one buffer and copied out of it. A response that does not
fit is received into a buffer of its own, which the caller keeps, so fetched batches are never copied here. Responses of
1 MiB cost 0.25 CPU s/GB this way, 0.5 (uvloop) to 1.0 (asyncio) with streams; small ones cost the same.

The broker answers a connection's requests in order, so a response belongs to the oldest waiting request; its
correlation id must agree. For the same reason a request without a response in time blocks all later ones: the
connection is then closed, and every waiting request fails.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from barnabas.clients.addresses import Address
from barnabas.clients.errors import (
    BrokerConnectionError,
    BrokerTimeoutError,
    ClientError,
    ClosedError,
    ProtocolViolationError,
    RefusedError,
)
from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.framing import SIZE_PREFIX, frame_size
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.cluster.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.native import codec

RECEIVE_BUFFER_BYTES = 64 * 1024
"""Responses up to this size are read through the shared buffer."""

MAX_CORRELATION_ID = (1 << 31) - 1

CLIENT_NAME = "barnabas-python"


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """The part of a client's configuration that concerns a connection."""

    client_id: str
    client_version: str
    connect_timeout_ms: int
    request_timeout_ms: int
    max_frame_bytes: int


@dataclass(slots=True)
class _Waiting:
    """A request without a response yet. `deadline` is the loop's time."""

    api: ApiKey
    correlation_id: int
    deadline: float
    timeout_ms: int
    future: asyncio.Future[Any]


class Connection(asyncio.BufferedProtocol):
    """Open it with `Connection.open`. Call every method in the event loop's thread."""

    def __init__(self, address: Address, settings: ConnectionSettings, loop: asyncio.AbstractEventLoop) -> None:
        self.address = address
        self.writable = True
        """False while the transport's write buffer is above its limit; `on_writable` is called when that ends."""
        self.on_writable: Callable[[], None] | None = None
        self.on_closed: Callable[[Connection], None] | None = None
        self._settings = settings
        self._loop = loop
        self._transport: asyncio.Transport | None = None
        self._hello: ApiVersionsResponse | None = None
        self._apis: frozenset[int] = frozenset({ApiKey.API_VERSIONS})
        self._peer_max_frame_bytes = settings.max_frame_bytes
        self._waiting: deque[_Waiting] = deque()
        self._next_correlation_id = 0
        self._timer: asyncio.TimerHandle | None = None
        self._timer_deadline = 0.0
        self._closed_by: ClientError | None = None
        self._gone = loop.create_future()
        self._buffer = bytearray(RECEIVE_BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._start = 0  # of the bytes in _buffer that are not parsed yet
        self._end = 0
        self._large: memoryview | None = None  # the large frame that is being received, without its size
        self._large_filled = 0

    @classmethod
    async def open(cls, address: Address, settings: ConnectionSettings) -> Connection:
        """Connect and exchange ApiVersions. Raises BrokerConnectionError, naming the address and what to check."""
        loop = asyncio.get_running_loop()
        connection = cls(address, settings, loop)
        try:
            async with asyncio.timeout(settings.connect_timeout_ms / 1000):
                await loop.create_connection(lambda: connection, address.host, address.port)
                await connection._greet()
        except BaseException as error:
            connected = connection._transport is not None
            connection.close()
            await connection.wait_closed()
            if isinstance(error, TimeoutError) and connected:
                raise _no_greeting(address, settings) from error
            if isinstance(error, OSError) and not isinstance(error, BrokerConnectionError):
                raise _cannot_connect(address, settings, error) from error
            raise
        return connection

    @property
    def closed(self) -> bool:
        """Whether the connection is closed or closing."""
        return self._closed_by is not None

    @property
    def node_id(self) -> int:
        """The broker's node id, from its greeting."""
        return -1 if self._hello is None else self._hello.node_id

    @property
    def hello(self) -> ApiVersionsResponse:
        """The broker's greeting."""
        if self._hello is None:
            raise ClosedError(f"{self.address} has not greeted yet")
        return self._hello

    def request(self, api: ApiKey, request: Any, *, timeout_ms: int | None = None) -> asyncio.Future[Any]:
        """Send `request` now and return the future of its neutral response.

        The future fails with BrokerConnectionError when the connection is lost, BrokerTimeoutError without a response
        within `timeout_ms` (default: request_timeout_ms), RefusedError when the broker refuses the whole request.
        Raises ClosedError or BrokerConnectionError if nothing was sent, RefusedError if the broker does not serve it.
        """
        waiting = _Waiting(
            api,
            self._send(api, request),
            0.0,
            timeout_ms or self._settings.request_timeout_ms,
            self._loop.create_future(),
        )
        waiting.deadline = self._loop.time() + waiting.timeout_ms / 1000
        self._waiting.append(waiting)
        if self._timer is None or waiting.deadline < self._timer_deadline:
            self._arm_timer(waiting.deadline)
        return waiting.future

    def serves(self, api: ApiKey) -> bool:
        """Whether the broker serves this API in this client's version."""
        return api in self._apis

    def send_without_answer(self, api: ApiKey, request: Any) -> None:
        """Send a request that the broker does not answer (produce with acks=0). Raises as `request` does."""
        self._send(api, request)

    def close(self, reason: ClientError | None = None) -> None:
        """Close the socket and fail waiting requests with `reason` (default: ClosedError). Idempotent."""
        if self._closed_by is None:
            self._closed_by = reason or ClosedError(f"the connection to {self.address} was closed by this client")
        if self._transport is not None:
            self._transport.abort()
        self._fail_waiting(self._closed_by)

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
            self._closed_by = BrokerConnectionError(self._lost_sentence(exc))
        self._fail_waiting(self._closed_by)
        self._transport = None
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
        self.writable = False

    def resume_writing(self) -> None:
        """Call `on_writable`."""
        self.writable = True
        if self.on_writable is not None:
            self.on_writable()

    def get_buffer(self, sizehint: int) -> memoryview:
        """Return the buffer for the next bytes: the rest of a large frame, or the free end of the shared buffer."""
        if self._large is not None:
            return self._large[self._large_filled :]
        if self._end == len(self._buffer):
            remaining = self._end - self._start  # less than a frame, and _parse has seen that the frame fits
            self._buffer[:remaining] = self._buffer[self._start : self._end]
            self._start, self._end = 0, remaining
        return self._view[self._end :]

    def buffer_updated(self, nbytes: int) -> None:
        """Take in `nbytes` received into the last buffer."""
        try:
            if self._large is not None:
                self._large_filled += nbytes
                if self._large_filled == len(self._large):
                    frame, self._large = self._large, None
                    self._answer(frame)
            else:
                self._end += nbytes
                self._parse()
        except DecodeError as error:
            self._violation(str(error))

    def _parse(self) -> None:
        """Take all whole frames out of the shared buffer, and start receiving a large one."""
        while self._end - self._start >= SIZE_PREFIX and self._closed_by is None:
            size = frame_size(self._buffer, self._start, self._settings.max_frame_bytes)
            begin = self._start + SIZE_PREFIX
            if begin + size <= self._end:
                self._start = begin + size
                self._answer(memoryview(bytes(self._view[begin : begin + size])))
            elif SIZE_PREFIX + size > len(self._buffer):
                received = self._end - begin
                self._large = memoryview(bytearray(size))
                self._large[:received] = self._view[begin : self._end]
                self._large_filled = received
                self._start = self._end = 0
                return
            else:
                return
        if self._start == self._end:
            self._start = self._end = 0

    def _answer(self, frame: memoryview) -> None:
        """Resolve the request that this frame answers."""
        header = codec.read_response(frame)
        if not self._waiting:
            raise DecodeError(f"an answer with correlation_id={header.correlation_id}, and no request waits for one")
        waiting = self._waiting[0]
        if header.correlation_id != waiting.correlation_id or header.api != waiting.api:
            raise DecodeError(
                f"an answer to api={header.api} correlation_id={header.correlation_id} where "
                f"api={int(waiting.api)} correlation_id={waiting.correlation_id} was expected"
            )
        self._waiting.popleft()
        if waiting.future.done():  # cancelled by its caller
            return
        if header.error is not ErrorCode.NONE:
            reason = header.message or "the broker gave no reason"
            waiting.future.set_exception(RefusedError(header.error, f"{waiting.api.label} at {self.address}: {reason}"))
            return
        try:
            response = codec.decode_response(header)
        except DecodeError as error:
            waiting.future.set_exception(self._violation(f"{waiting.api.label}: {error}"))
            return
        waiting.future.set_result(response)

    def _send(self, api: ApiKey, request: Any) -> int:
        """Write the request's frame and return its correlation id."""
        if self._closed_by is not None or self._transport is None:
            raise self._closed_by or ClosedError(f"not connected to {self.address}")
        if self._transport.is_closing():
            # The peer has closed, and connection_lost is due. asyncio's writelines fails here from Python 3.12 on.
            raise BrokerConnectionError(self._lost_sentence(None))
        if api not in self._apis:
            raise RefusedError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"the broker at {self.address} does not serve {api.label} in this client's version",
            )
        correlation_id = self._next_correlation_id
        buffers = codec.encode_request(api, correlation_id, self._settings.client_id, request)
        size = sum(map(len, buffers)) - SIZE_PREFIX
        if size > self._peer_max_frame_bytes:
            raise RefusedError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"the request has {size} bytes, and the broker at {self.address} takes {self._peer_max_frame_bytes} "
                "(socket.request.max.bytes)",
            )
        self._next_correlation_id = 0 if correlation_id == MAX_CORRELATION_ID else correlation_id + 1
        if len(buffers) == 1:
            self._transport.write(buffers[0])
        else:
            self._transport.writelines(buffers)
        return correlation_id

    async def _greet(self) -> None:
        """Exchange ApiVersions and keep the APIs that the broker serves."""
        hello = ApiVersionsRequest(CLIENT_NAME, self._settings.client_version)
        try:
            self._hello = await self.request(ApiKey.API_VERSIONS, hello, timeout_ms=self._settings.connect_timeout_ms)
        except RefusedError as error:
            raise BrokerConnectionError(f"{self.address} refused the greeting: {error}") from error
        self._apis = frozenset(
            entry.api for entry in self._hello.apis if entry.min_version <= codec.VERSION <= entry.max_version
        )
        self._peer_max_frame_bytes = self._hello.max_frame_bytes

    def _violation(self, reason: str) -> ProtocolViolationError:
        """Close the connection: after broken framing, later bytes of the peer cannot be trusted."""
        error = ProtocolViolationError(
            f"{self.address} does not speak Barnabas's native dialect as expected ({reason}); the connection is closed"
        )
        self.close(error)
        return error

    def _lost_sentence(self, cause: Exception | None) -> str:
        how = "closed by the broker" if cause is None else _reason(cause)
        if self._hello is None:
            return (
                f"{self.address} closed the connection before it answered the greeting ({how}); "
                "check that a Barnabas broker listens there, with its native dialect"
            )
        return (
            f"the connection to {self.address} was lost ({how}) with {len(self._waiting)} requests unanswered; "
            "check that the broker still runs"
        )

    def _fail_waiting(self, reason: ClientError) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting_requests, self._waiting = self._waiting, deque()
        for waiting in waiting_requests:
            if not waiting.future.done():
                waiting.future.set_exception(_copy(reason))

    def _arm_timer(self, deadline: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_deadline = deadline
        self._timer = self._loop.call_at(deadline, self._check_deadlines)

    def _check_deadlines(self) -> None:
        self._timer = None
        if not self._waiting:
            return
        first = min(self._waiting, key=lambda waiting: waiting.deadline)
        if first.deadline > self._loop.time():
            self._arm_timer(first.deadline)
            return
        self.close(
            BrokerTimeoutError(
                f"{self.address} did not answer {first.api.label} within {first.timeout_ms} ms; "
                "the connection is closed, and the request may have been carried out"
            )
        )


def _cannot_connect(address: Address, settings: ConnectionSettings, error: OSError) -> BrokerConnectionError:
    if isinstance(error, TimeoutError):
        return BrokerConnectionError(
            f"no connection to {address} within connect_timeout_ms={settings.connect_timeout_ms}: "
            "check the address and that no firewall drops the packets"
        )
    return BrokerConnectionError(
        f"cannot connect to {address}: {_reason(error)}; check that a Barnabas broker listens there"
    )


def _no_greeting(address: Address, settings: ConnectionSettings) -> BrokerConnectionError:
    return BrokerConnectionError(
        f"{address} takes connections, but did not answer the greeting within "
        f"connect_timeout_ms={settings.connect_timeout_ms}: check that a Barnabas broker listens there and is not stuck"
    )


def _copy(error: ClientError) -> ClientError:
    """Copy the exception for each future: a shared one would collect all their tracebacks."""
    if type(error) in (BrokerConnectionError, BrokerTimeoutError, ClosedError, ProtocolViolationError):
        return type(error)(*error.args)
    return error


def _reason(error: BaseException) -> str:
    """The operating system's error text, or the exception's."""
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return str(text)
