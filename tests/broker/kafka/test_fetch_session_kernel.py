"""Incremental fetches through the compiled path and through Python: equal bytes and equal counters.

Both brokers start from copies of one data directory. Session ids are random, so they are left out of the comparison.
"""

from __future__ import annotations

import os
import random
import shutil
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from barnabas.protocol.compression import Codec
from tests.support.daemon import Daemon, start_daemon
from tests.support.kafka.fetch_sessions import Place, SessionFetcher
from tests.support.kafka.kafka_wire import KafkaWire
from tests.support.kafka.two_brokers import Topic, create_topics
from tests.support.metrics import wait_for_metric
from tests.support.storage.kernels import load_kernel
from tests.support.storage.records import plain

PLACES: tuple[Place, ...] = (("one", 0), ("one", 1), ("many", 0), ("many", 1), ("many", 2), ("large", 0))
ROUNDS = 1_500 if "BARNABAS_TORTURE" in os.environ else 600
WAKES = 30
LONG_POLL_MS = 60_000
WIDE = 80
"""Partitions of a topic of which many are pending at once."""
SHARED_SAMPLES = (
    "barnabas_topic_sent_bytes_total",
    "barnabas_topic_sent_records_total",
    "barnabas_request_errors_total",
    "barnabas_request_duration_seconds_count",
    "barnabas_fetch_session",
)


class SessionPair:
    """The same client at both brokers, with one fetch session at each."""

    def __init__(self, daemons: Sequence[Daemon], version: int) -> None:
        self.daemons = daemons
        self.version = version
        self.fetchers = [SessionFetcher(KafkaWire(each.host, each.port), version) for each in daemons]

    def close(self) -> None:
        for fetcher in self.fetchers:
            fetcher.wire.socket.close()

    def send(self, positions: Mapping[Place, int], forget: Sequence[Place] = (), **settings: Any) -> None:
        for fetcher in self.fetchers:
            fetcher.send(positions, forget, **settings)

    def receive(self) -> bytes:
        """Return the response of both without its session id. Asserts that they are equal."""
        responses = []
        at = (9 if self.version >= 12 else 8) + 2
        for fetcher in self.fetchers:
            frame = fetcher.wire.receive_frame()
            session_id = int.from_bytes(frame[at : at + 4], "big")
            if frame[at - 2 : at] == bytes(2):
                fetcher.session_id = session_id
                fetcher.epoch = fetcher.epoch + 1 if session_id else 0
            else:
                fetcher.session_id = fetcher.epoch = 0
            responses.append(frame[:at] + bytes([session_id > 0]) + frame[at + 4 :])
        compiled, python = responses
        assert compiled == python
        assert self.fetchers[0].epoch == self.fetchers[1].epoch
        return compiled

    def fetch(self, positions: Mapping[Place, int], forget: Sequence[Place] = (), **settings: Any) -> bytes:
        self.send(positions, forget, **settings)
        return self.receive()

    @property
    def is_open(self) -> bool:
        return self.fetchers[0].epoch > 0


def _samples(daemon: Daemon) -> dict[str, float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{daemon.metrics_port}/metrics", timeout=30) as answer:
        lines = [line.rpartition(" ") for line in answer.read().decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in lines if name.startswith(SHARED_SAMPLES)}


@pytest.fixture(scope="module")
def daemons(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sequence[Daemon]]:
    load_kernel("compiled", {"compiled": "barnabas.broker.handlers.data.kernels._fetch"})
    directory = tmp_path_factory.mktemp("pair")
    settings = ("num.partitions=3", "log.segment.bytes=40000", "log.index.interval.bytes=500", "fetch.max.bytes=90000")
    with start_daemon(directory / "compiled", *settings) as daemon, KafkaWire(daemon.host, daemon.port) as kafka:
        for topic in dict.fromkeys(topic for topic, _ in PLACES):
            kafka.topic_id(topic)
        create_topics(kafka, {"wide": Topic(WIDE, {})})
        chosen = random.Random(1)
        for _ in range(100):
            kafka.produce(9, "many", plain(chosen.randrange(1, 30)), partition=chosen.choice([0, 1, 1, 1, 2]))
        for codec in (Codec.NONE, Codec.GZIP):
            kafka.produce(9, "one", plain(5, codec))
            kafka.produce(9, "large", plain(900, codec))
    (directory / "python").mkdir()
    shutil.copytree(directory / "compiled" / "data", directory / "python" / "data")
    with (
        start_daemon(directory / "compiled", *settings, environ={"BARNABAS_KERNEL": "compiled"}) as compiled,
        start_daemon(directory / "python", *settings, environ={"BARNABAS_KERNEL": "python"}) as reference,
    ):
        yield compiled, reference


def _produce(daemons: Sequence[Daemon], place: Place, count: int) -> None:
    for daemon in daemons:
        with KafkaWire(daemon.host, daemon.port) as wire:
            assert wire.produce(9, place[0], plain(count), partition=place[1]).error_code == 0


def _ends(pair: SessionPair) -> dict[Place, int]:
    """Return the ends of all partitions, from a full request at both brokers, whose sessions stay open."""
    answers = []
    for daemon in pair.daemons:
        with KafkaWire(daemon.host, daemon.port) as wire:
            answers.append(SessionFetcher(wire, 12).open(dict.fromkeys(PLACES, 0), partition_bytes=0))
    return {(topic, number): end for topic, number, _, end, *_ in answers[0].results}


def _positions(chosen: random.Random, ends: Mapping[Place, int], places: Sequence[Place]) -> dict[Place, int]:
    """Return offsets, mostly at the end or before, of a few partitions."""
    positions = {}
    for place in chosen.sample(list(places), min(len(places), chosen.choice([0, 1, 1, 2, 9]))):
        end = ends[place]
        positions[place] = chosen.choice([end, end, end, max(0, end - 3), chosen.randrange(end + 1)])
        if chosen.random() < 0.02:
            positions[place] = 1 << 40
    return positions


def _settings(chosen: random.Random) -> dict[str, Any]:
    settings = {
        "max_bytes": chosen.choice([1, 900, 30_000, 1 << 20]),
        "partition_bytes": chosen.choice([0, 100, 5_000, 1 << 20, -1]),
        "min_bytes": chosen.choice([0, 1, 1, 2_000]),
        "max_wait_ms": chosen.choice([0, 0, 0, 5]),
    }
    if chosen.random() < 0.04:
        settings["leader_epoch"] = 9
    if chosen.random() < 0.2:
        settings["last_epoch"] = chosen.choice([0, 0, 0, 1])
    if chosen.random() < 0.04:
        settings["isolation"] = 1
    if chosen.random() < 0.02:
        settings["epoch"] = chosen.choice([7_000, -1, 0])
    return settings


def _step(pair: SessionPair, chosen: random.Random, ends: dict[Place, int], places: list[Place]) -> None:
    """Send one random incremental request, perhaps after an append."""
    if chosen.random() < 0.25:
        place = chosen.choice(places)
        count = chosen.randrange(1, 9)
        _produce(pair.daemons, place, count)
        ends[place] += count
    forget: list[Place] = []
    if chosen.random() < 0.03:
        forget.append(places.pop())
    elif chosen.random() < 0.03:
        places[:] = PLACES
    known = places or [*PLACES]
    pair.fetch(_positions(chosen, ends, known), forget, **_settings(chosen))
    if not places:
        places[:] = PLACES


@pytest.mark.parametrize("version", [7, 10, 12, 13, 17])
def test_random_sessions_have_equal_responses_and_counters(daemons: Sequence[Daemon], version: int) -> None:
    chosen = random.Random(version)
    pair = SessionPair(daemons, version)
    ends = _ends(pair)
    places = [*PLACES]
    continued = 0
    for _ in range(ROUNDS // 5):
        if not pair.is_open:
            chosen.shuffle(places)
            pair.fetch({place: chosen.choice([0, ends[place]]) for place in places}, partition_bytes=200)
            assert pair.is_open
        _step(pair, chosen, ends, places)
        continued += pair.is_open
    assert continued > ROUNDS // 5 * 0.8
    pair.fetch({}, epoch=-1)
    pair.close()
    compiled, python = (_samples(daemon) for daemon in daemons)
    assert compiled == python
    assert any(name.startswith("barnabas_topic_sent_records_total") and value > 0 for name, value in compiled.items())


@pytest.mark.parametrize("version", [7, 17])
def test_a_session_with_many_pending_partitions_has_equal_responses(daemons: Sequence[Daemon], version: int) -> None:
    pair = SessionPair(daemons, version)
    wide: list[Place] = [("wide", number) for number in range(WIDE)]
    mixed: list[Place] = [*wide[::2], *PLACES, *wide[1::2]]
    pair.fetch(dict.fromkeys(mixed, 0), max_bytes=1)
    for place in random.Random(version).sample(wide, 70):
        _produce(daemons, place, 1)
    for limit in (1, 2_000):
        pair.fetch({}, max_bytes=limit)
    assert len(pair.fetch({})) > 70 * len(plain(1))
    assert len(pair.fetch(dict.fromkeys(wide, 1))) > 100
    pair.close()


@pytest.mark.parametrize("version", [7, 13, 17])
@pytest.mark.parametrize("isolation", [0, 1])
def test_woken_sessions_have_equal_responses(daemons: Sequence[Daemon], version: int, isolation: int) -> None:
    chosen = random.Random(version)
    pair = SessionPair(daemons, version)
    ends = _ends(pair)
    pair.fetch(ends, isolation=isolation)
    positions: dict[Place, int] = {}
    for _ in range(WAKES // 6):
        pair.send(positions, max_wait_ms=LONG_POLL_MS, isolation=isolation)
        for daemon in daemons:
            wait_for_metric(daemon, "barnabas_fetches_waiting", 1)
        place = chosen.choice(PLACES)
        count = chosen.randrange(1, 9)
        _produce(daemons, place, count)
        assert len(pair.receive()) > 100
        ends[place] += count
        positions = {place: ends[place]}
        for daemon in daemons:
            wait_for_metric(daemon, "barnabas_fetches_waiting", 0)
    pair.close()


@pytest.mark.parametrize("missing", [("missing", 0), ("one", 9)])
@pytest.mark.parametrize("version", [7, 12])
def test_a_session_with_a_missing_partition_waits_for_the_others(
    daemons: Sequence[Daemon], version: int, missing: Place
) -> None:
    pair = SessionPair(daemons, version)
    ends = _ends(pair)
    pair.fetch({**ends, missing: 0})
    positions: dict[Place, int] = {}
    for _ in range(3):
        pair.send(positions, max_wait_ms=LONG_POLL_MS)
        for daemon in daemons:
            wait_for_metric(daemon, "barnabas_fetches_waiting", 1)
        _produce(daemons, ("many", 1), 3)
        assert len(pair.receive()) > 150
        ends["many", 1] += 3
        positions = {("many", 1): ends["many", 1]}
        for daemon in daemons:
            wait_for_metric(daemon, "barnabas_fetches_waiting", 0)
    pair.close()


def test_a_wait_ends_when_its_session_gets_another_request_or_is_closed(daemons: Sequence[Daemon]) -> None:
    pair = SessionPair(daemons, 17)
    others = SessionPair(daemons, 17)
    ends = _ends(pair)
    for epoch in (0, -1, 2):
        pair.fetch(ends, epoch=0)
        pair.send({}, epoch=1, max_wait_ms=LONG_POLL_MS)
        for daemon in daemons:
            wait_for_metric(daemon, "barnabas_fetches_waiting", 1)
        for each, other in zip(pair.fetchers, others.fetchers, strict=True):
            other.session_id = each.session_id
        others.fetch(ends, epoch=epoch)
        pair.receive()
        for daemon in daemons:
            wait_for_metric(daemon, "barnabas_fetches_waiting", 0)
    pair.close()
    others.close()
