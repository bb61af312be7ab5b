from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from barnabas.clients.config import ClientConfig
from barnabas.clients.errors import BrokerConnectionError, BrokerTimeoutError, ClosedError, RefusedError
from barnabas.clients.network.cluster import Cluster
from barnabas.clients.network.node_connections import Purpose
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.groups.find_coordinator import GROUP_KEY, CoordinatorResult, FindCoordinatorResponse
from barnabas.protocol.messages.topics.metadata import MetadataResponse, TopicMetadata
from barnabas.protocol.topic_partition import TopicPartition
from tests.clients.fake_broker import Drop, FakeBroker, Hold, Respond, Silence
from tests.clients.waiting import until


@asynccontextmanager
async def started(broker: FakeBroker, **settings: Any) -> AsyncIterator[Cluster]:
    cluster = Cluster(ClientConfig(bootstrap=broker.bootstrap, retry_backoff_ms=5, reconnect_backoff_ms=5, **settings))
    await cluster.start()
    try:
        yield cluster
    finally:
        await cluster.close()


async def test_the_bootstrap_connection_is_kept_if_the_address_is_the_advertised_one(broker: FakeBroker) -> None:
    async with started(broker) as cluster:
        assert cluster.cluster_id == "fake-cluster"
        assert await cluster.connections.connect(1) is await cluster.connections.any_connection()
        assert broker.connections_made == 1


async def test_concurrent_callers_share_one_connection_attempt(broker: FakeBroker) -> None:
    async with started(broker) as cluster:
        connections = await asyncio.gather(*(cluster.connections.connect(1, Purpose.FETCH) for _ in range(10)))
        assert len(set(connections)) == 1
        assert broker.connections_made == 2


async def test_concurrent_callers_share_one_topic_request(broker: FakeBroker) -> None:
    async with started(broker) as cluster:
        views = await asyncio.gather(*(cluster.require_topic("orders", 1000) for _ in range(10)))
        assert {view.leaders for view in views} == {(1, 1, 1)}
        assert len(broker.asked(ApiKey.METADATA)) == 2  # the greeting's and this one
        assert cluster.leader(TopicPartition("orders", 2)) == 1
        assert cluster.leader(TopicPartition("orders", 3)) == -1
        assert cluster.leader(TopicPartition("nothing", 0)) == -1


async def test_cancelling_one_caller_does_not_cancel_the_shared_request(broker: FakeBroker) -> None:
    async with started(broker) as cluster:
        impatient = asyncio.ensure_future(cluster.require_topic("orders", 1000))
        patient = asyncio.ensure_future(cluster.require_topic("orders", 1000))
        await asyncio.sleep(0)
        impatient.cancel()
        assert (await patient).name == "orders"


async def test_a_lost_connection_is_reopened_when_it_is_next_used(broker: FakeBroker) -> None:
    async with started(broker) as cluster:
        first = await cluster.connections.connect(1)
        broker.drop_connections()
        await until(lambda: first.closed)
        assert cluster.connections.connected(1) is None
        second = await cluster.connections.connect(1)
        assert second is not first
        await cluster.load(["orders"])


async def test_adopting_the_bootstrap_connection_while_connecting_leaves_one_connection(
    broker: FakeBroker,
) -> None:
    async with started(broker) as cluster:
        broker.drop_connections()
        await until(lambda: cluster.connections.connected(1) is None and broker.open_connections == 0)
        release = asyncio.Event()
        broker.intercept = lambda api, request: Hold(release)
        connecting = asyncio.ensure_future(cluster.connections.connect(1))
        await until(lambda: len(broker.asked(ApiKey.API_VERSIONS)) == 2)
        broker.intercept = lambda api, request: None
        await cluster.load(["orders"])
        adopted = cluster.connections.connected(1)
        release.set()
        assert await connecting is adopted
        await until(lambda: broker.open_connections == 1)


async def test_a_refused_topic_name_is_an_immediate_error(broker: FakeBroker) -> None:
    async with started(broker) as cluster:
        answer = MetadataResponse(
            cluster_id="c", topics=[TopicMetadata(name="a/b", error=ErrorCode.INVALID_TOPIC_EXCEPTION)]
        )
        broker.intercept = lambda api, request: Respond(answer)
        with pytest.raises(RefusedError, match="a/b: the topic's name is not valid") as refusal:
            await cluster.require_topic("a/b", 1000)
        assert refusal.value.topic == "a/b"


async def test_a_topic_without_a_leader_is_requested_until_the_timeout(broker: FakeBroker) -> None:
    async with started(broker) as cluster:
        answer = MetadataResponse(
            cluster_id="c", topics=[TopicMetadata(name="new", error=ErrorCode.LEADER_NOT_AVAILABLE)]
        )
        broker.intercept = lambda api, request: Respond(answer)
        with pytest.raises(BrokerTimeoutError, match="no metadata of topic 'new' within 40 ms: LEADER_NOT_AVAILABLE"):
            await cluster.require_topic("new", 40)


async def test_when_the_known_brokers_are_gone_the_bootstrap_list_is_used_again(broker: FakeBroker) -> None:
    broker.advertised = ("127.0.0.1", 1)
    async with started(broker) as cluster:
        assert cluster.connections.brokers[1].port == 1
        broker.drop_connections()
        await until(lambda: broker.open_connections == 0)
        await cluster.load(["orders"])
        assert broker.connections_made == 2


async def test_a_leader_that_is_not_among_the_brokers_is_an_error(broker: FakeBroker) -> None:
    async with started(broker) as cluster:
        with pytest.raises(BrokerConnectionError, match="node 77 is not among the brokers of the cluster"):
            await cluster.connections.connect(77)


async def test_refreshes_are_not_more_frequent_than_their_back_off(broker: FakeBroker) -> None:
    async with started(broker) as cluster:
        await cluster.require_topic("orders", 1000)
        asked = len(broker.asked(ApiKey.METADATA))
        assert cluster.refresh_soon() is cluster.refresh_soon()
        await cluster.refresh_soon()
        await cluster.refresh_soon()
        assert len(broker.asked(ApiKey.METADATA)) == asked + 2
        assert broker.asked(ApiKey.METADATA)[-1].names == ["orders"]


async def test_a_failed_refresh_raises_nothing(broker: FakeBroker) -> None:
    async with started(broker) as cluster:
        await cluster.require_topic("orders", 1000)
        broker.intercept = lambda api, request: Drop()
        await cluster.refresh_soon()
        assert cluster.topic("orders") is not None


async def test_failed_refreshes_in_a_row_are_one_warning(broker: FakeBroker, caplog: pytest.LogCaptureFixture) -> None:
    def told() -> list[tuple[str, str]]:
        return [
            (each.levelname, each.getMessage())
            for each in caplog.records
            if each.name == "barnabas.clients.network.cluster" and each.levelname != "DEBUG"
        ]

    caplog.set_level("INFO")
    async with started(broker) as cluster:
        await cluster.require_topic("orders", 1000)
        for _ in range(2):
            broker.intercept = lambda api, request: Drop()
            for _ in range(3):
                await cluster.refresh_soon()
            broker.intercept = lambda api, request: None
            await cluster.refresh_soon()
            await cluster.refresh_soon()
            warning, again = told()
            assert warning[0] == "WARNING"
            assert warning[1].startswith("metadata not refreshed, trying again later: ")
            assert again == ("INFO", "metadata refreshed again, failures=3")
            caplog.clear()


async def test_closing_ends_waiting_calls(broker: FakeBroker) -> None:
    async with started(broker) as cluster:
        broker.intercept = lambda api, request: Silence()
        waiting = asyncio.ensure_future(cluster.require_topic("orders", 60_000))
        await until(lambda: len(broker.asked(ApiKey.METADATA)) == 2)
        await cluster.close()
        with pytest.raises(ClosedError):
            await waiting
        with pytest.raises(ClosedError):
            await cluster.connections.connect(1)


async def test_a_coordinator_that_cannot_be_reached_is_looked_for_again(broker: FakeBroker) -> None:
    async with FakeBroker(node_id=2) as other:
        await other.stop()
        dead = CoordinatorResult(key="g", node_id=2, host=other.host, port=other.port)
        answers = [FindCoordinatorResponse(coordinators=[dead])]
        broker.intercept = lambda api, request: (
            Respond(answers.pop()) if api is ApiKey.FIND_COORDINATOR and answers else None
        )
        async with started(broker) as cluster:
            with pytest.raises(BrokerConnectionError):
                await cluster.coordinator(GROUP_KEY, "g")
            assert (await cluster.coordinator(GROUP_KEY, "g")).address.port == broker.port
            await cluster.coordinator(GROUP_KEY, "g")
            assert len(broker.asked(ApiKey.FIND_COORDINATOR)) == 2
