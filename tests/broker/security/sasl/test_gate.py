"""The gate of a SASL listener: Kafka's states, answers and delays, for both dialects."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from barnabas.broker.security.sasl.unauthenticated import CROWDED_OUT
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.sasl.scram_client import ScramClient
from barnabas.protocol.sasl.scram_keys import SCRAM_SHA_256
from tests.support.native.native_frames import native_request
from tests.support.sasl import DELAY_SECONDS, MAX_RECEIVE_BYTES, GatedListener, GatedPeer

DELAY_MS = round(DELAY_SECONDS * 1000)


@pytest.fixture
def server() -> Iterator[GatedListener]:
    listener = GatedListener()
    yield listener
    listener.loop.close()


@pytest.fixture
def peer(server: GatedListener) -> GatedPeer:
    return server.connect()


def versions(peer: GatedPeer, version: int = 3, name: str = "test") -> Any:
    return peer.kafka("api_versions", version, client_software_name=name, client_software_version="1")


def ends_after_the_delay(peer: GatedPeer, api: str = "sasl_authenticate", version: int = 2) -> Any:
    """Return the answer with which the connection ends, None without one; neither comes before the delay is over."""
    assert not peer.received()
    peer.loop.pass_time(DELAY_MS - 1)
    assert not peer.received()
    assert not peer.is_closed()
    peer.loop.pass_time(1)
    assert peer.is_closed()
    return peer.kafka_answer(api, version)


def test_a_client_authenticates_and_is_served_as_its_user(server: GatedListener, peer: GatedPeer) -> None:
    assert versions(peer).error_code.value == 0
    handshake = peer.handshake("PLAIN")
    assert handshake.error_code.value == 0
    assert set(handshake.mechanisms) == {"PLAIN", "SCRAM-SHA-256"}
    answer = peer.authenticate(b"\0alice\0pencil")
    assert (answer.error_code.value, answer.auth_bytes, answer.session_lifetime) == (0, b"", timedelta(0))
    assert peer.metadata() is not None
    assert server.served == ["metadata as User:alice"]
    assert server.authenticated == ["User:alice"]
    assert server.probes.authentications.succeeded == {("SECURE", "PLAIN"): 1}


def test_versions_before_the_authentication_count_for_no_quota(peer: GatedPeer) -> None:
    quota: Any = object()  # any use of it would fail
    peer.connection.session.quota = quota
    assert versions(peer).error_code.value == 0
    assert peer.connection.session.quota is quota


@pytest.mark.parametrize("version", [0, 1, 2])
def test_scram_takes_two_rounds_in_every_version(server: GatedListener, peer: GatedPeer, version: int) -> None:
    client = ScramClient(SCRAM_SHA_256, "alice", "pencil")
    peer.handshake("SCRAM-SHA-256")
    message: bytes | None = client.start()
    while message is not None:
        answer = peer.authenticate(message, version)
        assert answer.error_code.value == 0
        message = client.respond(answer.auth_bytes)
    assert client.is_complete
    assert peer.metadata() is not None


def test_bare_frames_follow_a_handshake_of_version_0(server: GatedListener, peer: GatedPeer) -> None:
    def bare(message: bytes) -> bytes:
        peer.send(struct.pack(">i", len(message)) + message)
        (answer,) = peer.received()
        return answer

    peer.handshake("SCRAM-SHA-256", version=0)
    client = ScramClient(SCRAM_SHA_256, "alice", "pencil")
    message: bytes | None = client.start()
    while message is not None:
        message = client.respond(bare(message))
    assert peer.metadata() is not None

    other = server.connect()
    other.handshake("PLAIN", version=0)
    other.send(struct.pack(">i", 13) + b"\0alice\0pencil")
    assert other.received() == [b""]
    assert other.metadata() is not None


def test_a_bare_exchange_fails_without_an_answer(peer: GatedPeer) -> None:
    peer.handshake("PLAIN", version=0)
    peer.send(struct.pack(">i", 12) + b"\0alice\0wrong")
    assert ends_after_the_delay(peer) is None


def test_a_native_client_authenticates(server: GatedListener, peer: GatedPeer) -> None:
    assert peer.native(ApiKey.API_VERSIONS, client="test", client_version="1") is not None
    handshake = peer.native_handshake("PLAIN")
    assert handshake is not None
    assert set(handshake["mechanisms"]) == {"PLAIN", "SCRAM-SHA-256"}
    answer = peer.native_authenticate(b"\0alice\0pencil")
    assert answer is not None
    assert answer["error"] == 0
    assert peer.native(ApiKey.METADATA, topics=None) is not None
    assert server.served == ["metadata as User:alice"]


def test_a_native_client_reads_why_it_is_refused(server: GatedListener) -> None:
    peer = server.connect()
    peer.native_handshake("PLAIN")
    assert peer.native_authenticate(b"\0alice\0wrong") is None
    peer.loop.pass_time(DELAY_MS)
    answer = peer.native_answer()
    assert answer is not None
    assert answer["error"] == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer["message"] == "Authentication failed: Invalid username or password"

    peer = server.connect()
    peer.native_handshake("GSSAPI")
    peer.loop.pass_time(DELAY_MS)
    answer = peer.native_answer()
    assert answer is not None
    assert answer["error"] == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert set(answer["mechanisms"]) == {"PLAIN", "SCRAM-SHA-256"}
    assert peer.is_closed()


def test_a_wrong_password_is_answered_after_the_delay(server: GatedListener, peer: GatedPeer) -> None:
    assert peer.log_in(password="wrong") is None
    answer = ends_after_the_delay(peer)
    assert answer.error_code.value == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert answer.error_message == "Authentication failed: Invalid username or password"
    assert server.probes.authentications.failed == {("SECURE", "PLAIN"): 1}
    assert not server.authenticated


@pytest.mark.parametrize("user", ["alice", "nobody"])
def test_scram_refuses_with_a_sentence_that_does_not_tell_users_apart(peer: GatedPeer, user: str) -> None:
    peer.handshake("SCRAM-SHA-256")
    client = ScramClient(SCRAM_SHA_256, user, "wrong")
    final = client.respond(peer.authenticate(client.start()).auth_bytes)
    assert final is not None
    assert peer.authenticate(final) is None
    answer = ends_after_the_delay(peer)
    assert answer.error_message == (
        "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"
    )


def test_an_unknown_mechanism_is_answered_with_those_enabled(server: GatedListener, peer: GatedPeer) -> None:
    assert peer.handshake("GSSAPI") is None
    answer = ends_after_the_delay(peer, "sasl_handshake", 1)
    assert answer.error_code.value == ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert set(answer.mechanisms) == {"PLAIN", "SCRAM-SHA-256"}
    assert server.probes.authentications.failed == {("SECURE", "none"): 1}


def test_api_versions_may_be_repeated_until_it_is_answered_well(peer: GatedPeer) -> None:
    frame = bytearray(peer.kafka_frame("api_versions", 3, client_software_name="x", client_software_version="1"))
    frame[6:8] = (99).to_bytes(2, "big")
    peer.send(bytes(frame))
    assert peer.kafka_answer("api_versions", 0).error_code.value == ErrorCode.UNSUPPORTED_VERSION
    assert versions(peer, name="-").error_code.value == ErrorCode.INVALID_REQUEST
    assert versions(peer).error_code.value == 0
    assert versions(peer) is None
    assert peer.is_closed()


def test_a_native_hello_that_does_not_decode_ends_the_authentication(
    server: GatedListener, peer: GatedPeer, caplog: pytest.LogCaptureFixture
) -> None:
    peer.send(native_request(ApiKey.API_VERSIONS, {"client": 5}) * 2)
    assert peer.is_closed()
    assert not peer.received()
    assert server.probes.authentications.failed == {("SECURE", "none"): 1}
    (line,) = caplog.messages
    assert "a malformed frame (" in line


def test_no_request_is_served_before_authentication(server: GatedListener) -> None:
    for prepare in (lambda peer: None, versions):
        peer = server.connect()
        prepare(peer)
        assert peer.metadata() is None
        assert peer.is_closed()
    assert not server.served


@pytest.mark.parametrize("api", [256, 300, 11_000, 32_767, -1, -32_768])
def test_a_key_above_one_byte_or_below_0_closes_the_connection_as_any_unknown_key(
    server: GatedListener, peer: GatedPeer, caplog: pytest.LogCaptureFixture, api: int
) -> None:
    unknown = struct.pack(">i", 10) + struct.pack(">hhih", api, 0, 1, -1)
    peer.send(unknown)
    assert "the first request is not one of an authentication" in caplog.messages[-1]

    greeted, exchanging, logged_in = server.connect(), server.connect(), server.connect()
    versions(greeted)
    greeted.send(unknown)
    assert "another request than SaslHandshake" in caplog.messages[-1]

    exchanging.handshake("PLAIN")
    exchanging.send(unknown)
    assert "a request of an unsupported version" in caplog.messages[-1]

    logged_in.log_in()
    logged_in.send(unknown)
    assert f"api {api} version 0 is not served here" in caplog.messages[-1]

    for each in (peer, greeted, exchanging, logged_in):
        assert each.is_closed()
        assert not each.received()


@pytest.mark.parametrize("first", [b"\x00", b"\x01", b"\x27", b"\x7f", b"\xb7", b"\xff"])
def test_a_bare_frame_is_a_message_of_the_mechanism_whatever_its_first_bytes_are(
    peer: GatedPeer, caplog: pytest.LogCaptureFixture, first: bytes
) -> None:
    peer.handshake("PLAIN", version=0)
    message = first + b"\x11\x00\x01\0alice\0wrong"
    peer.send(struct.pack(">i", len(message)) + message)
    assert ends_after_the_delay(peer) is None
    assert "SASL PLAIN" in caplog.messages[-1] or "mechanism=PLAIN" in caplog.messages[-1]
    assert "malformed frame" not in caplog.text
    assert "not one of an authentication" not in caplog.text


def test_another_request_during_the_exchange_is_answered_and_closes(server: GatedListener, peer: GatedPeer) -> None:
    peer.handshake("PLAIN")
    assert versions(peer) is None
    answer = ends_after_the_delay(peer, "api_versions", 3)
    assert answer.error_code.value == ErrorCode.ILLEGAL_SASL_STATE


@pytest.mark.parametrize(
    "frames",
    [
        lambda peer: b"GET / HTTP/1.1\r\n\r\n",
        lambda peer: b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        lambda peer: struct.pack(">i", MAX_RECEIVE_BYTES + 1),
        lambda peer: struct.pack(">i", -1),
        lambda peer: struct.pack(">i", 0),
        lambda peer: struct.pack(">i", 1) + b"\x60",
        lambda peer: struct.pack(">i", 3) + b"\xb7\x00\x00",
        lambda peer: struct.pack(">i", 10) + struct.pack(">hhih", 17, 1, 1, -1),
        lambda peer: struct.pack(">i", 10) + struct.pack(">hhih", 17, 9, 1, -1),
        lambda peer: struct.pack(">i", 10) + struct.pack(">hhih", 999, 0, 1, -1),
        lambda peer: struct.pack(">i", 10) + struct.pack(">hhih", 36, 1, 1, -1),
    ],
)
def test_other_bytes_close_the_connection(peer: GatedPeer, frames: Callable[[GatedPeer], bytes]) -> None:
    peer.send(frames(peer))
    assert peer.is_closed()
    assert not peer.received()


def test_the_oldest_unauthenticated_connection_gives_way_to_a_new_one() -> None:
    server = GatedListener(unauthenticated_max=2)
    user, left = server.connect(), server.connect()
    user.log_in()
    left.connection.connection_lost(None)
    idle = [server.connect() for _ in range(4)]
    assert [peer.is_closed() for peer in idle] == [True, True, False, False]
    assert idle[0].connection.close_reason == CROWDED_OUT
    assert user.metadata() is not None
    assert idle[3].log_in().error_code.value == 0
    server.loop.close()


def test_a_pipelined_request_is_served_after_the_authentication(server: GatedListener, peer: GatedPeer) -> None:
    peer.send(
        peer.kafka_frame("sasl_handshake", 1, mechanism="PLAIN")
        + peer.kafka_frame("sasl_authenticate", 2, auth_bytes=b"\0alice\0pencil")
        + peer.kafka_frame("metadata", 4, topics=(), allow_auto_topic_creation=False)
    )
    assert len(peer.received()) == 3
    assert server.served == ["metadata as User:alice"]


def test_a_request_pipelined_after_a_refused_login_is_not_served(server: GatedListener, peer: GatedPeer) -> None:
    peer.send(
        peer.kafka_frame("sasl_handshake", 1, mechanism="PLAIN")
        + peer.kafka_frame("sasl_authenticate", 2, auth_bytes=b"\0alice\0wrong")
        + peer.kafka_frame("metadata", 4, topics=(), allow_auto_topic_creation=False)
    )
    peer.loop.pass_time(DELAY_MS)
    assert len(peer.received()) == 2
    assert peer.is_closed()
    assert not server.served


def test_an_authenticated_client_may_send_large_frames(peer: GatedPeer) -> None:
    peer.log_in()
    names = tuple(f"topic-{number:08}" for number in range(1000))
    kio = __import__("kio.schema.metadata.v4.request", fromlist=["MetadataRequestTopic"])
    topics = tuple(kio.MetadataRequestTopic(name=name) for name in names)
    assert peer.kafka("metadata", 4, topics=topics, allow_auto_topic_creation=False) is not None


def test_sasl_requests_after_the_authentication_are_refused(peer: GatedPeer) -> None:
    peer.log_in()
    assert peer.handshake("PLAIN").error_code.value == ErrorCode.ILLEGAL_SASL_STATE
    answer = peer.authenticate(b"\0alice\0pencil")
    assert answer.error_code.value == ErrorCode.ILLEGAL_SASL_STATE
    assert answer.error_message == "SaslAuthenticate request received after successful authentication"
    assert peer.metadata() is not None


def test_a_client_that_does_not_finish_in_time_is_closed(server: GatedListener, peer: GatedPeer) -> None:
    quiet = server.connect()
    peer.handshake("PLAIN")
    peer.loop.pass_time(29_999)
    assert not quiet.is_closed()
    assert not peer.is_closed()
    peer.loop.pass_time(2)
    assert quiet.is_closed()
    assert peer.is_closed()


def test_an_authenticated_client_is_not_timed_out(peer: GatedPeer) -> None:
    peer.log_in()
    peer.loop.pass_time(3_600_000)
    assert not peer.is_closed()
    assert peer.metadata() is not None


def test_an_authentication_has_few_frames(peer: GatedPeer) -> None:
    for _ in range(10):
        assert versions(peer, name="-").error_code.value == ErrorCode.INVALID_REQUEST
    assert versions(peer, name="-") is None
    assert peer.is_closed()


def test_a_connection_that_ends_leaves_no_timer(peer: GatedPeer) -> None:
    peer.log_in(password="wrong")
    peer.loop.run(lambda: peer.connection.connection_lost(None))
    peer.loop.pass_time(DELAY_MS)
    assert not peer.received()
