"""Requests that are allowed and cost a lot, each kind for some seconds beside a modest client.

An attack runs in a process of its own and returns how many requests, connections or bytes it sent. The broker is a new
one for each, so its longest stall and its largest memory are those of the attack.
"""

from __future__ import annotations

import multiprocessing
import re
import socket
import ssl
import struct
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import trustme

from barnabas.broker.storage.log.append import INLINE_DECOMPRESSED_BYTES
from barnabas.protocol.records import Codec, Record
from tests.support.daemon import Daemon, start_daemon
from tests.support.kafka.kafka_wire import (
    KafkaWire,
    fetch_request,
    message_type,
    metadata_request,
    produce_request,
    request_frame,
    schema,
)
from tests.support.key_updates import key_updates, log_keys
from tests.support.metrics import metric
from tests.support.storage.records import TIMESTAMP, build
from tests.support.tls import pem_bundle, write_private
from tests.torture.hostile.modest_client import modest_client, peak_rss_bytes, rss_bytes

TOPICS = 400
PARTITIONS = 4
"""Of each topic that `create_topics` makes."""
_CREATED_AT_ONCE = 50
_SILENT_PEERS = 4000
_TRICKLING_PEERS = 300
_CLAIMED_BYTES = 30 << 20
_STALLED_READERS = 50
_FLOODING_PEERS = 4
_MIB = 1 << 20

Address = tuple[str, int]


class Outcome(NamedTuple):
    """What one attack did. Times in seconds, sizes in bytes."""

    attack: str
    sent: int
    median_wait: float
    longest_wait: float
    longest_stall: float
    grown: int
    complaints: list[str]


def run(name: str, seconds: float, directory: Path) -> Outcome:
    """Run one attack against a new broker, beside a modest client."""
    encryption = _encryption(directory) if name in NEED_TLS else ()
    with start_daemon(directory, "auto.create.topics.enable=false", *encryption) as daemon:
        with KafkaWire(daemon.host, daemon.port) as kafka:
            create_topics(kafka, TOPICS if name in NEED_TOPICS else 1)
        before = rss_bytes(daemon)
        with modest_client(daemon) as modest, multiprocessing.get_context("spawn").Pool(1) as peers:
            result = peers.apply_async(
                ATTACKS[name], ((daemon.host, _port(daemon, encrypted=bool(encryption))), seconds)
            )
            modest.produce_while(lambda: not result.ready())
            sent = result.get()
            complaints = modest.complaints()
        complaints += [line for line in daemon.log.splitlines() if " ERROR " in line or line.startswith("Traceback")]
        waits = sorted(modest.waits)
        return Outcome(
            name,
            sent,
            waits[len(waits) // 2],
            waits[-1],
            longest_stall(daemon),
            peak_rss_bytes(daemon) - before,
            complaints,
        )


def _encryption(directory: Path) -> tuple[str, ...]:
    """Return the settings of a second listener, with TLS."""
    directory.mkdir()
    key = write_private(directory / "broker.pem", pem_bundle(trustme.CA().issue_cert("127.0.0.1")))
    listeners = "listeners=PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0"
    return listeners, "ssl.keystore.type=PEM", f"ssl.keystore.location={key}"


def _port(daemon: Daemon, *, encrypted: bool) -> int:
    if not encrypted:
        return daemon.port
    found = re.search(r"listening, listener=SSL\S* port=(\d+)", daemon.log)
    assert found
    return int(found[1])


def longest_stall(daemon: Daemon) -> float:
    """Return how long the event loop did not get to its timers, at most, in seconds."""
    return metric(daemon, "barnabas_event_loop_longest_stall_seconds") or 0.0


def create_topics(kafka: KafkaWire, count: int) -> None:
    """Create the topics that the attacks name."""
    kio = schema("create_topics", 7, "request")
    names = topic_names(count)
    for begin in range(0, count, _CREATED_AT_ONCE):
        topics = tuple(
            kio.CreatableTopic(name=name, num_partitions=PARTITIONS, replication_factor=1, assignments=(), configs=())
            for name in names[begin : begin + _CREATED_AT_ONCE]
        )
        kafka.call("create_topics", 7, topics=topics, timeout=timedelta(seconds=30), validate_only=False)


def topic_names(count: int = TOPICS) -> list[str]:
    """Return names that are as long as a name may be, but for the first one."""
    return ["t", *(f"{number:05d}{'a' * 200}" for number in range(1, count))]


# --- compression


def bombs(codec: Codec, size: int, peers: int, address: Address, seconds: float) -> int:
    """Send batches of zeros that decompress to `size` bytes, over several connections with one request in flight."""
    batch = build([Record(0, TIMESTAMP, None, bytes(size))], codec)
    return _repeat(address, seconds, [produce_request(9, "t", batch)], connections=peers)


# --- frames that do not come


def trickled_frames(address: Address, seconds: float) -> int:
    """Claim 30 MiB on each of many connections, and send a few bytes at a time."""
    sent = 0
    peers = [socket.create_connection(address) for _ in range(_TRICKLING_PEERS)]
    for peer in peers:
        peer.sendall(struct.pack(">i", _CLAIMED_BYTES))
    for _ in _until(seconds):
        for peer in peers:
            with suppress(ConnectionError):  # the broker may have closed it
                sent += peer.send(bytes(200))
    _close(peers)
    return sent


def silent_connections(address: Address, seconds: float) -> int:
    """Open thousands of connections that send nothing, close them, and begin again."""
    opened = 0
    for _ in _until(seconds):
        peers = [socket.create_connection(address) for _ in range(_SILENT_PEERS)]
        opened += len(peers)
        _close(peers)
    return opened


def stalled_readers(address: Address, seconds: float) -> int:
    """Ask for records again and again, and read no answer."""
    with KafkaWire(*address) as kafka:
        batch = build([Record(0, TIMESTAMP, None, bytes(900_000))])
        for _ in range(20):
            kafka.produce(9, "t", batch)
    frame = request_frame(fetch_request(11, "t", 0, max_bytes=50 * _MIB), 1) * 20
    asked = 0
    peers = [socket.create_connection(address) for _ in range(_STALLED_READERS)]
    for peer in peers:
        peer.setblocking(False)
    for _ in _until(seconds):
        for peer in peers:
            with suppress(BlockingIOError):
                asked += peer.send(frame) // (len(frame) // 20)
        time.sleep(0.01)
    _close(peers)
    return asked


def key_update_floods(address: Address, seconds: float) -> int:
    """Finish a TLS handshake on several connections, ask for new keys 10,000 times on each, and begin again."""
    sent = 0
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with tempfile.TemporaryDirectory() as directory:
        keys = log_keys(context, Path(directory))
        for _ in _until(seconds):
            floods = []
            for _ in range(_FLOODING_PEERS):
                peer = context.wrap_socket(socket.create_connection(address))
                floods.append((socket.socket(fileno=peer.detach()), key_updates(keys, 10_000)))
            for beneath, updates in floods:
                with suppress(ConnectionError):  # the broker closes it after some of them
                    beneath.sendall(updates)
                sent += len(updates)
            _close([beneath for beneath, _ in floods])
    return sent


# --- requests that name everything


def named_partitions(address: Address, seconds: float) -> int:
    """Name all partitions in Metadata, ListOffsets, Fetch, DescribeConfigs and OffsetFetch."""
    return _repeat(address, seconds, list(_naming_requests()), connections=2)


def _naming_requests() -> Iterator[Any]:
    names = topic_names()
    yield metadata_request(12, *names)
    listing = schema("list_offsets", 7, "request")
    offsets = tuple(
        listing.ListOffsetsPartition(partition_index=number, timestamp=TIMESTAMP) for number in range(PARTITIONS)
    )
    yield listing.ListOffsetsRequest(
        replica_id=-1,
        isolation_level=0,
        topics=tuple(listing.ListOffsetsTopic(name=name, partitions=offsets) for name in names),
    )
    fetching = schema("fetch", 12, "request")
    partitions = tuple(
        fetching.FetchPartition(partition=number, fetch_offset=0, partition_max_bytes=_MIB, last_fetched_epoch=-1)
        for number in range(PARTITIONS)
    )
    yield fetching.FetchRequest(
        replica_id=-1,
        max_wait=timedelta(0),
        min_bytes=1,
        max_bytes=50 * _MIB,
        isolation_level=0,
        topics=tuple(fetching.FetchTopic(topic=name, partitions=partitions) for name in names),
        forgotten_topics_data=(),
        session_epoch=-1,
        rack_id="",
    )
    configs = schema("describe_configs", 4, "request")
    yield configs.DescribeConfigsRequest(
        resources=tuple(
            configs.DescribeConfigsResource(resource_type=2, resource_name=name, configuration_keys=None)
            for name in names
        ),
        include_synonyms=True,
        include_documentation=True,
    )
    committed = schema("offset_fetch", 9, "request")
    topics = tuple(
        committed.OffsetFetchRequestTopics(name=name, partition_indexes=tuple(range(PARTITIONS))) for name in names
    )
    yield committed.OffsetFetchRequest(
        groups=tuple(
            committed.OffsetFetchRequestGroup(group_id=f"g{number}", member_id=None, member_epoch=-1, topics=topics)
            for number in range(20)
        ),
        require_stable=False,
    )


def pathological_expressions(address: Address, seconds: float) -> int:
    """Subscribe groups to expressions on which a backtracking engine would not come back."""
    expressions = ("(a*)*b", "(a|a)*b", "(.*)*(.*)*b", "(a?){200}a{200}", "(?:(?:.?){0,30}){0,30}b")
    kind = message_type("consumer_group_heartbeat", 1, "request")
    requests = [
        kind(
            group_id=f"g{number}",
            member_id=f"m{number}",
            member_epoch=0,
            instance_id=None,
            rack_id=None,
            rebalance_timeout=timedelta(seconds=60),
            subscribed_topic_names=None,
            subscribed_topic_regex=expressions[number % len(expressions)],
            server_assignor=None,
            topic_partitions=(),
        )
        for number in range(200)
    ]
    return _repeat(address, seconds, requests, connections=2)


ATTACKS: dict[str, Callable[[Address, float], int]] = {
    "bombs of 100 MiB in gzip": partial(bombs, Codec.GZIP, 100 * _MIB, 2),
    "bombs of 100 MiB in lz4": partial(bombs, Codec.LZ4, 100 * _MIB, 2),
    "bombs of 100 MiB in zstd": partial(bombs, Codec.ZSTD, 100 * _MIB, 2),
    "bombs of 15 MiB in snappy": partial(bombs, Codec.SNAPPY, 15 * _MIB, 2),
    "bombs that are just small enough for the event loop": partial(
        bombs, Codec.GZIP, INLINE_DECOMPRESSED_BYTES - 1000, 8
    ),
    "claimed and trickled frames": trickled_frames,
    "silent connections": silent_connections,
    "readers that do not read": stalled_readers,
    "floods of TLS key updates": key_update_floods,
    "requests that name all partitions": named_partitions,
    "pathological expressions": pathological_expressions,
}
NEED_TLS = {"floods of TLS key updates"}
NEED_TOPICS = {"requests that name all partitions", "pathological expressions"}


def _repeat(address: Address, seconds: float, requests: Sequence[Any], *, connections: int) -> int:
    """Send the requests in turn, one in flight on each connection; return how many were answered."""
    frames = [request_frame(request, number) for number, request in enumerate(requests)]
    peers = [KafkaWire(*address) for _ in range(connections)]
    answered = 0
    for _ in _until(seconds):
        for place, peer in enumerate(peers):
            peer.socket.sendall(frames[(answered + place) % len(frames)])
        for peer in peers:
            peer.receive_frame()
            answered += 1
    for peer in peers:
        peer.socket.close()
    return answered


def _until(seconds: float) -> Iterator[None]:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        yield


def _close(peers: Sequence[socket.socket]) -> None:
    for peer in peers:
        peer.close()
