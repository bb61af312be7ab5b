"""Frames of Kafka's protocol against a real daemon: headers, unknown APIs and versions, ApiVersions."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.apis import KAFKA_APIS
from barnabas.protocol.messages.api_key import ApiKey
from tests.support.daemon import Daemon, start_daemon
from tests.support.kafka.kafka_wire import (
    KafkaWire,
    answer_of,
    framed,
    message_type,
    metadata_request,
    request_frame,
)
from tests.support.native.native_frames import answer_fields, native_request
from tests.support.wire import new_host

TABLE = [
    (int(api.key), api.lowest if api.advertised_from is None else api.advertised_from, api.highest_for(unstable=False))
    for api in KAFKA_APIS
    if api.key not in (ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY)  # with client.metrics.enable only
]

STRANGE = [(256, 11), (257, 16), (300, 0), (10_000, 99), (32_767, 0), (-1, 0), (-100, 0), (-32_768, 0)]
"""Keys above one byte, two of them with the last byte of Produce and Fetch, and keys that no API can have."""


@pytest.fixture
def kafka(daemon: Daemon) -> Iterator[KafkaWire]:
    with KafkaWire(daemon.host, daemon.port, new_host()) as client:
        yield client


def ranges(answer: object) -> list[tuple[int, int, int]]:
    return [(each.api_key, each.min_version, each.max_version) for each in answer.api_keys]  # type: ignore[attr-defined]


def closings(daemon: Daemon) -> list[str]:
    """Return the log lines about closed connections."""
    return [line for line in daemon.log.splitlines() if "closing the connection" in line]


@pytest.mark.parametrize("version", range(5))
def test_api_versions_answers_the_table_of_apis(kafka: KafkaWire, version: int) -> None:
    fields = {"client_software_name": "test", "client_software_version": "1.0"} if version >= 3 else {}
    answer = kafka.call("api_versions", version, **fields)
    assert answer.error_code == ErrorCode.NONE
    assert ranges(answer) == TABLE


def test_api_versions_says_which_features_are_finalized(kafka: KafkaWire) -> None:
    answer = kafka.call("api_versions", 4, client_software_name="test", client_software_version="1.0")
    assert [(each.name, each.min_version_level, each.max_version_level) for each in answer.finalized_features] == [
        ("group.version", 1, 1),
        ("metadata.version", 19, 19),
        ("share.version", 1, 1),
        ("streams.version", 1, 1),
        ("transaction.version", 2, 2),
    ]
    assert answer.finalized_features_epoch >= 0


def test_a_version_of_api_versions_from_the_future_is_answered_in_version_0(kafka: KafkaWire) -> None:
    kafka.socket.sendall(framed(struct.pack(">hhih", 18, 99, 7, -1) + b"\x00what ever"))
    correlation_id, answer = answer_of("api_versions", 0, kafka.receive_frame())
    assert correlation_id == 7
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert ranges(answer) == [entry for entry in TABLE if entry[0] == 18]
    assert kafka.call("api_versions", 0).error_code == ErrorCode.NONE


@pytest.mark.parametrize(("name", "version"), [("bad name", "1"), ("", "1"), ("good", "1_0"), ("-x", "1"), ("x.", "1")])
def test_a_client_software_name_that_is_none_is_an_invalid_request(kafka: KafkaWire, name: str, version: str) -> None:
    answer = kafka.call("api_versions", 3, client_software_name=name, client_software_version=version)
    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert answer.api_keys == ()


@pytest.mark.parametrize(("api", "version"), [(99, 0), (255, 7), (0, 2), (0, 14), (1, 3), (1, 19), (3, 14), *STRANGE])
def test_an_unknown_api_or_version_closes_the_connection_with_one_line(
    daemon: Daemon, kafka: KafkaWire, api: int, version: int
) -> None:
    before = closings(daemon)
    known = request_frame(message_type("api_versions", 0, "request")(), 5)
    kafka.socket.sendall(known + framed(struct.pack(">hhih", api, version, 1, -1) + b"\x00" * 20))
    assert answer_of("api_versions", 0, kafka.receive_frame())[0] == 5
    assert kafka.is_closed_by_broker()
    (line,) = closings(daemon)[len(before) :]
    assert f"api {api} version {version} is not served here" in line


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"\x00", "too short for a header"),
        (struct.pack(">hhih", 18, 0, 1, 200) + b"short", "longer than its frame"),
        (struct.pack(">hhih", 18, 0, 1, 2) + b"\xff\xff", "client_id is not UTF-8"),
        (struct.pack(">hhih", 18, 3, 1, -1), "ends within its header"),
        (struct.pack(">hhih", 18, 3, 1, -1) + b"\x01\x00\x7f", "longer than its frame"),
        (struct.pack(">hhih", 18, 3, 1, -1) + b"\xff\xff\xff\xff\xff", "tagged fields"),
        (struct.pack(">hhih", 18, 3, 1, -1) + b"\x00\x7f", "api_versions v3 does not decode"),
    ],
)
def test_a_header_or_body_that_does_not_decode_closes_the_connection_with_one_line(
    daemon: Daemon, kafka: KafkaWire, data: bytes, sentence: str
) -> None:
    before = closings(daemon)
    kafka.socket.sendall(framed(data))
    assert kafka.is_closed_by_broker()
    (line,) = closings(daemon)[len(before) :]
    assert sentence in line


def test_tagged_fields_of_a_header_and_bytes_behind_a_body_are_ignored(kafka: KafkaWire) -> None:
    header = struct.pack(">hhih", ApiKey.API_VERSIONS, 3, 5, 2) + b"me" + b"\x02\x00\x01x\x07\x02yz"
    kafka.socket.sendall(framed(header + b"\x05test\x021\x00" + b"behind"))
    correlation_id, answer = answer_of("api_versions", 3, kafka.receive_frame())
    assert (correlation_id, answer.error_code) == (5, ErrorCode.NONE)


def test_both_dialects_are_served_on_one_connection(kafka: KafkaWire) -> None:
    kafka.socket.sendall(native_request(ApiKey.API_VERSIONS, {"client": "t", "client_version": "1"}))
    assert answer_fields(kafka.receive_frame())[3] == ErrorCode.NONE
    assert kafka.call("api_versions", 0).error_code == ErrorCode.NONE


def test_clients_are_told_the_address_of_the_listener_that_they_came_in_by(tmp_path: Path) -> None:
    settings = (
        "listeners=NEAR://127.0.0.1:0,FAR://127.0.0.1:0,OPEN://:0",
        "listener.security.protocol.map=NEAR:PLAINTEXT,FAR:PLAINTEXT,OPEN:PLAINTEXT",
        "advertised.listeners=NEAR://near.example:1111,FAR://far.example:0",
    )
    with start_daemon(tmp_path, *settings) as daemon:
        ports = [int(port) for port in re.findall(r"listening, listener=\S+ port=(\d+)", daemon.log)]
        told = []
        for port in ports:
            with KafkaWire("127.0.0.1", port) as client:
                client.send(metadata_request(4))
                told += [(each.host, each.port) for each in client.receive("metadata", 4).brokers]
        assert told == [("near.example", 1111), ("far.example", ports[1]), ("127.0.0.1", ports[2])]
        assert f"port={ports[0]} advertised=near.example:1111" in daemon.log
