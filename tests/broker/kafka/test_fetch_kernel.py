"""Fetch through the compiled path and through Python: equal bytes and equal counters for the same requests.

Both brokers start from copies of one data directory, so that topic ids are equal.
"""

from __future__ import annotations

import random
import shutil
import urllib.request
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

import pytest

from barnabas.protocol.compression import Codec
from barnabas.protocol.records.record import Record
from tests.support.daemon import Daemon, start_daemon
from tests.support.kafka.broker_pair import Pair
from tests.support.kafka.kafka_wire import KafkaWire, request_frame, schema
from tests.support.metrics import wait_for_metric
from tests.support.storage.bench import START_MS
from tests.support.storage.kernels import load_kernel
from tests.support.storage.records import build, plain

COMPILED, PYTHON = 0, 1
TOPICS = ("one", "many", "large", "fresh")
ROUNDS = 500
LATE_MS = 300
LONG_POLL_MS = 60_000
SHARED_SAMPLES = (
    "barnabas_topic_sent_bytes_total",
    "barnabas_topic_sent_records_total",
    "barnabas_request_errors_total",
    "barnabas_request_duration_seconds_count",
)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    load_kernel("compiled", {"compiled": "barnabas.broker.handlers.data.kernels._fetch"})
    directory = tmp_path_factory.mktemp("pair")
    settings = ("num.partitions=3", "log.segment.bytes=40000", "log.index.interval.bytes=500", "fetch.max.bytes=90000")
    with start_daemon(directory / "compiled", *settings) as daemon, KafkaWire(daemon.host, daemon.port) as kafka:
        topic_ids = {topic: kafka.topic_id(topic) for topic in TOPICS}
        chosen = random.Random(1)
        for _ in range(150):
            kafka.produce(9, "many", plain(chosen.randrange(1, 30)), partition=chosen.choice([0, 1, 1, 1, 2]))
        for codec in (Codec.NONE, Codec.GZIP):
            kafka.produce(9, "one", plain(5, codec))
            kafka.produce(9, "large", plain(900, codec))
    (directory / "python").mkdir()
    shutil.copytree(directory / "compiled" / "data", directory / "python" / "data")
    python = {"BARNABAS_KERNEL": "python"}
    with (
        start_daemon(directory / "compiled", *settings, environ={"BARNABAS_KERNEL": "compiled"}) as compiled,
        start_daemon(directory / "python", *settings, environ=python) as reference,
    ):
        both = Pair((compiled, reference), topic_ids)
        yield both
        both.close()


def _fetch(pair: Pair, version: int, partitions: Sequence[tuple[str, int, int, int]], **changes: Any) -> bytes:
    """Return a frame; `partitions` are topic, number, offset and max_bytes."""
    kio = schema("fetch", version, "request")
    epoch, last_epoch = changes.pop("leader_epoch", -1), changes.pop("last_epoch", -1)
    topics: dict[str, list[Any]] = {}
    for topic, number, offset, max_bytes in partitions:
        fields = {"current_leader_epoch": epoch} if version >= 9 else {}
        if version >= 12:
            fields["last_fetched_epoch"] = last_epoch
        entry = kio.FetchPartition(partition=number, fetch_offset=offset, partition_max_bytes=max_bytes, **fields)
        topics.setdefault(topic, []).append(entry)
    fields = {"replica_id": changes.pop("replica_id", -1)} if version < 15 else {}
    if version >= 7:
        fields |= {"forgotten_topics_data": (), "session_epoch": changes.pop("session_epoch", -1)}
    if version >= 11:
        fields["rack_id"] = changes.pop("rack_id", "")
    for gone in ("replica_id", "session_epoch", "rack_id"):
        changes.pop(gone, None)
    client_id = changes.pop("client_id", "wire")
    unknown = pair.topic_ids["one"].__class__(int=9)
    request = kio.FetchRequest(
        max_wait=timedelta(milliseconds=changes.pop("max_wait_ms", 0)),
        min_bytes=changes.pop("min_bytes", 1),
        max_bytes=changes.pop("max_bytes", 1 << 20),
        isolation_level=changes.pop("isolation", 0),
        topics=tuple(
            kio.FetchTopic(
                **({"topic_id": pair.topic_ids.get(name, unknown)} if version >= 13 else {"topic": name}),
                partitions=tuple(entries),
            )
            for name, entries in topics.items()
        ),
        **fields,
    )
    assert not changes
    return request_frame(request, 77, client_id)


def _plain_frame(pair: Pair, chosen: random.Random) -> bytes:
    """Return a request of partitions that have records, with limits that matter."""
    names = [("one", 0), ("many", 0), ("many", 1), ("many", 2), ("large", 0)]
    listed = chosen.sample(names, chosen.randrange(1, 6))
    return _fetch(
        pair,
        chosen.randrange(4, 19),
        [(topic, number, chosen.randrange(10), chosen.choice([60, 700, 1 << 20])) for topic, number in listed],
        max_bytes=chosen.choice([1, 300, 900, 4_000, 1 << 20]),
        isolation=chosen.randrange(2),
    )


def _random_frame(pair: Pair, chosen: random.Random) -> bytes:
    if chosen.random() < 0.4:
        return _plain_frame(pair, chosen)
    version = chosen.randrange(4, 19)
    partitions = []
    for _ in range(chosen.choice([1, 1, 1, 2, 4, 12])):
        topic = chosen.choice([*TOPICS[:3], *TOPICS[:3], "missing"])
        offset = chosen.choice([0, 4, 9, 10, 11, 300, 900, 1800, chosen.randrange(2300), -1, 1 << 40])
        max_bytes = chosen.choice([0, 1, 100, 5_000, 20_000, 1 << 20, -1])
        partitions.append((topic, chosen.choice([0, 1, 1, 2, 3, -1]), offset, max_bytes))
    return _fetch(
        pair,
        version,
        partitions,
        leader_epoch=chosen.choice([-1, -1, 0, 1, 2]),
        last_epoch=chosen.choice([-1, -1, -1, 0, 1, 2]),
        replica_id=chosen.choice([-1, -1, -1, -2, 0]),
        session_epoch=chosen.choice([-1, -1, -1, -1, 3]),
        rack_id=chosen.choice(["", "", "rack"]),
        min_bytes=chosen.choice([0, 1, 1, 100_000, -1]),
        max_bytes=chosen.choice([0, 1, 3_000, 30_000, 1 << 20, -1]),
        isolation=chosen.choice([0, 0, 1, 1, 2]),
        client_id=chosen.choice(["wire", "", "ünï", None]),
    )


def _mutated(frame: bytes, chosen: random.Random) -> bytes:
    """Return the frame with flipped bits, or shorter or longer, and its size field right. It may wait."""
    data = bytearray(frame[4:])
    if chosen.random() < 0.1:
        del data[-chosen.randrange(1, 4) :]  # no field is broken but the last ones
        return len(data).to_bytes(4, "big") + data
    for _ in range(chosen.choice([1, 1, 2])):
        data[chosen.randrange(2, len(data))] ^= 1 << chosen.randrange(8)
    if chosen.random() < 0.2:
        del data[chosen.randrange(8, len(data)) :]
    elif chosen.random() < 0.2:
        data += bytes(chosen.randrange(256) for _ in range(chosen.randrange(1, 9)))
    return len(data).to_bytes(4, "big") + data


def _samples(daemon: Daemon) -> dict[str, float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{daemon.metrics_port}/metrics", timeout=30) as answer:
        lines = [line.rpartition(" ") for line in answer.read().decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in lines if name.startswith(SHARED_SAMPLES)}


def test_random_requests_have_equal_responses_and_counters(pair: Pair) -> None:
    chosen = random.Random(17)
    answered = 0
    for _ in range(ROUNDS):
        answered += isinstance(pair.call(_random_frame(pair, chosen)), bytes)
        if chosen.random() < 0.05:
            pair.produce(chosen.choice(TOPICS[:3]), plain(chosen.randrange(1, 9)), chosen.randrange(3))
    assert answered > ROUNDS * 0.9
    compiled, python = (_samples(daemon) for daemon in pair.daemons)
    assert compiled == python
    assert any(name.startswith("barnabas_topic_sent_records_total") and value > 0 for name, value in compiled.items())


def test_broken_requests_have_equal_outcomes(pair: Pair) -> None:
    chosen = random.Random(18)
    for _ in range(ROUNDS):
        for wire in pair.wires:
            wire.socket.settimeout(LATE_MS / 1000)
        pair.call(_mutated(_random_frame(pair, chosen), chosen))


def ensure_woken_alike(pair: Pair) -> None:
    """Produce where both brokers have a fetch that waits, and compare the responses."""
    for daemon in pair.daemons:
        wait_for_metric(daemon, "barnabas_fetches_waiting", 1)
    others = Pair(pair.daemons, pair.topic_ids)
    others.produce("one", plain(3), 2)
    others.close()
    compiled, python = pair.receive()
    assert compiled == python
    assert len(compiled) > 150
    for daemon in pair.daemons:
        wait_for_metric(daemon, "barnabas_fetches_waiting", 0)


@pytest.mark.parametrize("version", range(4, 19))
def test_a_woken_fetch_has_an_equal_response(pair: Pair, version: int) -> None:
    waiting = [(topic, 2, _end(pair, topic, 2), 1 << 20) for topic in ("one", "many")]
    pair.send(_fetch(pair, version, waiting, max_wait_ms=LONG_POLL_MS, isolation=version % 2))
    ensure_woken_alike(pair)


@pytest.mark.parametrize("missing", [("missing", 0), ("one", 9)])
@pytest.mark.parametrize("version", [4, 12, 17])
def test_a_fetch_that_names_a_missing_partition_waits_for_the_others(
    pair: Pair, version: int, missing: tuple[str, int]
) -> None:
    waiting = sorted([(*missing, 0, 1 << 20), ("one", 2, _end(pair, "one", 2), 1 << 20)])
    pair.send(_fetch(pair, version, waiting, max_wait_ms=LONG_POLL_MS))
    ensure_woken_alike(pair)


def _end(pair: Pair, topic: str, partition: int) -> int:
    """Return the high watermark, from the response to a fetch of version 4."""
    response = pair.call(_fetch(pair, 4, [(topic, partition, 0, 0)]))
    assert isinstance(response, bytes)
    at = 4 + 4 + 4 + 2 + len(topic) + 4 + 4 + 2
    return int.from_bytes(response[at : at + 8], "big")


def test_consumers_that_are_woken_together_get_the_same_records(pair: Pair) -> None:
    end = _end(pair, "one", 1)
    clients = [Pair(pair.daemons, pair.topic_ids) for _ in range(4)]
    for number, client in enumerate(clients):
        offset = end if number else 0  # one reads from the start, so its records end with the same batch
        client.send(
            _fetch(pair, 12, [("one", 1, offset, 1 << 20)], max_wait_ms=LONG_POLL_MS, min_bytes=1 if number else 60_000)
        )
    for daemon in pair.daemons:
        wait_for_metric(daemon, "barnabas_fetches_waiting", 4)
    for count in (1, 2, 3):
        pair.produce("one", plain(count), 1)
        for client in clients[1:]:
            compiled, python = client.receive()
            assert compiled == python
            client.send(_fetch(pair, 12, [("one", 1, end + count, 1 << 20)], max_wait_ms=LONG_POLL_MS))
        end += count
        for daemon in pair.daemons:
            wait_for_metric(daemon, "barnabas_fetches_waiting", 4)
    for client in clients:
        client.close()
    for daemon in pair.daemons:
        wait_for_metric(daemon, "barnabas_fetches_waiting", 0)


def test_woken_fetches_of_two_partitions_get_their_own_records_at_equal_positions(pair: Pair) -> None:
    clients = [Pair(pair.daemons, pair.topic_ids) for _ in range(2)]
    for number, client in enumerate(clients):
        client.send(_fetch(pair, 12, [("fresh", number, 0, 1 << 20)], max_wait_ms=LONG_POLL_MS))
    for daemon in pair.daemons:
        wait_for_metric(daemon, "barnabas_fetches_waiting", 2)
    for number, value in enumerate((b"first", b"other")):
        pair.produce("fresh", build([Record(0, START_MS, None, value, ())]), number)
    for client, value in zip(clients, (b"first", b"other"), strict=True):
        compiled, python = client.receive()
        assert compiled == python
        assert isinstance(compiled, bytes)
        assert value in compiled
        client.close()


def test_a_fetch_is_answered_when_its_time_is_over(pair: Pair) -> None:
    end = _end(pair, "one", 0)
    compiled = pair.call(_fetch(pair, 12, [("one", 0, end, 1 << 20)], max_wait_ms=30))
    assert isinstance(compiled, bytes)
