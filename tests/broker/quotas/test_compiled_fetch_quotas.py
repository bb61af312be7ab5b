"""Fetches of clients with quotas: the compiled handler counts and answers as the Python one."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from time import perf_counter
from typing import Any, cast
from uuid import UUID

import pytest

from barnabas.broker.handlers.data.fetch import FetchHandler
from barnabas.broker.handlers.data.fetch_contexts import FetchContexts
from barnabas.broker.handlers.data.fetch_session_cache import FetchSessionCache
from barnabas.broker.metadata.security.image import quota_entity
from barnabas.broker.network.dispatch import Dispatcher
from barnabas.broker.partitions.partition import Partition
from barnabas.broker.partitions.registry import PartitionRegistry
from barnabas.broker.probes import BrokerProbes
from barnabas.broker.quotas.manager import QuotaManager, QuotaWindows
from barnabas.broker.quotas.session_quota import SessionQuota
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.kafka.kafka_wire import request_frame, schema
from tests.support.manual_loop import ManualLoop
from tests.support.piped_connection import Harness
from tests.support.storage.records import plain
from tests.support.transactions.real_partitions import RealPartitions

pytest.importorskip("barnabas.broker.handlers.data.kernels._fetch")
if os.environ.get("BARNABAS_KERNEL") == "python":
    pytest.skip("the kernels are turned off", allow_module_level=True)

TOPIC = "a"
TOPIC_ID = b"a" * 16
PARTITIONS = 3
FETCH_MAX_BYTES = 90_000
BYTE_RATE = "consumer_byte_rate"
REQUEST_TIME = "request_percentage"
UNREACHED = 1e12
RESPONSE_BYTES = 16 + 18 + 40
"""What a response for one partition counts besides its records."""

Position = tuple[int, int, int]
"""Partition, offset, max_bytes."""


class FetchBroker:
    """One connection of a broker with real logs, whose one client has quotas, and a clock that the test advances."""

    def __init__(self, directory: Path, loop: ManualLoop, *, is_compiled: bool) -> None:
        from barnabas.broker.handlers.data.kernels._fetch import FetchKernel  # optional
        from barnabas.broker.network.kernels._frames import FrameRun

        directory.mkdir()
        self.now_ms = 0
        self.session_id = 0
        self.probes = probes = BrokerProbes()
        self._loop = loop
        self._places = {(TOPIC, number): TOPIC_ID for number in range(PARTITIONS)}
        self.real = RealPartitions(directory, self._places, loop)
        registry = PartitionRegistry()
        for place in self._places:
            log = self.real.all[place].log
            registry.add(TopicPartition(*place), Partition(log, 0, TOPIC_ID, probes.topic(TOPIC), loop))
        self._registry = registry
        names = {TOPIC_ID: TOPIC}
        cache = FetchSessionCache(100, time.monotonic, probes.fetch_sessions)
        contexts = FetchContexts(cache, registry, names.get, time.monotonic)
        handler = FetchHandler(registry, probes, loop, cast("Any", None), FETCH_MAX_BYTES, names.get, 1, contexts)
        self._dispatcher = Dispatcher({ApiKey.FETCH: handler}, probes, loop)
        self.harness = Harness(self._dispatcher.serve)
        self.quotas = QuotaManager(lambda: self.now_ms, probes.quotas, QuotaWindows())
        self.quotas.replace({})
        self.quotas.opened(self.harness.connection)
        if is_compiled:
            kernel = FetchKernel(probes.api("fetch"), registry, probes, loop, FETCH_MAX_BYTES, handler.answer_now)
            handler.use_kernel(kernel)
            frames = FrameRun({int(ApiKey.FETCH): kernel})
            frames.use(lambda *arguments: self._dispatcher.serve(*arguments))
            self.harness.connection._frames = frames

    def limit(self, **rates: float) -> None:
        """Set the quotas of all clients."""
        self.quotas.replace({quota_entity([("client-id", None)]): rates} if rates else {})

    def forbid_python(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Fail the test at the next request that the kernel does not answer and count itself."""
        connection = self.harness.connection
        connection._serve = self._dispatcher.serve = (  # type: ignore[method-assign]
            lambda *_: pytest.fail("the request was not plain")
        )
        for name in ("begin", "fetched", "finish"):
            monkeypatch.setattr(SessionQuota, name, lambda *_, **__: pytest.fail("counted in Python"))

    def append(self, number: int, count: int) -> int:
        """Append one batch, wake the fetches that wait for it, and return its size."""
        partition = self._registry.get(TOPIC, number)
        assert partition is not None
        records = plain(count)
        partition.append(memoryview(bytearray(records)))
        self._loop.settle()
        return len(records)

    def fetch(self, version: int, positions: Sequence[Position], **settings: int) -> bytes:
        """Send a request; return the response, b"" if it waits, with zeros for the session's id."""
        self.harness.feed(request_frame(self._request(version, positions, settings), 1, "app"))
        return self.response(version)

    def response(self, version: int) -> bytes:
        """Return the response sent since the last call, with zeros for the session's id."""
        found, self.harness.pipe.written = self.harness.pipe.written, b""
        if found and version >= 7:
            at = 8 + (version >= 12) + 4 + 2
            self.session_id = int.from_bytes(found[at : at + 4])
            found = found[:at] + bytes(4) + found[at + 4 :]
        return found

    def throttle_ms(self, response: bytes, version: int) -> int:
        at = 8 + (version >= 12)
        return int.from_bytes(response[at : at + 4])

    def _request(self, version: int, positions: Sequence[Position], settings: dict[str, int]) -> Any:
        kio = schema("fetch", version, "request")
        key = {"topic_id": UUID(bytes=TOPIC_ID)} if version >= 13 else {"topic": TOPIC}
        epoch = {"current_leader_epoch": -1} if version >= 9 else {}
        entries = tuple(
            kio.FetchPartition(partition=number, fetch_offset=offset, partition_max_bytes=max_bytes, **epoch)
            for number, offset, max_bytes in positions
        )
        fields: dict[str, Any] = {"replica_id": -1} if version < 15 else {}
        if version >= 7:
            in_session = settings.get("session_epoch", -1) > 0
            fields["session_epoch"] = settings.get("session_epoch", -1)
            fields["session_id"] = self.session_id if in_session else 0
            fields["forgotten_topics_data"] = ()
        if version >= 11:
            fields["rack_id"] = ""
        return kio.FetchRequest(
            max_wait=timedelta(milliseconds=settings.get("max_wait_ms", 0)),
            min_bytes=settings.get("min_bytes", 1),
            max_bytes=settings.get("max_bytes", 1 << 20),
            isolation_level=0,
            topics=(kio.FetchTopic(**key, partitions=entries),) if entries else (),
            **fields,
        )

    def pass_ms(self, duration_ms: int, version: int) -> bytes:
        """Let time pass, which may end a mute; return the response to the request that waited for that."""
        self.now_ms += duration_ms
        self.harness.clock.pass_to(self.now_ms / 1000)
        return self.response(version)

    def counted(self) -> list[object]:
        """Return the samples of the fetch buckets, the mute, and the counters."""
        probe = self.probes.quotas
        topic = self.probes.topic(TOPIC)
        found: list[object] = [self.harness.connection._muted_until, probe.throttled_requests, probe.throttle_seconds]
        found += [topic.bytes_out, topic.records_out, self.probes.fetches_waiting, sum(self.probes.api("fetch").counts)]
        for sharing, bucket in self.quotas.fetch._buckets.items():
            rate = bucket.rate
            found.append((sharing, bucket.users, rate.samples(), rate.per_second(self.now_ms)))
        return found

    def requested(self) -> float:
        """Return the request time that was counted, in seconds."""
        (bucket,) = self.quotas.request._buckets.values()
        return bucket.tally.total / 100


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[tuple[FetchBroker, FetchBroker]]:
    loop = ManualLoop()
    compiled = FetchBroker(tmp_path / "compiled", loop, is_compiled=True)
    python = FetchBroker(tmp_path / "python", loop, is_compiled=False)
    yield compiled, python
    compiled.real.close()
    python.real.close()
    loop.close()


@pytest.mark.parametrize("seed", range(3))
def test_random_fetches_are_counted_and_throttled_alike(brokers: tuple[FetchBroker, FetchBroker], seed: int) -> None:
    chance = random.Random(seed)
    epoch = -1
    version = 12

    def at_both(call: str, *arguments: Any, **settings: int) -> bytes:
        compiled, python = [getattr(broker, call)(*arguments, **settings) for broker in brokers]
        assert compiled == python
        assert brokers[0].counted() == brokers[1].counted()
        found: bytes = compiled
        return found

    for broker in brokers:
        broker.limit(**{BYTE_RATE: 3000.0})
        for number in (0, 0, 1, 2):
            broker.append(number, 5)
    for _ in range(250):
        if chance.random() < 0.05:
            rate = chance.choice([UNREACHED, 3000.0, 500.0, 20.0, float("nan"), 0.0])
            for broker in brokers:
                broker.limit(**({BYTE_RATE: rate} if rate else {}))
        if epoch < 0 or chance.random() < 0.1:
            version = chance.choice([4, 7, 11, 12, 13, 17])
            epoch = chance.choice([-1, 0]) if version >= 7 else -1
        numbers = sorted(chance.sample(range(PARTITIONS), chance.choice([1, 1, 2, 3])))
        positions = [(number, chance.choice([0, 5, 10, 3]), chance.choice([200, 1 << 20])) for number in numbers]
        if epoch > 0 and chance.random() < 0.5:
            positions = []
        waits = chance.random() < 0.5
        response = at_both(
            "fetch",
            version,
            positions,
            session_epoch=epoch,
            max_wait_ms=600_000 if waits else 0,
            min_bytes=chance.choice([1, 1, 700]),
            max_bytes=chance.choice([500, 1 << 20, 1 << 20]),
        )
        tries = 0
        while not response:
            response = at_both("pass_ms", chance.choice([400, 1000, 30_000]), version)
            for number in range(PARTITIONS):
                assert brokers[0].append(number, 2) == brokers[1].append(number, 2)
            response = response or at_both("response", version)
            tries += 1
            assert tries < 100
        epoch = epoch + 1 if epoch >= 0 else -1
        at_both("pass_ms", chance.choice([0, 0, 1, 300, 1000, 5000]), version)


def test_a_fetch_within_its_quotas_is_counted_without_python(
    brokers: tuple[FetchBroker, FetchBroker], monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = brokers[0]
    broker.limit(**{BYTE_RATE: UNREACHED, REQUEST_TIME: UNREACHED})
    size = broker.append(0, 5)
    started = perf_counter()
    for _ in range(2):
        assert broker.fetch(12, [(0, 0, 1 << 20)])
    broker.forbid_python(monkeypatch)
    before = broker.requested()
    assert broker.throttle_ms(broker.fetch(12, [(0, 0, 1 << 20)]), 12) == 0
    assert before < broker.requested() < perf_counter() - started
    (bucket,) = broker.quotas.fetch._buckets.values()
    assert bucket.tally.total == 3 * (RESPONSE_BYTES + size)
    # A fetch that waits counts when it is answered, and no time of its wait.
    before = broker.requested()
    waited = perf_counter()
    assert broker.fetch(12, [(0, 5, 1 << 20)], max_wait_ms=600_000) == b""
    assert broker.requested() == before
    time.sleep(0.05)
    appended = broker.append(0, 5)
    assert broker.throttle_ms(broker.response(12), 12) == 0
    assert before < broker.requested() < before + perf_counter() - waited - 0.05
    assert bucket.tally.total == 3 * (RESPONSE_BYTES + size) + RESPONSE_BYTES + appended


def test_a_fetch_above_its_quota_is_empty_and_mutes_the_connection(brokers: tuple[FetchBroker, FetchBroker]) -> None:
    broker = brokers[0]
    broker.limit(**{BYTE_RATE: 100.0})
    size = broker.append(0, 5)
    assert len(broker.fetch(12, [(0, 0, 1 << 20)])) > size
    (bucket,) = broker.quotas.fetch._buckets.values()
    bucket.rate.record(1000, 0)
    response = broker.fetch(12, [(0, 0, 1 << 20)])
    assert len(response) < size
    assert broker.throttle_ms(response, 12) > 0
    assert broker.harness.connection._muted_until > 0
