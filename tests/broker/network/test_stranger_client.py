"""A client written from docs/protocol.md alone, with sockets and msgpack and no code of Barnabas.

Change the page too if this client has to change for any reason but a mistake in it.
"""

from __future__ import annotations

import re
import socket
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack
import pytest

from tests.support.daemon import Daemon, start_daemon

PAGE = Path(__file__).parents[3] / "docs" / "protocol.md"


# --- the client


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def varint(value: int) -> bytes:
    value = (value << 1) ^ (value >> 63)
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return (value >> 1) ^ -(value & 1), at


def nullable(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def read_nullable(data: bytes, at: int) -> tuple[bytes | None, int]:
    size, at = read_varint(data, at)
    return (None, at) if size < 0 else (data[at : at + size], at + size)


def make_batch(timestamp: int, records: list[tuple[bytes | None, bytes | None]]) -> bytes:
    payload = b""
    for delta, (key, value) in enumerate(records):
        record = b"\0" + varint(0) + varint(delta) + nullable(key) + nullable(value) + varint(1)
        record += varint(1) + b"h" + nullable(b"header")
        payload += varint(len(record)) + record
    checked = struct.pack(">hiqqqhii", 0, len(records) - 1, timestamp, timestamp, -1, -1, -1, len(records))
    checked += payload
    return struct.pack(">qiibI", 0, 9 + len(checked), -1, 2, crc32c(checked)) + checked


def read_batches(data: bytes) -> Iterator[tuple[int, int, bytes | None, bytes | None]]:
    at = 0
    while at + 61 <= len(data):
        base, length = struct.unpack_from(">qi", data, at)
        if at + 12 + length > len(data):
            return
        assert data[at + 16] == 2
        assert struct.unpack_from(">I", data, at + 17)[0] == crc32c(data[at + 21 : at + 12 + length])
        base_timestamp = struct.unpack_from(">q", data, at + 27)[0]
        (count,) = struct.unpack_from(">i", data, at + 57)
        position = at + 61
        for _ in range(count):
            size, position = read_varint(data, position)
            end = position + size
            timestamp_delta, position = read_varint(data, position + 1)
            offset_delta, position = read_varint(data, position)
            key, position = read_nullable(data, position)
            value, position = read_nullable(data, position)
            yield base + offset_delta, base_timestamp + timestamp_delta, key, value
            position = end
        at += 12 + length


def frame_of(api: int, body: dict[str, Any], correlation_id: int, records: bytes = b"") -> bytes:
    header: bytes = msgpack.packb([api, 0, correlation_id, "stranger", body])
    return struct.pack(">iI", 4 + len(header) + len(records), 0xB7 << 24 | len(header)) + header + records


class StrangerClient:
    def __init__(self, host: str, port: int) -> None:
        self.socket = socket.create_connection((host, port), timeout=30)
        self.correlation_id = 0

    def request(self, api: int, body: dict[str, Any], records: bytes = b"") -> tuple[int, dict[str, Any], bytes]:
        self.correlation_id += 1
        self.socket.sendall(frame_of(api, body, self.correlation_id, records))
        (size,) = struct.unpack(">i", self.read(4))
        frame = self.read(size)
        assert frame[0] == 0xB7
        end = 4 + int.from_bytes(frame[1:4], "big")
        answer_api, version, correlation_id, error, answer = msgpack.unpackb(frame[4:end])
        assert (answer_api, version, correlation_id) == (api, 0, self.correlation_id)
        return error, answer, frame[end:]

    def read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            assert piece, "the broker closed the connection"
            data += piece
        return data

    def close(self) -> None:
        self.socket.close()


# --- the tests


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with start_daemon(tmp_path_factory.mktemp("stranger")) as running:
        yield running


@pytest.fixture
def client(daemon: Daemon) -> Iterator[StrangerClient]:
    connected = StrangerClient(daemon.host, daemon.port)
    yield connected
    connected.close()


def test_a_stranger_creates_a_topic_produces_and_reads_it_back(client: StrangerClient) -> None:
    error, hello, _ = client.request(18, {"client": "stranger", "client_version": "1"})
    assert error == 0
    assert [0, 0, 0] in hello["apis"]
    assert hello["max_frame_bytes"] == 104857600

    error, created, _ = client.request(19, {"topics": [["letters", 2, -1, [["retention.ms", "-1"]]]]})
    assert error == 0
    name, topic_error, message, topic_id, partitions = created["topics"][0]
    assert (name, topic_error, partitions) == ("letters", 0, 2), message

    error, metadata, _ = client.request(3, {"topics": None})
    assert error == 0
    (letters,) = [topic for topic in metadata["topics"] if topic[1] == "letters"]
    assert letters[:3] == [0, "letters", topic_id]
    assert [(p[0], p[1]) for p in letters[3]] == [(0, 0), (0, 1)]
    assert metadata["brokers"][0][1:] == [client.socket.getpeername()[0], client.socket.getpeername()[1]]

    first = make_batch(1_000_000_000_000, [(b"a", b"alpha"), (None, b"nobody")])
    second = make_batch(1_000_000_000_500, [(b"b", None)])
    error, produced, _ = client.request(
        0, {"acks": -1, "topics": [["letters", [[0, len(first)], [1, len(second)]]]]}, first + second
    )
    assert error == 0
    assert [entry[:4] for entry in produced["topics"][0][1]] == [[0, 0, None, 0], [1, 0, None, 0]]

    error, fetched, records = client.request(
        1, {"max_wait_ms": 100, "topics": [["letters", [[0, 1, 1 << 20], [1, 0, 1 << 20]]]]}
    )
    assert error == 0
    zero, one = fetched["topics"][0][1]
    assert (zero[1], zero[2], one[2]) == (0, 2, 1)
    assert zero[6] + one[6] == len(records)
    in_zero = [record for record in read_batches(records[: zero[6]]) if record[0] >= 1]
    assert in_zero == [(1, 1_000_000_000_000, None, b"nobody")]
    assert list(read_batches(records[zero[6] :])) == [(0, 1_000_000_000_500, b"b", None)]

    for timestamp, in_zero_and_one in (
        (-1, [[0, 2, -1], [0, 1, -1]]),
        (-2, [[0, 0, -1], [0, 0, -1]]),
        (-3, [[0, 0, 1_000_000_000_000], [0, 0, 1_000_000_000_500]]),
        (1_000_000_000_001, [[0, -1, -1], [0, 0, 1_000_000_000_500]]),
    ):
        error, listed, _ = client.request(2, {"topics": [["letters", [[0, timestamp], [1, timestamp]]]]})
        assert error == 0
        assert [entry[1:4] for entry in listed["topics"][0][1]] == in_zero_and_one

    error, described, _ = client.request(32, {"resources": [[2, "letters", ["retention.ms"]]]})
    assert error == 0
    assert described["resources"][0][4][0][:4] == ["retention.ms", "-1", "DYNAMIC_TOPIC_CONFIG", "long"]
    error, altered, _ = client.request(33, {"resources": [[2, "letters", [["retention.ms", 0, "60000"]]]]})
    assert (error, altered["resources"][0][2]) == (0, 0)
    error, grown, _ = client.request(37, {"topics": [["letters", 3]]})
    assert (error, grown["topics"][0][1]) == (0, 0)
    error, deleted, _ = client.request(20, {"topics": ["letters"]})
    assert (error, deleted["topics"][0][1]) == (0, 0)
    error, metadata, _ = client.request(3, {"topics": ["letters", "no/name"]})
    assert [topic[0] for topic in metadata["topics"]] == [3, 17]


def text(value: str) -> bytes:
    return struct.pack(">h", len(value.encode())) + value.encode()


def test_a_stranger_joins_a_group_shares_it_and_leaves(daemon: Daemon, client: StrangerClient) -> None:
    client.request(19, {"topics": [["shared", 2, -1, []]]})
    subscription = struct.pack(">hi", 0, 1) + text("shared") + struct.pack(">i", -1)
    joining = {
        "group": "strangers",
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "protocol_type": "consumer",
        "protocols": [["range", subscription]],
    }
    error, refused, _ = client.request(11, joining)
    assert (error, refused["error"], refused["members"]) == (0, 79, [])
    me = refused["member_id"]
    error, joined, _ = client.request(11, {**joining, "member_id": me})
    assert (error, joined["error"]) == (0, 0)
    assert (joined["member_id"], joined["leader"], joined["protocol"], joined["skip_assignment"]) == (
        me,
        me,
        "range",
        False,
    )
    assert joined["members"] == [[me, None, subscription]]

    who = {"group": "strangers", "generation": joined["generation"], "member_id": me}
    assignment = struct.pack(">hi", 0, 1) + text("shared") + struct.pack(">iiii", 2, 0, 1, -1)
    error, synced, _ = client.request(14, {**who, "protocol": "range", "assignments": [[me, assignment]]})
    assert (error, synced["error"], synced["assignment"]) == (0, 0, assignment)
    assert client.request(12, who)[1] == {"error": 0}
    error, described, _ = client.request(15, {"groups": ["strangers", "nobody"]})
    ours, unknown = described["groups"]
    assert (ours[0], ours[1], ours[3], ours[4], ours[5]) == ("strangers", 0, "Stable", "consumer", "range")
    assert ours[6][0][:3] == [me, None, "stranger"]
    assert ours[6][0][4:] == [subscription, assignment]
    assert unknown[1] == 69

    other = StrangerClient(daemon.host, daemon.port)
    _, second, _ = other.request(11, joining)
    # the broker waits for the first to join
    other.socket.sendall(frame_of(11, {**joining, "member_id": second["member_id"]}, 99))
    while client.request(12, who)[1]["error"] != 27:
        pass
    _, rejoined, _ = client.request(11, {**joining, "member_id": me})
    assert sorted(member[0] for member in rejoined["members"]) == sorted([me, second["member_id"]])
    assert rejoined["generation"] == joined["generation"] + 1
    assert client.request(12, who)[1]["error"] == 22  # the old generation
    other.close()

    commit = {**who, "topics": [["shared", [[0, 0, -1, None]]]]}
    assert client.request(8, commit)[1]["topics"] == [["shared", [[0, 22]]]]
    error, left, _ = client.request(13, {"group": "strangers", "members": [[me, None, "done"], ["nobody", None, None]]})
    assert (error, left["error"], [member[2] for member in left["members"]]) == (0, 0, [0, 25])
    assert client.request(12, who)[1]["error"] == 25


def test_what_no_group_takes_has_kafkas_code(client: StrangerClient) -> None:
    joining = {
        "group": "picky",
        "session_timeout_ms": 10_000,
        "rebalance_timeout_ms": 10_000,
        "protocol_type": "consumer",
        "protocols": [["range", b""]],
    }
    for changes, code in (
        ({"group": ""}, 24),
        ({"session_timeout_ms": 1}, 26),
        ({"member_id": "nobody"}, 25),
        ({"protocols": []}, 23),
        ({"protocol_type": ""}, 23),
    ):
        error, answer, _ = client.request(11, {**joining, **changes})
        assert (error or answer["error"]) == code, changes
    error, answer, _ = client.request(12, {"group": "picky", "generation": 1, "member_id": "nobody"})
    assert (error or answer["error"]) == 25
    error, body, _ = client.request(11, {**joining, "protocols": [["range", "text"]]})
    assert error == 42
    assert "metadata" in body["message"]


def test_an_unknown_api_and_a_bad_body_are_answered_and_the_connection_goes_on(client: StrangerClient) -> None:
    error, body, _ = client.request(99, {})
    assert error == 35
    assert "99" in body["message"]
    error, body, _ = client.request(1, {"topics": [["t", [[0, "five", 1]]]]})
    assert error == 42
    assert "offset" in body["message"]
    error, _, _ = client.request(18, {})
    assert error == 0


def test_the_page_example_is_what_the_layout_says() -> None:
    text = PAGE.read_text(encoding="utf-8").split("byte by byte")[1]
    example = bytes.fromhex("".join(re.findall(r"^    ((?:[0-9a-f]{2} )+)", text, re.MULTILINE)))
    header = msgpack.packb([3, 0, 7, "demo", {"topics": None}])
    assert example == struct.pack(">iI", 4 + len(header), 0xB7 << 24 | len(header)) + header
