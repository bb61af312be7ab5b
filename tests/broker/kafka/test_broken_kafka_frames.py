"""Thousands of mutations of real clients' requests cause no unexpected exception, no memory growth and no hang.

The seed is fixed, so a failure repeats; BARNABAS_FUZZ_SEED sets another one. Add a frame that breaks something to
tests/protocol/frames, so that every run sends it.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.protocol.errors import BrokerError, DecodeError
from barnabas.protocol.messages.api_key import OWN_KEYS
from tests.support.daemon import Daemon, start_daemon
from tests.support.frames import Frame, Mutator, by_api
from tests.support.kafka.routes import ROUTES
from tests.support.storage.records import plain
from tests.support.wire import WireClient

SEED = int(os.environ.get("BARNABAS_FUZZ_SEED", "20261121"))
DECODED_OF_EACH_API = 2000
SENT_OF_EACH_API = 40
SENDERS = 4
ANSWER_TIMEOUT_S = 20.0
RSS_GROWTH_BYTES = 96 << 20
HEADER_BYTES = 8  # api key, version, correlation id
FRAMES = by_api()
OTHERS = [frame.data for frames in FRAMES.values() for frame in frames]
SERVED = sorted({key for key, _ in ROUTES} & set(FRAMES))


def decode(key: int, version: int, body: bytes) -> None:
    """Decode as dispatch does; only errors with a response or that close the connection may be raised."""
    try:
        ROUTES[key, version].decode(version, memoryview(bytearray(body)))
    except (DecodeError, BrokerError):
        pass


def body_of(frame: Frame) -> bytes:
    return frame.body(is_flexible=ROUTES[frame.key, frame.version].is_flexible)


@pytest.mark.parametrize("key", SERVED)
def test_a_broken_body_raises_nothing_but_a_decode_error(key: int) -> None:
    mutator = Mutator(SEED + key, OTHERS)
    frames = [frame for frame in FRAMES[key] if (key, frame.version) in ROUTES]
    for number in range(DECODED_OF_EACH_API):
        frame = frames[number % len(frames)]
        mutant = mutator.mutate(body_of(frame))
        try:
            decode(key, frame.version, mutant)
        except Exception as error:
            error.add_note(f"seed {SEED}, api {key} version {frame.version}, body {mutant.hex()}")
            raise


def test_every_version_that_is_served_is_broken() -> None:
    assert {(frame.key, frame.version) for frames in FRAMES.values() for frame in frames} >= {
        each for each in ROUTES if each[0] not in OWN_KEYS
    }


@given(data=st.data())
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_any_edit_of_a_body_raises_nothing_but_a_decode_error(data: st.DataObject) -> None:
    frame = data.draw(
        st.sampled_from([frame for key in SERVED for frame in FRAMES[key] if (key, frame.version) in ROUTES])
    )
    body = bytearray(body_of(frame))
    start = data.draw(st.integers(0, len(body)))
    end = data.draw(st.integers(start, min(len(body), start + 8)))
    body[start:end] = data.draw(st.binary(max_size=8))

    decode(frame.key, frame.version, bytes(body))


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with start_daemon(tmp_path_factory.mktemp("broken")) as running:
        yield running


def send(daemon: Daemon, frame: bytes) -> None:
    """Send one frame on a new connection; the broker may respond, and must close after our shutdown."""
    with socket.create_connection((daemon.host, daemon.port), ANSWER_TIMEOUT_S) as connection:
        try:
            connection.sendall(frame)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(1 << 16):
                pass
        except (ConnectionResetError, BrokenPipeError):
            pass
        except TimeoutError as error:
            raise AssertionError(f"the connection hangs, seed {SEED}, frame {frame.hex()}") from error


def rss_bytes(daemon: Daemon) -> int:
    pages = int(Path(f"/proc/{daemon.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE")


def assert_serves(daemon: Daemon, topic: str) -> None:
    with WireClient(daemon.host, daemon.port) as client:
        client.create_topic(topic)
        assert client.produce(topic, plain(3)).error == 0
        assert client.end_offset(topic) == 3


def mutants() -> Iterator[bytes]:
    """Yield whole frames with their size fields, a few of which are wrong."""
    for frame in (frame for frames in FRAMES.values() for frame in frames):
        yield struct.pack(">i", len(frame.data)) + frame.data
    for key, frames in FRAMES.items():
        mutator = Mutator(SEED + key, OTHERS)
        for number in range(SENT_OF_EACH_API):
            data = frames[number % len(frames)].data
            mutant = mutator.mutate(data, first=0 if number % 8 == 0 else HEADER_BYTES)
            size = len(mutant) if number % 16 else len(mutant) * 2 + 1
            yield struct.pack(">i", size) + mutant


def test_the_daemon_outlives_every_broken_frame_without_a_traceback(daemon: Daemon) -> None:
    assert_serves(daemon, "before")
    before = rss_bytes(daemon)

    with ThreadPoolExecutor(SENDERS) as senders:
        for _ in senders.map(lambda frame: send(daemon, frame), mutants()):
            pass

    assert daemon.running
    assert "Traceback" not in daemon.log, f"seed {SEED}"
    assert " ERROR " not in daemon.log, f"seed {SEED}"
    assert rss_bytes(daemon) < before + RSS_GROWTH_BYTES
    assert_serves(daemon, "after")
