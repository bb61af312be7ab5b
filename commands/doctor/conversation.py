"""One connection of the doctor: blocking with timeouts, by Kafka's protocol or else the native one."""

from __future__ import annotations

import socket
from types import TracebackType
from typing import Any, NamedTuple, Self

from barnabas import __version__
from barnabas.clients.addresses import Address
from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.framing import SIZE_PREFIX
from barnabas.protocol.kafka import client_requests
from barnabas.protocol.kafka.client_requests import ClusterView
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.cluster.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.topics.metadata import MetadataRequest
from barnabas.protocol.native import codec

CLIENT_ID = "barnabas-doctor"
MAX_ANSWER_BYTES = 16 * 1024 * 1024
KAFKA, NATIVE = "kafka", "native"
_TLS_ALERT = 0x15


class NoAnswerError(Exception):
    """The second half of a sentence, "but ...", with the reason for a missing answer."""


class Hello(NamedTuple):
    """The dialect, and the versions of each API."""

    dialect: str
    versions: dict[int, tuple[int, int]]


class Conversation:
    """Call `greet` first: it determines the dialect. Methods raise NoAnswerError and DecodeError."""

    def __init__(self, address: Address, connection: socket.socket, timeout_s: float) -> None:
        self._address = address
        self._connection = connection
        self._timeout_s = timeout_s
        self._dialect = KAFKA
        self._correlation_id = 0

    @classmethod
    def open(cls, address: Address, timeout_s: float) -> Self:
        """Connect."""
        return cls(address, _connect(address, timeout_s), timeout_s)

    @property
    def peer_host(self) -> str:
        """The IP address at the other end."""
        return str(self._connection.getpeername()[0])

    def greet(self) -> Hello:
        """Exchange ApiVersions by Kafka's protocol; if that fails, by the native one on a new connection."""
        try:
            answer = self._ask(client_requests.api_versions_request(self._next_id(), CLIENT_ID))
            return Hello(KAFKA, client_requests.api_versions_answer(self._correlation_id, answer))
        except (NoAnswerError, DecodeError) as not_kafka:
            self._connection.close()
            self._connection = _connect(self._address, self._timeout_s)
            self._dialect = NATIVE
            try:
                return self._greet_natively()
            except (NoAnswerError, DecodeError):
                raise not_kafka from None

    def cluster(self) -> ClusterView:
        """Request Metadata without topics."""
        if self._dialect == KAFKA:
            answer = self._ask(client_requests.metadata_request(self._next_id(), CLIENT_ID))
            return client_requests.metadata_answer(self._correlation_id, answer)
        found = self._ask_natively(ApiKey.METADATA, MetadataRequest([]))
        return ClusterView(found.cluster_id, tuple(found.brokers))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._connection.close()

    def _greet_natively(self) -> Hello:
        found = self._ask_natively(ApiKey.API_VERSIONS, ApiVersionsRequest(CLIENT_ID, __version__))
        return Hello(NATIVE, {int(each.api): (each.min_version, each.max_version) for each in found.apis})

    def _ask_natively(self, api: ApiKey, request: object) -> Any:
        answer = self._ask(b"".join(codec.encode_request(api, self._next_id(), CLIENT_ID, request)))
        header = codec.read_response(memoryview(answer))
        if header.error != ErrorCode.NONE:
            raise DecodeError(f"{api.name} was answered with error {int(header.error)}")
        return codec.decode_response(header)

    def _next_id(self) -> int:
        self._correlation_id += 1
        return self._correlation_id

    def _ask(self, frame: bytes) -> bytes:
        """Send a frame and return the answer, without its size."""
        try:
            self._connection.sendall(frame)
            prefix = self._read(SIZE_PREFIX)
            size = int.from_bytes(prefix, "big", signed=True)
            if not 0 < size <= MAX_ANSWER_BYTES:
                spoken = "it speaks TLS" if prefix[0] == _TLS_ALERT else "its answer starts with " + repr(prefix)
                raise NoAnswerError(f"but the server there does not speak Kafka's protocol ({spoken})")
            return self._read(size)
        except TimeoutError as error:
            raise NoAnswerError(f"but the server there does not answer within {self._timeout_s:g} s") from error
        except OSError as error:
            raise NoAnswerError(f"but the server there breaks the connection ({error.strerror or error})") from error

    def _read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            chunk = self._connection.recv(size - len(data))
            if not chunk:
                raise NoAnswerError("but the server there closes the connection after a request of Kafka's protocol")
            data += chunk
        return bytes(data)


def _connect(address: Address, timeout_s: float) -> socket.socket:
    try:
        return socket.create_connection((address.host, address.port), timeout_s)
    except TimeoutError as error:
        raise NoAnswerError(
            f"but there is no answer within {timeout_s:g} s (a firewall, or the host does not exist)"
        ) from error
    except ConnectionRefusedError as error:
        raise NoAnswerError("but nothing listens there (connection refused)") from error
    except (OSError, UnicodeError) as error:
        raise NoAnswerError(f"but connecting fails ({getattr(error, 'strerror', None) or error})") from error
