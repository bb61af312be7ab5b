"""Bytes of clients that are not authenticated: no sequence of them is served, and none is a bug."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.protocol.messages.api_key import ApiKey
from tests.support.kafka.kafka_wire import framed, message_type, request_frame
from tests.support.native.native_frames import native_request
from tests.support.sasl import GatedListener


def kafka(api: str, version: int, **fields: object) -> bytes:
    return request_frame(message_type(api, version, "request")(**fields), 1)


FRAMES = [
    kafka("api_versions", 3, client_software_name="test", client_software_version="1"),
    kafka("sasl_handshake", 0, mechanism="PLAIN"),
    kafka("sasl_handshake", 1, mechanism="PLAIN"),
    kafka("sasl_handshake", 1, mechanism="SCRAM-SHA-256"),
    kafka("sasl_authenticate", 2, auth_bytes=b"\0alice\0wrong"),
    kafka("sasl_authenticate", 1, auth_bytes=b"n,,n=alice,r=abcdef"),
    kafka("sasl_authenticate", 2, auth_bytes=b"c=biws,r=abcdef,p=AAAA"),
    kafka("metadata", 4, topics=(), allow_auto_topic_creation=False),
    native_request(ApiKey.SASL_HANDSHAKE, {"mechanism": "SCRAM-SHA-256"}),
    native_request(ApiKey.SASL_AUTHENTICATE, {"auth_bytes": b"n,,n=alice,r=abcdef"}),
    framed(b"\0alice\0wrong"),
    framed(b"n,,n=alice,r=abcdef"),
]


def mutated(frame: bytes, changes: list[tuple[int, int]]) -> bytes:
    data = bytearray(frame)
    for position, value in changes:
        data[position % len(data)] = value
    return bytes(data)


CHANGES = st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), max_size=3)
BYTES = st.lists(st.builds(mutated, st.sampled_from(FRAMES), CHANGES) | st.binary(max_size=60), max_size=6)


@pytest.fixture(scope="module")
def server() -> Iterator[GatedListener]:
    listener = GatedListener()
    yield listener
    listener.loop.close()


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(BYTES)
def test_no_bytes_are_served_or_reach_a_bug(
    server: GatedListener, caplog: pytest.LogCaptureFixture, frames: list[bytes]
) -> None:
    peer = server.connect()
    for frame in frames:
        peer.send(frame)
    peer.loop.pass_time(40_000)
    assert peer.is_closed()
    assert not server.served
    assert not server.authenticated
    assert "a bug" not in caplog.text
