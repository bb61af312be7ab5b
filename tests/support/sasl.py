"""A connection with a SASL gate, without sockets: its frames, its clock and its end are the test's."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from types import SimpleNamespace
from typing import Any, cast

from kio.serial import entity_reader

from barnabas.broker.handlers.security.sasl import sasl_authenticate, sasl_handshake
from barnabas.broker.network.connection import Connection
from barnabas.broker.network.connection_registry import ConnectionRegistry
from barnabas.broker.network.dispatch import Dispatcher
from barnabas.broker.network.receive_memory import ReceiveMemory
from barnabas.broker.network.session import Session
from barnabas.broker.probes import BrokerProbes
from barnabas.broker.repeated_warnings import RepeatedWarnings
from barnabas.broker.security.sasl.failure_log import FailureLog
from barnabas.broker.security.sasl.gate import SaslGate
from barnabas.broker.security.sasl.listener import GateParts, SaslListener
from barnabas.broker.security.sasl.mechanisms import Mechanism
from barnabas.broker.security.sasl.unauthenticated import UnauthenticatedConnections
from barnabas.broker.security.sasl.work_queue import WorkQueue
from barnabas.config.listeners import Listener
from barnabas.protocol.framing import FrameLimit
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.cluster.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.messages.topics.metadata import MetadataResponse
from barnabas.protocol.sasl.exchange import SaslServer
from barnabas.protocol.sasl.plain import PlainServer
from barnabas.protocol.sasl.scram_keys import SCRAM_SHA_256, keys_of_password
from barnabas.protocol.sasl.scram_server import ScramServer, TokenLogin
from tests.support.kafka.kafka_wire import message_type, request_frame, schema
from tests.support.manual_loop import InlineExecutor, ManualLoop
from tests.support.native.native_frames import answer_fields, native_request

PASSWORDS = {"alice": "pencil", "bob": "bob's secret"}
DELAY_SECONDS = 0.1
MAX_RECEIVE_BYTES = 4096


class Pipe:
    """A transport that records what is written and whether it was closed."""

    def __init__(self) -> None:
        self.written = bytearray()
        self.closing = False

    def set_write_buffer_limits(self, high: int) -> None:
        assert high == 0

    def get_extra_info(self, name: str) -> Any:
        return {"peername": ("192.0.2.7", 5000), "sockname": ("192.0.2.1", 9092)}.get(name)

    def write(self, data: bytes) -> None:
        assert not self.closing
        self.written += data

    def writelines(self, parts: list[bytes]) -> None:
        self.write(b"".join(parts))

    def is_closing(self) -> bool:
        return self.closing

    def pause_reading(self) -> None: ...

    def resume_reading(self) -> None: ...

    def close(self) -> None:
        self.closing = True

    abort = close


class Users:
    """SCRAM's users are PLAIN's, and the token `token` is alice's, until 2 s from the start of the clock."""

    def __init__(self) -> None:
        self._keys = {
            name: keys_of_password(SCRAM_SHA_256, password, b"salt", 4096) for name, password in PASSWORDS.items()
        }
        self._token = TokenLogin(
            "alice", 1_002_000, lambda: keys_of_password(SCRAM_SHA_256, "hmac", b"other salt", 4096)
        )

    def keys(self, user: str) -> Any:
        return self._keys.get(user)

    def made_up(self, user: str) -> tuple[bytes, int]:
        return b"salt", 4096

    def token(self, token_id: str) -> TokenLogin | None:
        return self._token if token_id == "token" else None


def plain() -> SaslServer:
    """Begin an exchange of PLAIN."""
    return PlainServer(lambda user, password: PASSWORDS.get(user) == password)


def scram() -> SaslServer:
    """Begin an exchange of SCRAM-SHA-256."""
    return ScramServer(SCRAM_SHA_256, Users(), b"secret")


def _versions(session: Session, request: ApiVersionsRequest) -> ApiVersionsResponse:
    request.check()
    return ApiVersionsResponse(server="test", server_version="1", cluster_id="cluster", node_id=1, max_frame_bytes=1)


class GatedListener:
    """A listener with PLAIN and SCRAM-SHA-256, whose clock stands still until the test advances it."""

    def __init__(
        self,
        *,
        max_reauth_ms: int = 0,
        more: Mapping[str, Callable[[], SaslServer]] | None = None,
        executor: Executor | None = None,
        unauthenticated_max: int | None = None,
    ) -> None:
        self.loop = ManualLoop()
        self.probes = BrokerProbes()
        self.served: list[str] = []
        """The APIs of authenticated requests."""
        self.authenticated: list[str] = []
        exchanges = {"PLAIN": plain, "SCRAM-SHA-256": scram, **(more or {})}
        dispatcher = Dispatcher(
            {
                ApiKey.API_VERSIONS: _versions,
                ApiKey.METADATA: self._metadata,
                ApiKey.SASL_HANDSHAKE: sasl_handshake,
                ApiKey.SASL_AUTHENTICATE: sasl_authenticate,
            },
            self.probes,
            self.loop,
        )
        self.registry = cast(
            "ConnectionRegistry",
            SimpleNamespace(
                loop=self.loop,
                dispatcher=dispatcher,
                blocking_io=InlineExecutor(),
                probe=self.probes.connections,
                max_frame_bytes=64 << 20,
                bind_access=lambda session: None,
                turn_seconds=1.0,
                warnings=(warnings := RepeatedWarnings(self.loop)),
                memory=ReceiveMemory(64 << 20, self.loop, self.probes.connections, warnings),
                opened=lambda connection: None,
                closed=lambda connection: None,
            ),
        )
        self.listener = SaslListener(
            name="SECURE",
            parts=GateParts(
                loop=self.loop,
                serve=dispatcher.serve,
                unauthenticated=UnauthenticatedConnections(lambda: unauthenticated_max),
                work=WorkQueue(self.loop, executor or InlineExecutor()),
                failures=FailureLog(self.loop),
                probe=self.probes.authentications,
                wall_ms=self.loop.wall_ms,
                authenticated=lambda session: self.authenticated.append(str(session.principal)),
            ),
            mechanisms=lambda: {name: Mechanism(begin, lambda: max_reauth_ms) for name, begin in exchanges.items()},
            frame_limit=lambda: FrameLimit(MAX_RECEIVE_BYTES, "sasl.server.max.receive.size"),
            failure_delay_seconds=lambda: DELAY_SECONDS,
        )

    def _metadata(self, session: Session, request: Any) -> MetadataResponse:
        self.served.append(f"metadata as {session.principal}")
        return MetadataResponse(cluster_id="cluster", controller_id=1)

    def connect(self) -> GatedPeer:
        """Return a new connection."""
        return GatedPeer(self)


class GatedPeer:
    """A client's end of one connection."""

    def __init__(self, server: GatedListener) -> None:
        self.server = server
        self.loop = server.loop
        self.pipe = Pipe()
        session = Session(Listener("SECURE", "127.0.0.1", 0), "SASL_PLAINTEXT")
        self.connection = Connection(server.registry, session, SaslGate(server.listener))
        self.loop.run(lambda: self.connection.connection_made(cast("asyncio.BaseTransport", self.pipe)))
        self._correlation_id = 0

    def is_closed(self) -> bool:
        """Return whether the broker has closed the connection."""
        return self.pipe.closing

    def send(self, data: bytes) -> None:
        """Send bytes, and run the loop until nothing is due."""

        def feed() -> None:
            rest = memoryview(data)
            while rest and not self.pipe.closing:
                room = self.connection.get_buffer(-1)
                size = min(len(room), len(rest))
                room[:size] = rest[:size]
                rest = rest[size:]
                self.connection.buffer_updated(size)

        self.loop.run(feed)
        self.loop.settle()

    def received(self) -> list[bytes]:
        """Return the frames that were written since the last call, without their sizes."""
        frames, data = [], bytes(self.pipe.written)
        while data:
            (size,) = struct.unpack_from(">i", data)
            assert len(data) >= 4 + size
            frames.append(data[4 : 4 + size])
            data = data[4 + size :]
        self.pipe.written.clear()
        return frames

    def kafka_frame(self, api: str, version: int, **fields: Any) -> bytes:
        """Return a request of Kafka's protocol, encoded by kio."""
        self._correlation_id += 1
        kind = message_type(api, version, "request")
        return request_frame(kind(**fields), self._correlation_id)

    def kafka(self, api: str, version: int, **fields: Any) -> Any:
        """Send a request of Kafka's protocol; return the decoded answer, None if there is none yet."""
        self.send(self.kafka_frame(api, version, **fields))
        return self.kafka_answer(api, version)

    def kafka_answer(self, api: str, version: int) -> Any:
        """Return the only answer that has arrived, None if there is none."""
        frames = self.received()
        if not frames:
            return None
        (frame,) = frames
        kind = message_type(api, version, "response")
        header, size = entity_reader(kind.__header_schema__)(frame, 0)
        assert header.correlation_id == self._correlation_id
        answer, _ = entity_reader(kind)(frame[size:], 0)
        return answer

    def handshake(self, mechanism: str, version: int = 1) -> Any:
        """Send a SaslHandshake."""
        return self.kafka("sasl_handshake", version, mechanism=mechanism)

    def authenticate(self, message: bytes, version: int = 2) -> Any:
        """Send a SaslAuthenticate."""
        return self.kafka("sasl_authenticate", version, auth_bytes=message)

    def log_in(self, user: str = "alice", password: str = "pencil") -> Any:
        """Authenticate by PLAIN; return the answer to SaslAuthenticate."""
        assert self.handshake("PLAIN").error_code.value == 0
        return self.authenticate(f"\0{user}\0{password}".encode())

    def metadata(self) -> Any:
        """Send a Metadata request."""
        kio = schema("metadata", 4, "request")
        return self.kafka("metadata", 4, topics=(kio.MetadataRequestTopic(name="t"),), allow_auto_topic_creation=False)

    def native(self, api: ApiKey, **body: Any) -> dict[str, Any] | None:
        """Send a request of the native dialect; return the body of the answer, None if there is none yet."""
        self._correlation_id += 1
        self.send(native_request(api, body, correlation_id=self._correlation_id))
        return self.native_answer()

    def native_answer(self) -> dict[str, Any] | None:
        """Return the body of the only answer that has arrived, None if there is none."""
        frames = self.received()
        if not frames:
            return None
        (frame,) = frames
        *_, error, body = answer_fields(frame)
        assert error == 0, body
        found: dict[str, Any] = body
        return found

    def native_handshake(self, mechanism: str) -> dict[str, Any] | None:
        """Send a native sasl_handshake."""
        return self.native(ApiKey.SASL_HANDSHAKE, mechanism=mechanism)

    def native_authenticate(self, message: bytes) -> dict[str, Any] | None:
        """Send a native sasl_authenticate."""
        return self.native(ApiKey.SASL_AUTHENTICATE, auth_bytes=message)
