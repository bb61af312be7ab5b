"""Bad frames of the native dialect: the right error code or a closed connection, few log lines, nobody else notices.

The frames of the fuzzer come from a seeded generator; a failure message contains its seed and number.
"""

from __future__ import annotations

import os
import random
import struct
from pathlib import Path
from typing import Any

import msgpack
import pytest

from barnabas.broker.repeated_warnings import LINES
from barnabas.protocol.errors import ErrorCode
from tests.broker.conftest import Batch
from tests.support.daemon import Daemon
from tests.support.frame_connection import FrameConnection
from tests.support.native.native_frames import answer_fields, native_frame, native_request
from tests.support.wire import WireClient, new_host

PRODUCE, FETCH, LIST_OFFSETS, METADATA, HELLO = 0, 1, 2, 3, 18
FRAMES = 1500
MIB = 1 << 20
PREFIX = 8
LAST = 1_000_000
"""The correlation id of the hello after each spoiled frame."""


@pytest.fixture
def native(daemon: Daemon) -> Any:
    with FrameConnection(daemon.host, daemon.port, new_host()) as client:
        yield client


def resident_bytes(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE")


def log_lines(daemon: Daemon, *texts: str) -> int:
    return sum(all(text in line for text in texts) for line in daemon.log.splitlines())


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        (struct.pack(">iI", 5, 0xB7000001) + b"\xc1", "header is not msgpack"),
        (struct.pack(">iI", 5, 0xB7000099) + b"\x90", "longer than its frame"),
    ],
    ids=["undecodable", "header beyond the frame"],
)
def test_broken_framing_closes_its_connection_with_one_log_line(
    daemon: Daemon, native: FrameConnection, sent: bytes, sentence: str
) -> None:
    before = log_lines(daemon, sentence)
    native.socket.sendall(sent)
    assert native.is_closed_by_broker()
    assert log_lines(daemon, sentence) == before + 1


def test_sizes_that_lie_are_an_invalid_request(
    daemon: Daemon, native: FrameConnection, wire: WireClient, batch: Batch
) -> None:
    wire.create_topic("lies")
    records = bytes(batch(b"x" * 100))
    body = {"acks": 1, "topics": [["lies", [[0, len(records)]]]]}
    native.socket.sendall(native_request(PRODUCE, body, records + b"more"))
    answer = answer_fields(native.receive_frame())
    assert answer[3] == ErrorCode.INVALID_REQUEST
    assert "the sizes add up" in answer[4]["message"]
    assert wire.end_offset("lies") == 0


@pytest.mark.parametrize(
    ("header", "text", "lines"),
    [
        ([METADATA, 77, 1, "me", {}], "api 3 version 77 requested by", 1),
        ([PRODUCE, 0, 1, "me", {}], "a request of api 0 from", LINES),
    ],
    ids=["unserved version", "body does not decode"],
)
def test_refused_requests_have_few_lines(daemon: Daemon, header: list[object], text: str, lines: int) -> None:
    host = new_host()
    times = 5 * LINES
    with FrameConnection(daemon.host, daemon.port, host) as client:
        client.socket.sendall(native_frame(msgpack.packb(header), b"") * times)
        for _ in range(times):
            assert answer_fields(client.receive_frame())[3]
    assert log_lines(daemon, text, f"{host}:") == lines


def test_a_client_whose_software_is_barnabas_is_answered_as_any_other(native: FrameConnection) -> None:
    native.socket.sendall(native_request(HELLO, {"client": "barnabas", "client_version": "1"}))
    assert answer_fields(native.receive_frame())[3] == ErrorCode.NONE
    for header in ([8, 0, 1, "me", {}], [METADATA, 1, 1, "me", {}]):  # OffsetCommit, and a version to come
        native.socket.sendall(native_frame(msgpack.packb(header), b""))
        assert answer_fields(native.receive_frame())[3] == ErrorCode.UNSUPPORTED_VERSION


def test_a_clients_line_breaks_do_not_look_like_lines_of_the_log(daemon: Daemon, native: FrameConnection) -> None:
    forged = "\n2030-01-01 00:00:00,000 ERROR forged"
    native.socket.sendall(native_frame(msgpack.packb([99, 0, 1, "me" + forged, {}]), b""))
    assert answer_fields(native.receive_frame())[3] == ErrorCode.UNSUPPORTED_VERSION
    assert "forged" in daemon.log
    assert not any(line.startswith("2030") for line in daemon.log.splitlines())


def test_a_header_that_would_take_a_gigabyte_when_decoded_is_refused(daemon: Daemon, native: FrameConnection) -> None:
    before = resident_bytes(daemon.pid)
    count = 3 * MIB
    native.socket.sendall(native_frame(b"\x95\x01\x00\x05\xc0\xdd" + struct.pack(">I", count) + b"\x90" * count, b""))
    assert native.is_closed_by_broker()
    assert resident_bytes(daemon.pid) - before < 30 * MIB


def test_a_request_that_names_more_than_a_broker_can_have_is_refused(daemon: Daemon, native: FrameConnection) -> None:
    native.socket.sendall(native_request(METADATA, {"topics": [""] * 260_000}))
    assert native.is_closed_by_broker()
    assert "more than 250000 values in one request" in daemon.log


def sound_frame(rng: random.Random, topic: str, batch: Batch) -> bytes:
    """Return a valid request of any API."""
    api = rng.choice([PRODUCE, FETCH, LIST_OFFSETS, METADATA, HELLO])
    records = b""
    if api == PRODUCE:
        records = bytes(batch(bytes(rng.randrange(200))))
        body = {"acks": rng.choice([1, -1]), "topics": [[topic, [[rng.randrange(2), len(records)]]]]}
    elif api == FETCH:
        partitions = [[rng.randrange(2), rng.randrange(3), MIB]]
        body = {"max_wait_ms": rng.choice([0, 2]), "min_bytes": 1, "topics": [[topic, partitions]]}
    elif api == LIST_OFFSETS:
        timestamp = rng.choice([-1, -2, -3, 5, 1_700_000_000_000])
        body = {"isolation": 0, "topics": [[topic, [[0, timestamp]]]]}
    elif api == METADATA:
        body = {"topics": rng.choice([None, [], [topic, "none"]])}
    else:
        body = {"client": "tester", "client_version": "1"}
    return native_request(api, body, records)


def any_value(rng: random.Random) -> Any:
    """Return a random value of any msgpack type."""
    return rng.choice(
        [
            *(None, True, 0, -1, 1 << 31, (1 << 64) - 1, -(1 << 63), 1.5, float("nan")),
            *("", "x\n" * 20, b"\xff\x00", msgpack.ExtType(5, b"x"), msgpack.Timestamp(1, 2)),
            *([], [None], {}, {"topics": 1}, {b"b": []}),
        ]
    )


def with_another_value(rng: random.Random, value: Any) -> Any:
    """Return `value` with an element replaced, removed or added."""
    if isinstance(value, list) and value and rng.random() < 0.85:
        changed = list(value)
        position = rng.randrange(len(changed))
        what = rng.random()
        if what < 0.1:
            del changed[position]
        elif what < 0.2:
            changed.append(any_value(rng))
        else:
            changed[position] = with_another_value(rng, changed[position])
        return changed
    if isinstance(value, dict) and value and rng.random() < 0.9:
        name = rng.choice(list(value))
        if rng.random() < 0.1:
            return {key: each for key, each in value.items() if key != name}
        return {**value, name: with_another_value(rng, value[name])}
    return any_value(rng)


def with_other_bytes(rng: random.Random, frame: bytes) -> bytes:
    """Return a frame with changed bytes.

    Its size stays, so that the connection can continue if the header is readable.
    """
    spoiled = bytearray(frame)
    for _ in range(rng.randrange(1, 5)):
        spoiled[rng.randrange(4, len(spoiled))] = rng.randrange(256)
    return bytes(spoiled)


def with_other_values(rng: random.Random, frame: bytes) -> bytes:
    """Return a well-formed frame with a changed header."""
    end = PREFIX + int.from_bytes(frame[5:PREFIX], "big")
    header = msgpack.unpackb(frame[PREFIX:end])
    header = (
        with_another_value(rng, header) if rng.random() < 0.2 else [*header[:4], with_another_value(rng, header[4])]
    )
    return native_frame(msgpack.packb(header), frame[end:])


def read_until_last(client: FrameConnection) -> None:
    """Read answers until that with the last correlation id. Raises ConnectionError when the connection is closed."""
    found = 0
    while found != LAST:
        api, _, found, error, _ = answer_fields(client.receive_frame())
        assert error != ErrorCode.UNKNOWN_SERVER_ERROR, api


@pytest.mark.parametrize("spoil", [with_other_bytes, with_other_values])
@pytest.mark.parametrize("seed", [1, 2])
def test_spoiled_frames_of_every_api_disturb_nobody(
    daemon: Daemon, wire: WireClient, batch: Batch, seed: int, spoil: Any
) -> None:
    rng = random.Random(f"{seed} {spoil.__name__}")
    topic, fuzzed = (f"{name}.{seed}.{spoil.__name__}" for name in ("neighbour", "fuzz"))
    wire.create_topic(topic)
    wire.create_topic(fuzzed, partitions=2)
    before = resident_bytes(daemon.pid)
    hello = native_request(HELLO, {"client": "tester", "client_version": "1"}, correlation_id=LAST)
    client: FrameConnection | None = None
    for number in range(FRAMES):
        client = client or FrameConnection(daemon.host, daemon.port)
        frame = spoil(rng, sound_frame(rng, fuzzed, batch))
        try:
            client.socket.sendall(frame + hello)
            read_until_last(client)
        except ConnectionError:
            client.socket.close()
            client = None
        except (AssertionError, TimeoutError) as error:
            error.add_note(f"seed {seed}, frame {number}: {frame.hex()}")
            raise
        if number % 100 == 0:
            assert wire.produce(topic, batch(b"neighbour")).base_offset == number // 100
    if client is not None:
        client.socket.close()
    assert daemon.running
    assert "a bug" not in daemon.log
    assert "Traceback" not in daemon.log
    assert resident_bytes(daemon.pid) - before < 30 * MIB
