"""Produce requests of clients with quotas: the compiled handler counts and mutes as the Python one."""

from __future__ import annotations

import os
import random
import struct
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from time import perf_counter

import pytest

from barnabas.broker.metadata.security.image import quota_entity
from barnabas.broker.quotas.manager import QuotaManager, QuotaWindows
from barnabas.broker.quotas.session_quota import SessionQuota
from tests.support.kafka.produce_broker import IDS, PARTITIONS, Broker
from tests.support.kafka.produce_traffic import ProduceTraffic, Sent, SentTopic
from tests.support.manual_loop import ManualLoop
from tests.support.storage.records import plain

pytest.importorskip("barnabas.broker.handlers.data.kernels._produce")
if os.environ.get("BARNABAS_KERNEL") == "python":
    pytest.skip("the kernels are turned off", allow_module_level=True)

BYTE_RATE = "producer_byte_rate"
REQUEST_TIME = "request_percentage"
UNREACHED = 1e12


class LimitedBroker(Broker):
    """A broker whose one client has quotas, and a clock that the test advances."""

    def __init__(self, directory: Path, loop: ManualLoop, *, is_compiled: bool) -> None:
        super().__init__(directory, loop, is_compiled=is_compiled)
        self.now_ms = 0
        self.quotas = QuotaManager(lambda: self.now_ms, self.probes.quotas, QuotaWindows())
        self.quotas.replace({})
        self.quotas.opened(self.harness.connection)

    def limit(self, **rates: float) -> None:
        """Set the quotas of the client id `one`, and those of each other client id to the half."""
        halves = {key: rate / 2 for key, rate in rates.items()}
        self.quotas.replace({quota_entity([("client-id", "one")]): rates, quota_entity([("client-id", None)]): halves})

    def pass_ms(self, duration_ms: int) -> bytes:
        """Let time pass, which may end a mute; return the responses to the requests that waited for that."""
        self.now_ms += duration_ms
        self.harness.clock.pass_to(self.now_ms / 1000)
        return self.answers([])

    def counted(self) -> list[object]:
        """Return the samples of the produce buckets, the mute, and the counters of throttled requests."""
        probe = self.probes.quotas
        found: list[object] = [self.harness.connection._muted_until, probe.throttled_requests, probe.throttle_seconds]
        for sharing, bucket in self.quotas.produce._buckets.items():
            rate = bucket.rate
            found.append((sharing, bucket.users, rate.samples(), rate.per_second(self.now_ms)))
        return found

    def requested(self) -> float:
        """Return the request time that was counted, in seconds."""
        (bucket,) = self.quotas.request._buckets.values()
        return bucket.tally.total / 100


@pytest.fixture
def brokers(tmp_path: Path) -> Iterator[tuple[LimitedBroker, LimitedBroker]]:
    loop = ManualLoop()
    compiled = LimitedBroker(tmp_path / "compiled", loop, is_compiled=True)
    python = LimitedBroker(tmp_path / "python", loop, is_compiled=False)
    yield compiled, python
    compiled.real.close()
    python.real.close()
    loop.close()


def request(acks: int = 1, version: int = 9) -> Sent:
    return Sent(version, 7, "one", [SentTopic("a", [(0, bytes(plain(1)))])], acks=acks)


FRAME_BYTES = len(request().frame(IDS)) - 4


def throttle_ms(response: bytes, version: int = 9) -> int:
    """Return the throttle time of one response."""
    assert struct.unpack_from(">i", response)[0] == len(response) - 4
    end = len(response) - (version >= 9)
    (found,) = struct.unpack_from(">i", response, end - 4)
    return int(found)


def is_sound(sent: Sent) -> bool:
    return sent.spoil is None and sent.transactional_id is None and 3 <= sent.version <= 13 and sent.acks != 0


@pytest.mark.parametrize("seed", range(4))
def test_random_requests_are_counted_and_throttled_alike(
    brokers: tuple[LimitedBroker, LimitedBroker], seed: int
) -> None:
    compiled, python = brokers
    chance = random.Random(seed)
    requests = iter([sent for sent in ProduceTraffic(seed, [*IDS, "d"], PARTITIONS).requests(400) if is_sound(sent)])
    for broker in brokers:
        broker.limit(**{BYTE_RATE: UNREACHED})
    while burst := list(islice(requests, chance.choice([1, 2, 8]))):
        if chance.random() < 0.05:
            rate = chance.choice([UNREACHED, 20_000.0, 2000.0, 200.0, float("nan"), 0.0])
            for broker in brokers:
                broker.limit(**{BYTE_RATE: rate}) if rate else broker.quotas.replace({})
        assert compiled.answers(burst) == python.answers(burst)
        assert compiled.counted() == python.counted()
        duration_ms = chance.choice([0, 0, 0, 1, 300, 1000, 5000, 40_000])
        assert compiled.pass_ms(duration_ms) == python.pass_ms(duration_ms)
        assert not python.harness.is_closed()
    assert compiled.counted() == python.counted()
    assert compiled.state() == python.state()


def test_a_request_within_its_quotas_is_counted_without_python(
    brokers: tuple[LimitedBroker, LimitedBroker], monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = brokers[0]
    broker.limit(**{BYTE_RATE: UNREACHED, REQUEST_TIME: UNREACHED})
    started = perf_counter()
    assert broker.answers([request(), request()])
    broker.forbid_dispatcher()
    for name in ("begin", "finish"):
        monkeypatch.setattr(SessionQuota, name, lambda *_, **__: pytest.fail("counted in Python"))
    before = broker.requested()
    assert throttle_ms(broker.answers([request()])) == 0
    assert before < broker.requested() < perf_counter() - started
    (bucket,) = broker.quotas.produce._buckets.values()
    assert bucket.tally.total == bucket.tally.sample == 3 * FRAME_BYTES


@pytest.mark.parametrize("version", [3, 8, 9, 13])
def test_a_request_above_its_quota_mutes_the_connection_before_the_next_one(
    brokers: tuple[LimitedBroker, LimitedBroker], version: int
) -> None:
    broker = brokers[0]
    broker.answers([request(version=version)] * 2)
    size = len(request(version=version).frame(IDS)) - 4
    broker.limit(**{BYTE_RATE: size / 10})
    broker.forbid_dispatcher()
    assert throttle_ms(broker.answers([request(version=version)]), version) == 0
    # Ten seconds of the rate are free. The second of two requests in one buffer waits.
    assert throttle_ms(broker.answers([request(version=version)] * 2), version) == 10_000
    assert broker.pass_ms(9_999) == b""
    assert throttle_ms(broker.pass_ms(1), version) == 20_000
    assert broker.probes.quotas.throttled_requests == {BYTE_RATE: 2}


def test_a_produce_without_responses_is_muted(brokers: tuple[LimitedBroker, LimitedBroker]) -> None:
    broker = brokers[0]
    broker.answers([request()] * 2)
    broker.limit(**{BYTE_RATE: FRAME_BYTES / 20, REQUEST_TIME: UNREACHED})
    broker.forbid_dispatcher()
    assert broker.answers([request(acks=0), request()]) == b""
    assert broker.requested() == 0
    assert throttle_ms(broker.pass_ms(10_000)) == 30_000
    assert broker.requested() > 0


def test_request_time_above_its_quota_mutes_for_at_most_one_sample(
    brokers: tuple[LimitedBroker, LimitedBroker],
) -> None:
    broker = brokers[0]
    broker.answers([request()] * 2)
    broker.limit(**{REQUEST_TIME: 1e-9})
    assert throttle_ms(broker.answers([request()])) == 1000
    assert broker.probes.quotas.throttled_requests == {REQUEST_TIME: 1}
