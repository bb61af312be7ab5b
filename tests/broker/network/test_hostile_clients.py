"""Thousands of corrupted frames of every API: the broker stays up, other clients are served, no handler hits a bug.

The frames come from a seeded generator; a failure message contains its seed and number.
"""

from __future__ import annotations

import os
import random
import socket
import struct
from pathlib import Path
from typing import Any

import msgpack
import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.framing import NATIVE_MAGIC, SIZE_PREFIX
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.cluster.api_versions import ApiVersionsRequest
from barnabas.protocol.messages.cluster.configs import (
    BROKER_RESOURCE,
    OP_DELETE,
    OP_SET,
    TOPIC_RESOURCE,
    AlterConfigOp,
    AlterConfigsResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.protocol.messages.data.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.protocol.messages.topics.metadata import MetadataRequest
from barnabas.protocol.messages.topics.topics import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    NewPartitions,
    NewTopic,
    config_rows,
)
from tests.broker.conftest import Batch
from tests.support.daemon import Daemon
from tests.support.wire import WireClient, fetch_request, produce_request

FRAMES = 1500
MIB = 1 << 20
PREFIX = SIZE_PREFIX + 4
HELLO = ApiVersionsRequest(client="tester", client_version="1")


def requests(rng: random.Random, batch: Batch) -> list[tuple[ApiKey, Any]]:
    """Return one valid request of each API."""
    topic = f"x{rng.randrange(20)}"
    offset = rng.choice([-1, -2, -3, 5, 1_700_000_000_000])
    return [
        (
            ApiKey.PRODUCE,
            produce_request("fuzz", batch(bytes(rng.randrange(200))), rng.randrange(2), rng.choice([1, -1])),
        ),
        (ApiKey.FETCH, fetch_request("fuzz", rng.randrange(3), rng.randrange(2), max_wait_ms=rng.choice([0, 2]))),
        (
            ApiKey.LIST_OFFSETS,
            ListOffsetsRequest(
                isolation=0,
                topics=[
                    ListOffsetsTopic(name="fuzz", partitions=[ListOffsetsPartition(partition=0, timestamp=offset)])
                ],
            ),
        ),
        (ApiKey.METADATA, MetadataRequest.of_names(rng.choice([None, [], ["fuzz", "none"]]))),
        (ApiKey.API_VERSIONS, HELLO),
        (
            ApiKey.CREATE_TOPICS,
            CreateTopicsRequest(topics=[NewTopic(name=topic, partitions=rng.choice([-1, 1, 2]))], validate_only=True),
        ),
        (
            ApiKey.CREATE_TOPICS,
            CreateTopicsRequest(
                topics=[
                    NewTopic(
                        name=topic, partitions=1, replication_factor=-1, configs=config_rows({"retention.ms": "1000"})
                    )
                ]
            ),
        ),
        (ApiKey.DELETE_TOPICS, DeleteTopicsRequest(names=[topic])),
        (ApiKey.CREATE_PARTITIONS, CreatePartitionsRequest(topics=[NewPartitions(name=topic, count=rng.randrange(4))])),
        (
            ApiKey.DESCRIBE_CONFIGS,
            DescribeConfigsRequest(
                resources=[DescribeConfigsResource(type=rng.choice([TOPIC_RESOURCE, BROKER_RESOURCE]), name="fuzz")]
            ),
        ),
        (
            ApiKey.ALTER_CONFIGS,
            IncrementalAlterConfigsRequest(
                resources=[
                    AlterConfigsResource(
                        type=TOPIC_RESOURCE,
                        name="fuzz",
                        operations=[
                            AlterConfigOp(
                                name="retention.ms", operation=rng.choice([OP_SET, OP_DELETE]), value="99999999999"
                            )
                        ],
                    )
                ]
            ),
        ),
    ]


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
        spoiled[rng.randrange(SIZE_PREFIX, len(spoiled))] = rng.randrange(256)
    return bytes(spoiled)


def with_other_values(rng: random.Random, frame: bytes) -> bytes:
    """Return a well-formed frame with a changed header."""
    header_end = PREFIX + int.from_bytes(frame[SIZE_PREFIX + 1 : PREFIX], "big")
    header = msgpack.unpackb(frame[PREFIX:header_end])
    header = (
        with_another_value(rng, header) if rng.random() < 0.2 else [*header[:4], with_another_value(rng, header[4])]
    )
    packed: bytes = msgpack.packb(header)
    records = frame[header_end:]
    return struct.pack(">iI", 4 + len(packed) + len(records), NATIVE_MAGIC << 24 | len(packed)) + packed + records


def read_until_hello(client: WireClient) -> None:
    """Read responses until the last correlation id, a hello's.

    Raises ConnectionError when the connection is closed.
    """
    while True:
        frame = client._read(int.from_bytes(client._read(SIZE_PREFIX), "big"))
        api, _, correlation_id, error, _ = msgpack.unpackb(frame[4 : 4 + int.from_bytes(frame[1:4], "big")])
        assert error != ErrorCode.UNKNOWN_SERVER_ERROR
        if (api, correlation_id) == (ApiKey.API_VERSIONS, client.correlation_id):
            return


def resident_bytes(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE")


@pytest.mark.parametrize("spoil", [with_other_bytes, with_other_values])
@pytest.mark.parametrize("seed", [1, 2])
def test_spoiled_frames_of_every_api_disturb_nobody(
    daemon: Daemon, wire: WireClient, batch: Batch, seed: int, spoil: Any
) -> None:
    rng = random.Random(f"{seed} {spoil.__name__}")
    topic = f"neighbour.{seed}.{spoil.__name__}"
    wire.create_topic(topic)
    if wire.call(ApiKey.METADATA, MetadataRequest.of_names(["fuzz"])).topics[0].error:
        wire.create_topic("fuzz", partitions=2)
    before = resident_bytes(daemon.pid)
    client: WireClient | None = None
    for number in range(FRAMES):
        if client is None:
            client = WireClient(daemon.host, daemon.port)
        api, request = rng.choice(requests(rng, batch))
        frame = spoil(rng, client.frame(api, request))
        try:
            client.socket.sendall(frame + client.frame(ApiKey.API_VERSIONS, HELLO))
            read_until_hello(client)
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


def test_a_header_that_would_take_a_gigabyte_when_decoded_is_refused(daemon: Daemon, wire: WireClient) -> None:
    before = resident_bytes(daemon.pid)
    count = 3 * MIB
    header = b"\x95\x01\x00\x05\xc0\xdd" + struct.pack(">I", count) + b"\x90" * count
    wire.socket.sendall(struct.pack(">iI", 4 + len(header), NATIVE_MAGIC << 24 | len(header)) + header)
    assert wire.is_closed_by_broker()
    assert resident_bytes(daemon.pid) - before < 30 * MIB


def test_a_request_that_names_more_than_a_broker_can_have_is_refused(daemon: Daemon, wire: WireClient) -> None:
    wire.send(ApiKey.METADATA, MetadataRequest.of_names([""] * 260_000))
    assert wire.is_closed_by_broker()
    assert "more than 250000 values in one request" in daemon.log


def test_a_small_request_for_a_very_large_answer_is_refused(wire: WireClient) -> None:
    wire.create_topic("described")
    resource = DescribeConfigsResource(type=TOPIC_RESOURCE, name="described")
    answer = wire.call(ApiKey.DESCRIBE_CONFIGS, DescribeConfigsRequest(resources=[resource] * 2))
    assert [result.error for result in answer.results] == [ErrorCode.INVALID_REQUEST] * 2


def test_a_clients_line_breaks_do_not_look_like_lines_of_the_log(
    daemon: Daemon, wire: WireClient, batch: Batch
) -> None:
    forged = "\n2030-01-01 00:00:00,000 ERROR forged"
    header = msgpack.packb([99, 0, 1, "me" + forged, {}])
    wire.socket.sendall(struct.pack(">iI", 4 + len(header), NATIVE_MAGIC << 24 | len(header)) + header)
    assert wire.receive().error == ErrorCode.UNSUPPORTED_VERSION
    wire.send(ApiKey.PRODUCE, produce_request("topic" + forged, batch(), acks=0))
    assert wire.is_closed_by_broker()
    assert "forged" in daemon.log
    assert not any(line.startswith("2030") for line in daemon.log.splitlines())


def test_a_client_that_closes_within_every_kind_of_request_disturbs_nobody(
    daemon: Daemon, wire: WireClient, batch: Batch
) -> None:
    rng = random.Random(3)
    for _ in range(20):
        for api, request in requests(rng, batch):
            with WireClient(daemon.host, daemon.port) as client:
                frame = client.frame(api, request)
                client.socket.sendall(frame * 3 + frame[: rng.randrange(len(frame))])
                if rng.random() < 0.5:  # a reset instead of an orderly close
                    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    wire.call(ApiKey.METADATA, MetadataRequest.of_names(None))
    assert "a bug" not in daemon.log
    assert "Traceback" not in daemon.log
