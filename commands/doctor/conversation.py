"""One connection of the doctor: blocking with timeouts, in the versions that broker and client share.

When the listener's security protocol is not the client's, the error contains the protocol that a second connection
found there.
"""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from types import TracebackType
from typing import Final, Self, TypeVar

from barnabas.clients.addresses import Address
from barnabas.clients.network.versions import VersionRanges, version_of
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
from barnabas.protocol.kafka.client_codec import read_answer, request_frame
from barnabas.protocol.messages.cluster.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.groups.describe_groups import DescribedGroup, DescribeGroupsRequest
from barnabas.protocol.messages.security.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from barnabas.protocol.messages.topics.metadata import MetadataRequest, MetadataResponse
from barnabas.protocol.wire.structures import Request, Struct

MAX_ANSWER_BYTES = 16 * 1024 * 1024
_CLIENT_ID: Final = b"barnabas-doctor"
_GREETING: Final = 0
"""The version of ApiVersions that every broker answers."""

_TOPIC_OPERATIONS: Final = 8
"""The first version of Metadata with authorized operations."""

_CLUSTER_OPERATIONS: Final = 10
"""The last one with those on the cluster."""

_GROUP_OPERATIONS: Final = 3
"""The first version of DescribeGroups with authorized operations."""

_TLS_ALERT = 0x15
_TLS_SPOKEN = "it speaks TLS: set security.protocol to SSL or SASL_SSL"
_NO_MECHANISM = "NONE"
"""The name of no mechanism: the broker refuses it and lists its own."""

S = TypeVar("S", bound=Struct)


class Conversation:
    """Call `secure` first if the settings have TLS, then `greet`, which determines the versions.

    Methods raise NoAnswerError and DecodeError.
    """

    def __init__(self, address: Address, settings: ConnectionSettings) -> None:
        """Connect."""
        self._address = address
        self._settings = settings
        self._connection = connect(address, settings.timeout_s)
        self._served: VersionRanges = {}
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

    def greet(self) -> VersionRanges:
        """Exchange ApiVersions; return the versions of each API that the broker serves."""
        try:
            return self._greet()
        except (NoAnswerError, DecodeError) as fault:
            if self._settings.context is None and not isinstance(fault.__cause__, TimeoutError):
                self._ensure_no_tls()
            raise

    def sasl_handshake(self, mechanism: str) -> SaslHandshakeResponse:
        """Request a mechanism."""
        return self._ask(SaslHandshakeRequest(mechanism=mechanism))

    def sasl_authenticate(self, message: bytes) -> SaslAuthenticateResponse:
        """Send one message of the mechanism."""
        return self._ask(SaslAuthenticateRequest(auth_bytes=message))

    def cluster(self) -> MetadataResponse:
        """Request Metadata without topics."""
        try:
            return self._ask(MetadataRequest.of_names(()))
        except NoAnswerError as closed:
            if self._settings.security.mechanism is None:
                self._ensure_no_login(closed)
            raise

    def partitions_without_leader(self) -> list[str]:
        """Request Metadata of all topics that this client may see; return partitions without a leader."""
        found = self._ask(MetadataRequest.of_names(None))
        return [
            f"{topic.topic_name}-{each.partition}"
            for topic in found.topics
            for each in topic.partitions
            if each.leader < 0
        ]

    def access(self, topics: Sequence[str]) -> MetadataResponse | None:
        """Request Metadata with the authorized operations on the cluster and on topics; None: the broker is too old."""
        request = MetadataRequest.of_names(topics)
        request.include_cluster_operations = request.include_topic_operations = True
        version = version_of(request.api_key, self._served, _CLUSTER_OPERATIONS)
        return None if version is None or version < _TOPIC_OPERATIONS else self._exchange(request, version)

    def group_access(self, groups: Sequence[str]) -> Sequence[DescribedGroup]:
        """Request groups with the authorized operations; empty if the broker is too old for that."""
        request = DescribeGroupsRequest(groups=groups, include_authorized_operations=True)
        # Version 3, in which an unknown group is no error: a client may be about to create it.
        version = version_of(request.api_key, self._served, _GROUP_OPERATIONS)
        return () if not groups or version != _GROUP_OPERATIONS else self._exchange(request, version).groups

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._connection.close()

    def _greet(self) -> VersionRanges:
        answer = self._exchange(ApiVersionsRequest(), _GREETING)
        if answer.error is not ErrorCode.NONE:
            raise DecodeError(f"ApiVersions was answered with error {answer.error.name}")
        self._served = answer.ranges
        return self._served

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

    def _ask(self, request: Request[S]) -> S:
        """Send a request in the highest version that both sides have, and return the answer."""
        version = version_of(request.api_key, self._served)
        if version is None:
            raise NoAnswerError(f"but the broker there serves no version of {request.api_key.name} that clients have")
        return self._exchange(request, version)

    def _exchange(self, request: Request[S], version: int) -> S:
        """Send a request and return the answer."""
        self._correlation_id += 1
        frame = request_frame(version, self._correlation_id, _CLIENT_ID, request)
        try:
            self._connection.sendall(frame)
            prefix = self._read(SIZE_PREFIX)
            size = int.from_bytes(prefix, "big", signed=True)
            if not 0 < size <= MAX_ANSWER_BYTES:
                spoken = _TLS_SPOKEN if prefix[0] == _TLS_ALERT else "its answer starts with " + repr(prefix)
                raise NoAnswerError(f"but the server there does not speak Kafka's protocol ({spoken})")
            answer = self._read(size)
        except TimeoutError as error:
            raise NoAnswerError(
                f"but the server there does not answer within {self._settings.timeout_s:g} s"
            ) from error
        except ssl.SSLError as error:
            raise refused_after_handshake(self._address, error, self._settings) from error
        except OSError as error:
            raise NoAnswerError(f"but the server there breaks the connection ({error.strerror or error})") from error
        return read_answer(type(request), version, self._correlation_id, memoryview(answer))

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
