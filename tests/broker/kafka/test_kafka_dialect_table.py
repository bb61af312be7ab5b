"""Every row of the ApiVersions table has a handler and a line in the docs."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest

from barnabas.protocol.kafka.apis import KAFKA_APIS, KafkaApi
from tests.support.daemon import Daemon
from tests.support.kafka.kafka_wire import KafkaWire, framed
from tests.support.wire import new_host

PAGE = Path(__file__).resolve().parents[3] / "docs" / "protocol.md"


@pytest.mark.parametrize("api", KAFKA_APIS, ids=lambda api: api.key.label)
def test_every_row_has_a_handler(daemon: Daemon, api: KafkaApi) -> None:
    header = struct.pack(">hhih", api.key, api.lowest, 1, -1) + b"\x00" * (api.lowest >= api.flexible_from)
    host = new_host()
    with KafkaWire(daemon.host, daemon.port, host) as client:
        client.socket.sendall(framed(header))
        try:
            client.receive_frame()
        except ConnectionError:  # an empty body does not decode for most APIs
            assert f"{api.key.label} v{api.lowest} does not decode" in daemon.log
    assert f"api {int(api.key)} version {api.lowest} requested by {host}:" not in daemon.log


@pytest.mark.parametrize(
    ("key", "version", "advice"),
    [
        (4, 7, "it is sent between the nodes of a Kafka cluster"),
        (64, 0, "UnregisterBroker: there is one broker"),
        (1, 3, "fetch is served in versions 4 to 18: update the client"),
        (1, 99, "fetch is served in versions 4 to 18: the client has to ask ApiVersions for them first"),
        (99, 0, "it is no API of Kafka 4.3"),
        (300, 0, "it is no API of Kafka 4.3: does the client speak Kafka's protocol?"),
        (-1, 0, "it is no API of Kafka 4.3: does the client speak Kafka's protocol?"),
        (10_999, 0, "it is an API of Barnabas' own that this version does not have: update the broker"),
    ],
)
def test_a_request_that_is_not_served_closes_the_connection_with_one_line_that_says_what_to_do(
    daemon: Daemon, key: int, version: int, advice: str
) -> None:
    host = new_host()
    for _ in range(2):
        with KafkaWire(daemon.host, daemon.port, host) as client:
            client.socket.sendall(framed(struct.pack(">hhih", key, version, 1, -1)))
            assert client.is_closed_by_broker()
    lines = [line for line in daemon.log.splitlines() if f"api {key} version {version} requested by {host}:" in line]
    assert len(lines) == 1
    assert advice in lines[0]


def test_the_documented_versions_are_those_of_the_table() -> None:
    rows = re.findall(r"^\| (\d+) \| (\w+) \| (\d+)-(\d+) \|", PAGE.read_text(), re.MULTILINE)
    documented = [(int(key), name.lower(), int(low), int(high)) for key, name, low, high in rows]
    served = sorted((int(api.key), api.key.label.replace("_", ""), api.lowest, api.highest) for api in KAFKA_APIS)
    assert documented == served, "docs/protocol.md, the table of Kafka's protocol"
