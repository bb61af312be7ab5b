from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from barnabas.clients.config import ClientConfig
from barnabas.clients.errors import BrokerConnectionError, BrokerTimeoutError, ClosedError, RefusedError
from barnabas.clients.network.cluster import Cluster, Purpose
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.topics.metadata import MetadataResponse, TopicMetadata
from barnabas.protocol.topic_partition import TopicPartition
from tests.clients.fake_broker import Answer, Drop, FakeBroker, Hold, Silence
from tests.clients.waiting import until


@asynccontextmanager
async def started(broker: FakeBroker, **settings: Any) -> AsyncIterator[Cluster]:
    cluster = Cluster(ClientConfig(bootstrap=broker.bootstrap, retry_backoff_ms=5, reconnect_backoff_ms=5, **settings))
    await cluster.start()
    try:
        yield cluster
    finally:
        await cluster.close()


async def test_the_bootstrap_connection_serves_as_its_brokers_when_the_address_is_the_same(broker: FakeBroker) -> None:
    async with started(broker) as cluster:
        assert cluster.cluster_id == "fake-cluster"
        assert await cluster.connect(1) is await cluster.any_connection()
        assert broker.connections_made == 1


async def test_everybody_who_wants_a_connection_shares_the_one_attempt(broker: FakeBroker) -> None:
    async with started(broker) as cluster:
        connections = await asyncio.gather(*(cluster.connect(1, Purpose.FETCH) for _ in range(10)))
        assert len(set(connections)) == 1
        assert broker.connections_made == 2


async def test_everybody_who_wants_a_topic_shares_the_one_request(broker: FakeBroker) -> None:
    async with started(broker) as cluster:
        views = await asyncio.gather(*(cluster.require_topic("orders", 1000) for _ in range(10)))
        assert {view.leaders for view in views} == {(1, 1, 1)}
        assert len(broker.asked(ApiKey.METADATA)) == 2  # the greeting's and this one
        assert cluster.leader(TopicPartition("orders", 2)) == 1
        assert cluster.leader(TopicPartition("orders", 3)) == -1
        assert cluster.leader(TopicPartition("nothing", 0)) == -1


async def test_one_who_is_cancelled_does_not_take_the_shared_request_with_him(broker: FakeBroker) -> None:
    async with started(broker) as cluster:
        impatient = asyncio.ensure_future(cluster.require_topic("orders", 1000))
        patient = asyncio.ensure_future(cluster.require_topic("orders", 1000))
        await asyncio.sleep(0)
        impatient.cancel()
        assert (await patient).name == "orders"


async def test_a_lost_connection_is_opened_again_when_it_is_next_wanted(broker: FakeBroker) -> None:
    async with started(broker) as cluster:
        first = await cluster.connect(1)
        broker.drop_connections()
        await until(lambda: first.closed)
        assert cluster.connected(1) is None
        second = await cluster.connect(1)
        assert second is not first
        await cluster.load(["orders"])


async def test_a_way_in_that_is_adopted_while_the_same_broker_is_connected_leaves_one_connection(
    broker: FakeBroker,
) -> None:
    async with started(broker) as cluster:
        broker.drop_connections()
        await until(lambda: cluster.connected(1) is None and broker.open_connections == 0)
        release = asyncio.Event()
        broker.intercept = lambda api, request: Hold(release)
        connecting = asyncio.ensure_future(cluster.connect(1))
        await until(lambda: len(broker.asked(ApiKey.API_VERSIONS)) == 2)
        broker.intercept = lambda api, request: None
        await cluster.load(["orders"])
        adopted = cluster.connected(1)
        release.set()
        assert await connecting is adopted
        await until(lambda: broker.open_connections == 1)


async def test_a_refused_name_is_said_at_once(broker: FakeBroker) -> None:
    async with started(broker) as cluster:
        answer = MetadataResponse("c", [], [TopicMetadata("a/b", ErrorCode.INVALID_TOPIC_EXCEPTION)])
        broker.intercept = lambda api, request: Answer(answer)
        with pytest.raises(RefusedError, match="a/b: the topic's name is not valid") as refusal:
            await cluster.require_topic("a/b", 1000)
        assert refusal.value.topic == "a/b"


async def test_a_topic_whose_leader_is_being_chosen_is_asked_for_until_the_time_is_over(broker: FakeBroker) -> None:
    async with started(broker) as cluster:
        answer = MetadataResponse("c", [], [TopicMetadata("new", ErrorCode.LEADER_NOT_AVAILABLE)])
        broker.intercept = lambda api, request: Answer(answer)
        with pytest.raises(BrokerTimeoutError, match="no metadata of topic 'new' within 40 ms: LEADER_NOT_AVAILABLE"):
            await cluster.require_topic("new", 40)


async def test_when_the_known_brokers_are_gone_the_bootstrap_list_is_the_way_back(broker: FakeBroker) -> None:
    broker.advertised = ("127.0.0.1", 1)
    async with started(broker) as cluster:
        assert cluster.brokers[1].port == 1
        broker.drop_connections()
        await until(lambda: broker.open_connections == 0)
        await cluster.load(["orders"])
        assert broker.connections_made == 2


async def test_an_address_that_belongs_to_another_node_by_now_is_not_used(broker: FakeBroker) -> None:
    async with started(broker) as cluster:
        cluster.brokers[9] = cluster.brokers[1]
        with pytest.raises(BrokerConnectionError, match="is node 1 where node 9 was expected"):
            await cluster.connect(9)
        with pytest.raises(BrokerConnectionError, match="node 77 leads the partition, but is not among the brokers"):
            await cluster.connect(77)


async def test_refreshes_are_not_more_frequent_than_their_back_off(broker: FakeBroker) -> None:
    async with started(broker) as cluster:
        await cluster.require_topic("orders", 1000)
        asked = len(broker.asked(ApiKey.METADATA))
        assert cluster.refresh_soon() is cluster.refresh_soon()
        await cluster.refresh_soon()
        await cluster.refresh_soon()
        assert len(broker.asked(ApiKey.METADATA)) == asked + 2
        assert broker.asked(ApiKey.METADATA)[-1].topics == ["orders"]


async def test_a_refresh_that_fails_is_no_error_for_anybody(broker: FakeBroker) -> None:
    async with started(broker) as cluster:
        await cluster.require_topic("orders", 1000)
        broker.intercept = lambda api, request: Drop()
        await cluster.refresh_soon()
        assert cluster.topic("orders") is not None


async def test_closing_ends_what_waits(broker: FakeBroker) -> None:
    async with started(broker) as cluster:
        broker.intercept = lambda api, request: Silence()
        waiting = asyncio.ensure_future(cluster.require_topic("orders", 60_000))
        await until(lambda: len(broker.asked(ApiKey.METADATA)) == 2)
        await cluster.close()
        with pytest.raises(ClosedError):
            await waiting
        with pytest.raises(ClosedError):
            await cluster.connect(1)
