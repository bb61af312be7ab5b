"""One connection of the doctor: blocking with timeouts, by Kafka's protocol or else the native one.

When the listener's security protocol is not the client's, the error contains the protocol that a second connection
found there.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self

from barnabas import __version__
from barnabas.clients.addresses import Address
from barnabas.clients.security.settings import PLAINTEXT_SETTINGS
from barnabas.commands.doctor.connecting import (
    ConnectionSettings,
    connect,
    refused_after_handshake,
    secure,
    speaks_tls,
)
from barnabas.commands.doctor.steps import NoAnswerError, Step
from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.framing import SIZE_PREFIX
from barnabas.protocol.kafka import client_requests
from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.kafka.client.sasl import SASL_AUTHENTICATE, SASL_HANDSHAKE
from barnabas.protocol.kafka.client_requests import OPERATIONS_VERSION, AccessView, ClusterView
from barnabas.protocol.kafka.group_access_requests import (
    GROUPS_VERSION,
    GroupAccess,
    group_access_answer,
    group_access_request,
)
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.cluster.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.security.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from barnabas.protocol.messages.topics.metadata import MetadataRequest
from barnabas.protocol.native import codec
from barnabas.protocol.wire.structures import Struct

CLIENT_ID = "barnabas-doctor"
MAX_ANSWER_BYTES = 16 * 1024 * 1024
KAFKA, NATIVE = "kafka", "native"
_TLS_ALERT = 0x15
_TLS_SPOKEN = "it speaks TLS: set security.protocol to SSL or SASL_SSL"
_NO_MECHANISM = "NONE"
"""The name of no mechanism: the broker refuses it and lists its own."""


class Hello(NamedTuple):
    """The dialect, and the versions of each API."""

    dialect: str
    versions: dict[int, tuple[int, int]]


class Conversation:
    """Call `secure` first if the settings have TLS, then `greet`, which determines the dialect.

    Methods raise NoAnswerError and DecodeError.
    """

    def __init__(self, address: Address, settings: ConnectionSettings) -> None:
        """Connect."""
        self._address = address
        self._settings = settings
        self._connection = connect(address, settings.timeout_s)
        self._dialect = KAFKA
        self._correlation_id = 0

    @property
    def peer_host(self) -> str:
        """The IP address at the other end."""
        return str(self._connection.getpeername()[0])

    def secure(self) -> str:
        """Perform the TLS handshake; return what was negotiated, in words."""
        context = self._settings.context
        assert context is not None, "the settings have TLS"
        try:
            self._connection, description = secure(self._connection, self._address, context, self._settings)
        except NoAnswerError as fault:
            if not _is_certificate_fault(fault) and self._is_kafka_without_tls():
                raise NoAnswerError(
                    "but the listener there does not speak TLS: set security.protocol to "
                    f"{'SASL_PLAINTEXT' if self._settings.security.mechanism else 'PLAINTEXT or SASL_PLAINTEXT'}"
                ) from fault
            raise
        return description

    def greet(self) -> Hello:
        """Exchange ApiVersions by Kafka's protocol; if that fails, by the native one on a new connection."""
        try:
            return self._greet()
        except (NoAnswerError, DecodeError) as not_kafka:
            if self._settings.context is None and not isinstance(not_kafka.__cause__, TimeoutError):
                self._ensure_no_tls()
            if self._settings.security.mechanism is not None:
                raise
            self._connection.close()
            self._connection = connect(self._address, self._settings.timeout_s)
            self._dialect = NATIVE
            try:
                if self._settings.context is not None:
                    self.secure()
                return self._greet_natively()
            except (NoAnswerError, DecodeError):
                raise not_kafka from None

    def sasl_handshake(self, mechanism: str) -> SaslHandshakeResponse:
        """Request a mechanism."""
        answer: SaslHandshakeResponse = self._exchange(SASL_HANDSHAKE, SaslHandshakeRequest(mechanism=mechanism))
        return answer

    def sasl_authenticate(self, message: bytes) -> SaslAuthenticateResponse:
        """Send one message of the mechanism."""
        answer: SaslAuthenticateResponse = self._exchange(
            SASL_AUTHENTICATE, SaslAuthenticateRequest(auth_bytes=message)
        )
        return answer

    def cluster(self) -> ClusterView:
        """Request Metadata without topics."""
        if self._dialect == KAFKA:
            try:
                answer = self._ask(client_requests.metadata_request(self._next_id(), CLIENT_ID))
            except NoAnswerError as closed:
                if self._settings.security.mechanism is None:
                    self._ensure_no_login(closed)
                raise
            return client_requests.metadata_answer(self._correlation_id, answer)
        found = self._ask_natively(ApiKey.METADATA, MetadataRequest.of_names([]))
        return ClusterView(found.cluster_id, tuple(found.brokers))

    def partitions_without_leader(self) -> list[str]:
        """Request Metadata of all topics that this client may see; return partitions without a leader."""
        if self._dialect == KAFKA:
            answer = self._ask(client_requests.leaders_request(self._next_id(), CLIENT_ID))
            return client_requests.leaders_answer(self._correlation_id, answer)
        found = self._ask_natively(ApiKey.METADATA, MetadataRequest.of_names(None))
        return [
            f"{topic.name}-{each.partition}" for topic in found.topics for each in topic.partitions if each.leader < 0
        ]

    def access(self, hello: Hello, topics: Sequence[str]) -> AccessView | None:
        """Request the authorized operations on the cluster and on topics; None if the broker is too old for that."""
        low, high = hello.versions.get(ApiKey.METADATA, (1, 0))
        if self._dialect == NATIVE or not low <= OPERATIONS_VERSION <= high:
            return None
        answer = self._ask(client_requests.access_request(self._next_id(), CLIENT_ID, topics))
        return client_requests.access_answer(self._correlation_id, answer)

    def group_access(self, hello: Hello, groups: Sequence[str]) -> list[GroupAccess]:
        """Request the authorized operations on groups; empty if the broker is too old for that."""
        low, high = hello.versions.get(ApiKey.DESCRIBE_GROUPS, (1, 0))
        if not groups or self._dialect == NATIVE or not low <= GROUPS_VERSION <= high:
            return []
        answer = self._ask(group_access_request(self._next_id(), CLIENT_ID, groups))
        return group_access_answer(self._correlation_id, answer)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._connection.close()

    def _greet(self) -> Hello:
        answer = self._ask(client_requests.api_versions_request(self._next_id(), CLIENT_ID))
        return Hello(KAFKA, client_requests.api_versions_answer(self._correlation_id, answer))

    def _greet_natively(self) -> Hello:
        found = self._ask_natively(
            ApiKey.API_VERSIONS, ApiVersionsRequest(client=CLIENT_ID, client_version=__version__)
        )
        return Hello(NATIVE, {int(each.api): (each.min_version, each.max_version) for each in found.apis})

    def _ask_natively(self, api: ApiKey, request: object) -> Any:
        answer = self._ask(b"".join(codec.encode_request(api, self._next_id(), CLIENT_ID, request)))
        header = codec.read_response(memoryview(answer))
        if header.error != ErrorCode.NONE:
            raise DecodeError(f"{api.name} was answered with error {int(header.error)}")
        return codec.decode_response(header)

    def _is_kafka_without_tls(self) -> bool:
        settings = ConnectionSettings(PLAINTEXT_SETTINGS, None, self._settings.timeout_s)
        try:
            with Conversation(self._address, settings) as plain:
                plain._greet()
        except (NoAnswerError, DecodeError):
            return False
        return True

    def _ensure_no_tls(self) -> None:
        """Raise NoAnswerError if the listener speaks TLS."""
        if speaks_tls(self._address, self._settings.timeout_s):
            wanted = "SASL_SSL" if self._settings.security.mechanism else "SSL or SASL_SSL"
            raise NoAnswerError(
                f"but the listener there speaks TLS, and this client does not: set security.protocol to {wanted} in "
                "the client's configuration (--command-config)",
                Step.TLS,
            )

    def _ensure_no_login(self, closed: NoAnswerError) -> None:
        """Raise NoAnswerError if the listener offers SASL mechanisms."""
        try:
            with Conversation(self._address, self._settings) as probe:
                if self._settings.context is not None:
                    probe.secure()
                probe._greet()
                offered = probe.sasl_handshake(_NO_MECHANISM)
        except (NoAnswerError, DecodeError):
            return
        if offered.error is ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            raise NoAnswerError(
                "but the listener there requires a login: set security.protocol to "
                f"SASL_{self._settings.security.protocol}, sasl.mechanism to one that it offers "
                f"({', '.join(sorted(offered.mechanisms))}), and sasl.jaas.config in the client's configuration "
                "(--command-config)",
                Step.SASL_HANDSHAKE,
            ) from closed

    def _next_id(self) -> int:
        self._correlation_id += 1
        return self._correlation_id

    def _exchange(self, api: ClientApi, request: Struct) -> Any:
        """Send a request in the lowest version of this client, which every broker has, and return the answer."""
        answer = self._ask(api.frame(api.lowest, self._next_id(), CLIENT_ID, request))
        body = client_requests.answer_body(self._correlation_id, answer)
        return api.read(api.lowest, memoryview(answer)[body.position :])

    def _ask(self, frame: bytes) -> bytes:
        """Send a frame and return the answer, without its size."""
        try:
            self._connection.sendall(frame)
            prefix = self._read(SIZE_PREFIX)
            size = int.from_bytes(prefix, "big", signed=True)
            if not 0 < size <= MAX_ANSWER_BYTES:
                spoken = _TLS_SPOKEN if prefix[0] == _TLS_ALERT else "its answer starts with " + repr(prefix)
                raise NoAnswerError(f"but the server there does not speak Kafka's protocol ({spoken})")
            return self._read(size)
        except TimeoutError as error:
            raise NoAnswerError(
                f"but the server there does not answer within {self._settings.timeout_s:g} s"
            ) from error
        except ssl.SSLError as error:
            raise refused_after_handshake(self._address, error, self._settings) from error
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


def _is_certificate_fault(fault: NoAnswerError) -> bool:
    return isinstance(fault.__cause__, ssl.SSLCertVerificationError)
