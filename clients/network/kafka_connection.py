"""One asyncio connection to a broker by Kafka's protocol, for requests that are sent one after the other."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Mapping
from typing import Any, Final, Self, TypeVar

from barnabas.clients.addresses import Address
from barnabas.clients.config import ClientConfig
from barnabas.clients.errors import BrokerConnectionError, BrokerTimeoutError, ProtocolViolationError
from barnabas.clients.security.authentication import authenticate
from barnabas.clients.security.tls_context import TlsContextSource, tls_fault
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.framing import SIZE_PREFIX
from barnabas.protocol.kafka import client_requests
from barnabas.protocol.messages.api_key import ApiKey

_MAX_ANSWER_BYTES: Final = 16 * 1024 * 1024
"""Far above any answer to these requests: it is refused before memory is allocated."""

Answer = TypeVar("Answer")

_LOGIN: Final[Mapping[ApiKey, tuple[Callable[[int, str, Any], bytes], Callable[[int, bytes], Any]]]] = {
    ApiKey.SASL_HANDSHAKE: (client_requests.sasl_handshake_request, client_requests.sasl_handshake_answer),
    ApiKey.SASL_AUTHENTICATE: (client_requests.sasl_authenticate_request, client_requests.sasl_authenticate_answer),
}
"""The frame of a request, and the reader of its answer."""


class KafkaConnection:
    """Open it by `open`. A lost or late answer closes it. Its methods may run concurrently."""

    def __init__(
        self, address: Address, config: ClientConfig, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._address = address
        self._config = config
        self._reader = reader
        self._writer = writer
        self._in_turn = asyncio.Lock()
        self._correlation_id = 0

    @classmethod
    async def open(cls, address: Address, config: ClientConfig, needed: Mapping[ApiKey, int], purpose: str) -> Self:
        """Connect, log in, and check that the broker serves the `needed` versions of APIs.

        `purpose` ends the sentence of the error otherwise. Raises BrokerConnectionError, BrokerTimeoutError,
        AuthenticationError; ProtocolViolationError if the broker does not serve one.
        """
        timeout_s = config.connect_timeout_ms / 1000
        security = config.security
        try:
            tls = None if security.tls is None else await TlsContextSource(security.tls).context()
            async with asyncio.timeout(timeout_s):
                reader, writer = await asyncio.open_connection(address.host, address.port, ssl=tls)
        except TimeoutError as error:
            raise BrokerTimeoutError(f"{address}: no connection within {timeout_s:g} s") from error
        except ssl.SSLError as error:
            raise tls_fault(str(address), address.host, error, security.tls) from error
        except OSError as error:
            raise BrokerConnectionError(f"{address}: {error.strerror or error}") from error
        connection = cls(address, config, reader, writer)
        try:
            await connection._ensure_served(needed, purpose)
            if security.mechanism is not None:
                await authenticate(security, connection._ask_in_login, str(address))
        except BaseException:
            connection.close()
            raise
        return connection

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called, or a request failed."""
        return self._writer.is_closing()

    def close(self) -> None:
        """Close it. Requests in flight fail with BrokerConnectionError."""
        # Without TLS's closing handshake, which would outlive the event loop of a command.
        self._writer.transport.abort()

    async def ask(self, frame: Callable[[int, str], bytes], read: Callable[[int, bytes], Answer]) -> Answer:
        """Send a request and return its answer.

        `frame` gets the correlation id and the client id, `read` the correlation id and the answer without its size.
        Raises BrokerConnectionError, BrokerTimeoutError, ProtocolViolationError.
        """
        async with self._in_turn:
            self._correlation_id += 1
            timeout_s = self._config.request_timeout_ms / 1000
            try:
                async with asyncio.timeout(timeout_s):
                    answer = await self._exchange(frame(self._correlation_id, self._config.client_id))
                return read(self._correlation_id, answer)
            except TimeoutError as error:
                self.close()
                raise BrokerTimeoutError(f"{self._address}: no answer within {timeout_s:g} s") from error
            except asyncio.IncompleteReadError as error:
                self.close()
                raise BrokerConnectionError(f"{self._address}: the broker closed the connection") from error
            except ssl.SSLError as error:  # TLS 1.3 refuses a client's certificate after the handshake
                self.close()
                raise tls_fault(str(self._address), self._address.host, error, self._config.security.tls) from error
            except OSError as error:
                self.close()
                raise BrokerConnectionError(f"{self._address}: {error.strerror or error}") from error
            except DecodeError as error:
                self.close()
                raise ProtocolViolationError(f"{self._address}: {error}; is it a Kafka broker?") from error
            except BaseException:  # cancelled: the answer that is still to come would be taken for the next one
                self.close()
                raise

    async def _ask_in_login(self, api: ApiKey, request: Any) -> Any:
        frame, read = _LOGIN[api]
        return await self.ask(lambda number, client_id: frame(number, client_id, request), read)

    async def _exchange(self, frame: bytes) -> bytes:
        self._writer.write(frame)
        await self._writer.drain()
        size = int.from_bytes(await self._reader.readexactly(SIZE_PREFIX), "big", signed=True)
        if not 0 < size <= _MAX_ANSWER_BYTES:
            raise DecodeError(f"an answer of {size} bytes")
        return await self._reader.readexactly(size)

    async def _ensure_served(self, needed: Mapping[ApiKey, int], purpose: str) -> None:
        versions = await self.ask(client_requests.api_versions_request, client_requests.api_versions_answer)
        for api, version in needed.items():
            low, high = versions.get(api, (1, 0))
            if not low <= version <= high:
                raise ProtocolViolationError(
                    f"{self._address}: the broker does not serve version {version} of {api.label}, which {purpose}"
                )
