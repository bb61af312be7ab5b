"""Requests of clients with quotas: their throttle times, and how long their connections are muted."""

from __future__ import annotations

import asyncio
import math
import struct
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from barnabas.broker.metadata.security.image import quota_entity
from barnabas.broker.network.deferred import Deferred
from barnabas.broker.network.dispatch import Dispatcher
from barnabas.broker.probes import BrokerProbes
from barnabas.broker.quotas import bucket, session_quota
from barnabas.broker.quotas.manager import QuotaManager, QuotaWindows
from barnabas.broker.quotas.mutation import mutation_quota
from barnabas.broker.security.principal import user
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.data.produce import (
    ProducePartitionResult,
    ProduceRequest,
    ProduceResponse,
    ProduceTopicResult,
)
from barnabas.protocol.messages.topics.topics import CreatePartitionsResponse
from barnabas.protocol.native import dialect as native
from tests.support.kafka.kafka_wire import answer_of, produce_request, request_frame, schema
from tests.support.native.native_frames import answer_fields, native_request
from tests.support.piped_connection import Harness

BATCH = bytes(1000)
PRODUCER_RATE = "producer_byte_rate"


class Broker:
    """Connections of one dispatcher with quotas. Handlers are in `handlers`; time passes by `pass_to`."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.now = 0.0
        self.probes = BrokerProbes()
        self.quotas = QuotaManager(lambda: round(self.now * 1000), self.probes.quotas, QuotaWindows())
        self.outcome: Callable[[Any, Any], Any] = lambda session, request: stored()
        handlers: dict[ApiKey, Any] = dict.fromkeys(ApiKey, lambda session, request: self.outcome(session, request))
        handlers[ApiKey.PRODUCE] = ProduceStub(self)
        self.dispatcher = Dispatcher(handlers, self.probes, self.loop)
        self.connections: list[Harness] = []

    def connect(self) -> Harness:
        connection = Harness(self.dispatcher.serve)
        connection.clock.now = self.now
        self.quotas.opened(connection.connection)
        self.connections.append(connection)
        return connection

    def pass_to(self, now: float) -> None:
        self.now = now
        for connection in self.connections:
            connection.clock.pass_to(now)

    def set_quotas(self, **values: float) -> None:
        self.quotas.replace({quota_entity([("client-id", None)]): values})


class ProduceStub:
    def __init__(self, broker: Broker) -> None:
        self.broker = broker

    def __call__(self, session: Any, request: ProduceRequest) -> Any:
        return self.broker.outcome(session, request) if request.acks else None


def stored() -> ProduceResponse:
    return ProduceResponse(topics=[ProduceTopicResult(name="t", partitions=[ProducePartitionResult(0)])])


@pytest.fixture
def broker() -> Iterator[Broker]:
    created = Broker()
    yield created
    created.loop.close()


def produce(version: int = 9, acks: int = 1, client_id: str = "app") -> bytes:
    return request_frame(produce_request(version, "t", BATCH, acks=acks), 1, client_id)


FRAME_BYTES = len(produce()) - 4


def answers(connection: Harness, api: str = "produce", version: int = 9) -> list[int]:
    """Return the throttle times of the responses sent so far, and forget them."""
    found = []
    data, connection.pipe.written = connection.pipe.written, b""
    while data:
        (size,) = struct.unpack_from(">i", data)
        _, answer = answer_of(api, version, data[4 : 4 + size])
        found.append(answer.throttle_time // timedelta(milliseconds=1))
        data = data[4 + size :]
    return found


def test_a_producer_above_its_rate_gets_the_throttle_time_and_is_muted_for_it(broker: Broker) -> None:
    broker.set_quotas(producer_byte_rate=FRAME_BYTES / 10)
    connection = broker.connect()
    connection.feed(produce() * 3)
    # Ten seconds of the rate are free: the windows that have not passed yet.
    assert answers(connection) == [0, 10_000]
    broker.pass_to(9.999)
    assert answers(connection) == []
    broker.pass_to(10.0)
    assert answers(connection) == [20_000]
    assert broker.probes.quotas.throttled_requests == {PRODUCER_RATE: 2}
    assert broker.probes.quotas.throttle_seconds == {PRODUCER_RATE: 30.0}


def test_a_producer_without_answers_is_muted(broker: Broker) -> None:
    broker.set_quotas(producer_byte_rate=FRAME_BYTES / 20)
    connection = broker.connect()
    served: list[Any] = []
    broker.outcome = lambda session, request: served.append(request)
    connection.feed(produce(acks=0) + produce())
    assert (served, connection.pipe.written) == ([], b"")
    broker.outcome = lambda session, request: stored()
    broker.pass_to(10.0)
    assert answers(connection) == [30_000]


def test_a_late_answer_has_the_throttle_time_of_its_moment(broker: Broker) -> None:
    broker.set_quotas(producer_byte_rate=FRAME_BYTES / 20)
    connection = broker.connect()
    late: Deferred[Any] = Deferred()
    broker.outcome = lambda session, request: late
    connection.feed(produce())
    broker.pass_to(5.0)
    late.resolve(stored())
    assert answers(connection) == [10_000]
    assert connection.probe.muted == 1


def test_a_refused_request_counts_too(broker: Broker) -> None:
    def refuse(session: Any, request: Any) -> None:
        raise BrokerError(ErrorCode.NOT_LEADER_OR_FOLLOWER, "no")

    broker.set_quotas(producer_byte_rate=FRAME_BYTES / 20)
    broker.outcome = refuse
    connection = broker.connect()
    connection.feed(produce())
    assert answers(connection) == [10_000]


def test_connections_with_one_client_id_share_its_quota_and_others_do_not(broker: Broker) -> None:
    broker.set_quotas(producer_byte_rate=FRAME_BYTES / 10)
    first, second, other = broker.connect(), broker.connect(), broker.connect()
    first.feed(produce())
    second.feed(produce())
    other.feed(produce(client_id="two"))
    assert [answers(each) for each in (first, second, other)] == [[0], [10_000], [0]]
    second.connection.connection_lost(None)
    broker.quotas.closed(second.connection)
    again = broker.connect()
    again.feed(produce())
    assert answers(again) == [20_000], "a new connection has the rate of the client before it"


def test_a_quota_of_a_user_counts_from_the_moment_of_the_login(broker: Broker) -> None:
    broker.quotas.replace({quota_entity([("user", "alice")]): {PRODUCER_RATE: FRAME_BYTES / 20}})
    connection = broker.connect()
    connection.feed(produce())
    connection.connection.session.principal = user("alice")
    connection.feed(produce())
    assert answers(connection) == [0, 10_000]


@pytest.mark.parametrize("bound", [math.inf, math.nan, 1e308])
def test_the_largest_bounds_do_not_disturb_a_fetch(broker: Broker, bound: float) -> None:
    broker.set_quotas(consumer_byte_rate=bound)
    connection = broker.connect()
    connection.feed(produce())
    quota = connection.connection.session.quota
    assert quota is not None
    assert quota.fetch_budget() == 0x7FFF_FFFF
    assert not quota.fetched(1_000_000)


def test_quotas_change_for_open_connections(broker: Broker) -> None:
    connection = broker.connect()
    assert connection.connection.session.quota is None
    connection.feed(produce())
    broker.set_quotas(producer_byte_rate=FRAME_BYTES / 10)
    connection.feed(produce())
    broker.set_quotas(producer_byte_rate=FRAME_BYTES / 20)
    connection.feed(produce())
    assert answers(connection) == [0, 0, 30_000], "the rate goes on under the new bound"
    broker.quotas.replace({})
    assert connection.connection.session.quota is None
    broker.pass_to(30.0)
    connection.feed(produce())
    assert answers(connection) == [0]


class Seconds:
    """perf_counter of the requests' time."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> Seconds:
    clock = Seconds()
    monkeypatch.setattr(session_quota, "perf_counter", clock)
    monkeypatch.setattr("barnabas.broker.network.dispatch.perf_counter", clock)
    monkeypatch.setattr("barnabas.broker.network.pending_request.perf_counter", clock)
    return clock


def busy_for(seconds: Seconds, duration: float) -> Callable[[Any, Any], Any]:
    def serve(session: Any, request: Any) -> Any:
        seconds.now += duration
        return CreatePartitionsResponse(topics=[])

    return serve


def create_partitions() -> bytes:
    kio = schema("create_partitions", 3, "request")
    return request_frame(
        kio.CreatePartitionsRequest(topics=(), timeout=timedelta(seconds=1), validate_only=False), 1, "app"
    )


def test_the_time_of_requests_is_limited_and_its_throttle_time_is_one_window_at_most(
    broker: Broker, seconds: Seconds
) -> None:
    broker.set_quotas(request_percentage=10)
    connection = broker.connect()
    broker.outcome = busy_for(seconds, 1.0)
    connection.feed(create_partitions())
    assert answers(connection, "create_partitions", 3) == [0]
    broker.outcome = busy_for(seconds, 0.05)
    connection.feed(create_partitions())
    assert answers(connection, "create_partitions", 3) == [500]
    broker.pass_to(0.5)
    broker.outcome = busy_for(seconds, 5.0)
    connection.feed(create_partitions())
    assert answers(connection, "create_partitions", 3) == [1000]
    assert set(broker.probes.quotas.throttled_requests) == {"request_percentage"}


def test_the_time_of_a_coroutine_is_that_of_its_steps(broker: Broker, seconds: Seconds) -> None:
    async def work(session: Any, request: Any) -> Any:
        seconds.now += 0.5
        await asyncio.sleep(0)
        seconds.now += 0.6
        return CreatePartitionsResponse(topics=[])

    broker.set_quotas(request_percentage=10)
    connection = broker.connect()
    broker.outcome = work

    async def run() -> None:
        connection.feed(create_partitions())
        while not connection.pipe.written:
            seconds.now += 100.0  # of other requests
            await asyncio.sleep(0)

    broker.loop.run_until_complete(run())
    assert answers(connection, "create_partitions", 3) == [1000], "1.1 s of 1.0 s that are free"


def test_a_client_that_leaves_cancels_nothing_in_a_timed_coroutine(broker: Broker) -> None:
    ended: list[str] = []

    async def work(session: Any, request: Any) -> Any:
        try:
            await asyncio.Future()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    broker.set_quotas(request_percentage=10)
    broker.outcome = work

    async def run() -> None:
        broker.connect().feed(create_partitions())
        await asyncio.sleep(0)
        (task,) = broker.dispatcher._tasks
        task.cancel()
        await asyncio.wait([task])

    broker.loop.run_until_complete(run())
    assert ended == ["cancelled"]


@pytest.mark.parametrize("is_strict", [True, False])
def test_partitions_above_the_rate_are_refused_or_throttled_afterwards(broker: Broker, is_strict: bool) -> None:
    broker.set_quotas(controller_mutation_rate=1.0)
    connection = broker.connect()
    refused: list[ErrorCode] = []

    def serve(session: Any, request: Any) -> Any:
        take = mutation_quota(session, is_strict=is_strict)
        for partitions in (11, 1, 2):
            try:
                take(partitions)
            except BrokerError as error:
                refused.append(error.code)
        return CreatePartitionsResponse(topics=[])

    broker.outcome = serve
    connection.feed(create_partitions())
    (throttle_ms,) = answers(connection, "create_partitions", 3)
    if is_strict:
        assert refused == [ErrorCode.THROTTLING_QUOTA_EXCEEDED], "the last: the one before makes the bucket negative"
        assert throttle_ms == 1000
    else:
        assert (refused, throttle_ms) == ([], 3000)


def test_the_native_dialect_has_the_throttle_time_in_its_body(broker: Broker) -> None:
    broker.set_quotas(producer_byte_rate=1.0)
    connection = broker.connect()
    frame = native_request(ApiKey.PRODUCE, {"acks": 1, "topics": []})
    broker.outcome = lambda session, request: ProduceResponse(topics=[])
    connection.feed(frame)
    *_, error, body = answer_fields(connection.pipe.written[4:])
    assert (error, body) == (0, {"topics": [], "throttle_ms": (len(frame) - 4 - 10) * 1000})


def test_an_unserved_request_of_the_native_dialect_counts(
    broker: Broker, seconds: Seconds, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker.set_quotas(request_percentage=0.0001)
    connection = broker.connect()
    frame = bytearray(native_request(ApiKey.API_VERSIONS, {"client": "", "client_version": ""}))
    frame[frame.index(b"\x95") + 2] = 99  # the version
    read = native.refuse_unknown

    def slow(header: Any) -> Any:
        seconds.now += 1.0
        return read(header)

    monkeypatch.setattr(native, "refuse_unknown", slow)
    connection.feed(bytes(frame))
    assert connection.probe.muted == 1


def test_a_client_with_many_names_keeps_the_number_of_buckets_bounded(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket, "BUCKETS_MAX", 20)
    manager = QuotaManager(lambda: round(broker.now * 1000), broker.probes.quotas, QuotaWindows())
    broker.quotas = manager
    broker.set_quotas(producer_byte_rate=FRAME_BYTES / 10)
    steady, changing = broker.connect(), broker.connect()
    steady.feed(produce(client_id="own"))
    for n in range(500):
        changing.feed(produce(client_id=f"{n:03}"))
        assert len(manager.produce) <= 21
    steady.feed(produce(client_id="own"))
    assert answers(steady) == [0, 10_000], "the bucket of a connection stays"
