"""standby.min.acks=1: nothing is acknowledged with acks=all, and nothing is read, that the standby does not have."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from barnabas import Admin, AdminConfig
from barnabas.clients.errors import ClientError
from barnabas.clients.group_offsets import CommittedOffset
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.data.produce import ACKS_ALL
from barnabas.protocol.records.builder import RecordBatchBuilder
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.daemon import Daemon, start_daemon
from tests.support.eventually import eventually
from tests.support.kafka.kafka_wire import KafkaWire
from tests.support.kafka.kafka_wire import fetch_request as kafka_fetch_request
from tests.support.kafka.kafka_wire import produce_request as kafka_produce_request
from tests.support.standby import Standby
from tests.support.wire import WireClient, produce_request

REQUIRED = ("standby.min.acks=1", "replica.lag.time.max.ms=2000")
KAFKA_VERSION = 9


@pytest.fixture(scope="module")
def active(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with start_daemon(tmp_path_factory.mktemp("active"), *REQUIRED) as daemon:
        yield daemon


@pytest.fixture(scope="module")
def standby(tmp_path_factory: pytest.TempPathFactory, active: Daemon) -> Iterator[Standby]:
    with Standby(tmp_path_factory.mktemp("standby"), active.bootstrap) as daemon:
        daemon.until()
        yield daemon


@pytest.fixture
def wire(active: Daemon) -> Iterator[WireClient]:
    with WireClient(active.host, active.port) as client:
        yield client


@contextmanager
def frozen(standby: Standby) -> Iterator[None]:
    """Let the standby's process stand still."""
    os.kill(standby.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(standby.pid, signal.SIGCONT)


def batch(value: bytes) -> bytes:
    builder = RecordBatchBuilder(max_bytes=1000)
    builder.append(1, None, value)
    return builder.build()


def until_accepted(client: WireClient, topic: str) -> int:
    """Produce with acks=all until that is accepted; return the offset. A new topic is not at the standby at once."""

    def accepted() -> int | None:
        answer = client.produce(topic, batch(b"first"), acks=ACKS_ALL)
        assert answer.error in (0, ErrorCode.NOT_ENOUGH_REPLICAS)
        return None if answer.error else answer.base_offset + 1

    return eventually(accepted, what="an accepted produce", timeout_s=30) - 1


def test_acks_all_and_consumers_wait_for_the_standby(active: Daemon, standby: Standby, wire: WireClient) -> None:
    wire.create_topic("t")
    end = until_accepted(wire, "t") + 1
    assert wire.end_offset("t") == end
    assert wire.fetch("t", end - 1).data
    with frozen(standby), KafkaWire(active.host, active.port) as kafka:
        assert wire.produce("t", batch(b"leader"), acks=1).error == 0
        assert wire.end_offset("t") == end
        assert not wire.fetch("t", end).data
        assert kafka.fetch(KAFKA_VERSION, "t", end - 1).records.endswith(b"first\0")
        assert not kafka.fetch(KAFKA_VERSION, "t", end).records
        wire.send(produce_request("t", batch(b"wire"), acks=ACKS_ALL))
        kafka.send(kafka_produce_request(KAFKA_VERSION, "t", batch(b"kafka"), acks=ACKS_ALL))
        late = wire.receive().topics[0].partitions[0]
        assert late.error is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        late = kafka.receive("produce", KAFKA_VERSION).responses[0].partition_responses[0]
        assert late.error_code == ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
        refused = wire.produce("t", batch(b"refused"), acks=ACKS_ALL)
        assert refused.error is ErrorCode.NOT_ENOUGH_REPLICAS
        refused = kafka.produce(KAFKA_VERSION, "t", batch(b"refused"), acks=ACKS_ALL)
        assert refused.error_code == ErrorCode.NOT_ENOUGH_REPLICAS
        assert wire.end_offset("t") == end
        # A fetch that waits is answered once the standby has the records.
        kafka.send(fetch_all("t", end))
        os.kill(standby.pid, signal.SIGCONT)
        assert kafka.receive("fetch", KAFKA_VERSION).responses[0].partitions[0].records
    eventually(lambda: wire.end_offset("t") == end + 3 or None, what="all records", timeout_s=30)
    assert wire.produce("t", batch(b"last"), acks=ACKS_ALL).error == 0


def fetch_all(topic: str, offset: int) -> object:
    """Return a fetch of Kafka's dialect that waits for 30 s."""
    return kafka_fetch_request(KAFKA_VERSION, topic, offset, max_wait_ms=30_000)


def test_a_produce_waits_for_its_timeout_at_most(active: Daemon, standby: Standby, wire: WireClient) -> None:
    wire.create_topic("timeouts")
    end = until_accepted(wire, "timeouts") + 1
    request = produce_request("timeouts", batch(b"late"), acks=ACKS_ALL)
    request.timeout_ms = 0
    with frozen(standby):
        answer = wire.call(request).topics[0].partitions[0]
        assert answer.error is ErrorCode.REQUEST_TIMED_OUT
    eventually(lambda: wire.end_offset("timeouts") == end + 1 or None, what="the late record", timeout_s=30)


async def test_the_requirement_is_changed_while_the_broker_runs(
    active: Daemon, standby: Standby, wire: WireClient
) -> None:
    wire.create_topic("changes")
    end = until_accepted(wire, "changes") + 1
    async with Admin(AdminConfig(bootstrap=active.bootstrap)) as admin:
        with frozen(standby):
            wire.send(produce_request("changes", batch(b"waits"), acks=ACKS_ALL))
            await admin.alter_configs(broker="", set_to={"standby.min.acks": "0"})
            assert wire.receive().topics[0].partitions[0].error == 0
            assert wire.end_offset("changes") == end + 1
            assert wire.produce("changes", batch(b"alone"), acks=ACKS_ALL).error == 0
            assert wire.end_offset("changes") == end + 2
            await admin.alter_configs(broker="", set_to={"standby.min.acks": "1"})
            assert wire.end_offset("changes") == end + 2
            assert wire.produce("changes", batch(b"leader"), acks=1).error == 0
            assert wire.end_offset("changes") == end + 2
    eventually(lambda: wire.end_offset("changes") == end + 3 or None, what="the last record", timeout_s=30)


async def test_without_a_standby_nothing_is_committed_and_a_restart_shows_nothing_new(
    tmp_path: Path,
) -> None:
    with start_daemon(tmp_path / "active", *REQUIRED) as active:
        for is_clean in (True, False):
            with WireClient(active.host, active.port) as client:
                if is_clean:
                    client.create_topic("t")
                assert client.produce("t", batch(b"a")).error == 0
                assert client.produce("t", batch(b"b"), acks=ACKS_ALL).error is ErrorCode.NOT_ENOUGH_REPLICAS
                assert client.end_offset("t") == 0
            active.restart(clean=is_clean)
        async with Admin(AdminConfig(bootstrap=active.bootstrap, api_timeout_ms=1000)) as admin:
            with pytest.raises(ClientError, match="COORDINATOR_NOT_AVAILABLE"):
                await admin.set_group_offsets("g", {TopicPartition("t", 0): CommittedOffset(1)})
            assert await admin.group_offsets("g") == {}
        with WireClient(active.host, active.port) as client:
            assert client.end_offset("t") == 0
            with Standby(tmp_path / "standby", active.bootstrap):
                eventually(lambda: client.end_offset("t") == 2 or None, what="both records", timeout_s=30)
