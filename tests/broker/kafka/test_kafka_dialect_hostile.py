"""Corrupted frames of Kafka's data APIs: the broker stays up, other clients are served, no handler hits a bug, no leak.

The frames come from a seeded generator; a failure message contains its seed and number.
"""

from __future__ import annotations

import os
import random
import struct
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol.kafka.apis import KAFKA_APIS
from barnabas.protocol.messages.api_key import ApiKey
from tests.broker.conftest import Batch
from tests.support.daemon import Daemon
from tests.support.kafka.kafka_wire import (
    KafkaWire,
    fetch_request,
    framed,
    message_type,
    metadata_request,
    produce_request,
    request_frame,
    schema,
)
from tests.support.wire import new_host

FRAMES = 1200
MIB = 1 << 20
LAST = 0x7EADBEEF
"""The correlation id of the valid request that follows a corrupted one."""


def resident_bytes(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE")


def sound_frame(rng: random.Random, batch: Batch, topic_id: Any) -> bytes:
    """Return a valid request of any data API in any version."""
    api = rng.choice(["produce", "fetch", "list_offsets", "metadata", "api_versions", "init_producer_id", "epochs"])
    acks = rng.choice([1, -1])
    wait = rng.choice([0, 2])
    if api == "produce":
        records = batch(rng.randbytes(rng.randrange(200)))
        request = produce_request(rng.randint(3, 13), "fuzz", records, topic_id, acks=acks)
    elif api == "fetch":
        request = fetch_request(rng.randint(4, 18), "fuzz", rng.randrange(3), topic_id, max_wait_ms=wait)
    elif api == "list_offsets":
        kio = schema("list_offsets", 9, "request")
        entry = kio.ListOffsetsPartition(partition_index=0, timestamp=rng.choice([-1, -2, -3, 5]))
        topics = (kio.ListOffsetsTopic(name="fuzz", partitions=(entry,)),)
        request = kio.ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=topics)
    elif api == "metadata":
        request = metadata_request(rng.randint(0, 13), "fuzz")
    elif api == "api_versions":
        request = message_type("api_versions", 3, "request")(client_software_name="x", client_software_version="1")
    elif api == "init_producer_id":
        kind = message_type("init_producer_id", rng.randint(0, 5), "request")
        request = kind(transactional_id=None, transaction_timeout=timedelta(seconds=1))
    else:
        kio = schema("offset_for_leader_epoch", 4, "request")
        entry = kio.OffsetForLeaderPartition(partition=0, leader_epoch=0)
        request = kio.OffsetForLeaderEpochRequest(topics=(kio.OffsetForLeaderTopic(topic="fuzz", partitions=(entry,)),))
    return request_frame(request, 1)


def spoiled(rng: random.Random, frame: bytes) -> bytes:
    """Return a frame with changed bytes or a missing end, and a correct size, so that the connection can continue."""
    data = bytearray(frame[4:])
    for _ in range(rng.randint(1, 4)):
        data[rng.randrange(len(data))] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
    if rng.random() < 0.2:
        del data[rng.randrange(1, len(data)) :]
    return framed(bytes(data))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_spoiled_frames_disturb_nobody(daemon: Daemon, batch: Batch, seed: int) -> None:
    rng = random.Random(seed)
    neighbour = KafkaWire(daemon.host, daemon.port)
    topic_id = neighbour.topic_id("fuzz")
    neighbour.topic_id(f"neighbour.{seed}")
    behind = request_frame(message_type("api_versions", 0, "request")(), LAST)
    client: KafkaWire | None = None
    before = resident_bytes(daemon.pid)
    for number in range(FRAMES):
        client = client or KafkaWire(daemon.host, daemon.port)
        frame = spoiled(rng, sound_frame(rng, batch, topic_id))
        try:
            client.socket.sendall(frame + behind)
            while int.from_bytes(client.receive_frame()[:4], "big") != LAST:
                pass
        except ConnectionError:
            client.socket.close()
            client = None
        except TimeoutError as error:
            error.add_note(f"seed {seed}, frame {number}: {frame.hex()}")
            raise
        if number % 100 == 0:
            assert neighbour.produce(7, f"neighbour.{seed}", batch(b"neighbour")).base_offset == number // 100
    if client is not None:
        client.socket.close()
    neighbour.socket.close()
    assert daemon.running
    assert "a bug" not in daemon.log
    assert "Traceback" not in daemon.log
    assert resident_bytes(daemon.pid) - before < 30 * MIB


def test_a_produce_of_millions_of_empty_partitions_is_refused_and_takes_no_memory(daemon: Daemon) -> None:
    count = 2_000_000
    body = struct.pack(">hhii", -1, 1, 0, 1) + b"\x00\x01t" + struct.pack(">i", count) + bytes(8 * count)
    data = framed(struct.pack(">hhih", ApiKey.PRODUCE, 3, 1, -1) + body)
    before = resident_bytes(daemon.pid)
    with KafkaWire(daemon.host, daemon.port, new_host()) as client:
        client.socket.sendall(data)
        assert client.is_closed_by_broker()
    assert "more than 50000 array items in one message" in daemon.log
    assert resident_bytes(daemon.pid) - before < 30 * MIB


@pytest.mark.parametrize("api", [api for api in KAFKA_APIS if api.key != ApiKey.PRODUCE], ids=lambda api: api.key.label)
def test_a_large_request_of_an_api_without_records_is_refused_before_it_is_decoded(daemon: Daemon, api: Any) -> None:
    version = api.highest_for(unstable=False)
    header = struct.pack(">hhih", api.key, version, 1, -1) + b"\x00" * (version >= api.flexible_from)
    with KafkaWire(daemon.host, daemon.port, new_host()) as client:
        client.socket.sendall(framed(header + bytes(api.max_body_bytes + 1)))
        assert client.is_closed_by_broker()
    assert f"a {api.key.label} request of {api.max_body_bytes + 1} bytes is above" in daemon.log


def test_more_topics_in_one_request_than_a_broker_can_have_close_its_connection(daemon: Daemon) -> None:
    with KafkaWire(daemon.host, daemon.port, new_host()) as client:
        client.send(metadata_request(4, *[""] * 60_000))
        assert client.is_closed_by_broker()
    assert "more than 50000 array items in one message" in daemon.log


def test_a_topic_that_is_named_many_times_is_answered_once(daemon: Daemon) -> None:
    with KafkaWire(daemon.host, daemon.port, new_host()) as client:
        topic_id = client.topic_id("named")
        client.send(metadata_request(4, *["named"] * 40_000))
        assert [each.name for each in client.receive("metadata", 4).topics] == ["named"]
        kio = schema("metadata", 12, "request")
        topics = (kio.MetadataRequestTopic(topic_id=topic_id, name=None),) * 1000
        answer = client.call("metadata", 12, topics=topics, include_topic_authorized_operations=False)
        assert [each.name for each in answer.topics] == ["named"]


def test_a_frame_above_socket_request_max_bytes_closes_only_its_connection(daemon: Daemon) -> None:
    with KafkaWire(daemon.host, daemon.port) as neighbour, KafkaWire(daemon.host, daemon.port, new_host()) as client:
        client.socket.sendall(struct.pack(">ihhih", 0x7FFFFFFF, 0, 7, 1, -1))
        assert client.is_closed_by_broker()
        assert "is above socket.request.max.bytes" in daemon.log
        assert neighbour.call("api_versions", 0).error_code == 0


def test_a_client_that_goes_during_a_long_poll_disturbs_nobody(daemon: Daemon, batch: Batch) -> None:
    with KafkaWire(daemon.host, daemon.port) as neighbour:
        neighbour.topic_id("gone")
        for _ in range(20):
            with KafkaWire(daemon.host, daemon.port, new_host()) as client:
                client.send(fetch_request(11, "gone", 0, max_wait_ms=60_000))
        assert neighbour.produce(7, "gone", batch()).error_code == 0
    assert "Traceback" not in daemon.log
