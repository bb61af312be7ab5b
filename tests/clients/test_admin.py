from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from barnabas.clients.admin.admin import Admin, CreatedTopic, PartitionDescription
from barnabas.clients.config import AdminConfig
from barnabas.clients.errors import (
    BrokerConnectionError,
    BrokerTimeoutError,
    ClientConfigError,
    ClosedError,
    RefusedError,
    UnknownTopicError,
)
from barnabas.clients.offsets import ListedOffset
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.cluster.configs import (
    AlterConfigOp,
    AlterConfigsResult,
    ConfigEntry,
    ConfigResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    IncrementalAlterConfigsResponse,
)
from barnabas.protocol.messages.topics.cleaning import CleaningResponse, CompactedLog
from barnabas.protocol.messages.topics.log_dirs import (
    DescribeLogDirsResponse,
    LogDirPartition,
    LogDirResult,
    LogDirTopic,
)
from barnabas.protocol.messages.topics.topics import (
    CreatableTopicResult,
    CreatePartitionsResponse,
    CreatePartitionsTopicResult,
    CreateTopicsResponse,
    DeletableTopicResult,
    DeleteTopicsResponse,
    NewPartitions,
    NewTopic,
    config_rows,
)
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.protocol.uuids import uuid_text
from tests.clients.fake_broker import Drop, FakeBroker, RefusePartitions, Respond, Silence

ID = b"\x01" * 16


@asynccontextmanager
async def admin_of(broker: FakeBroker, **settings: Any) -> AsyncIterator[Admin]:
    config = AdminConfig(bootstrap=broker.bootstrap, retry_backoff_ms=5, reconnect_backoff_ms=5, **settings)
    async with Admin(config) as admin:
        yield admin


def answers(broker: FakeBroker, wanted: ApiKey, response: Any) -> None:
    broker.intercept = lambda api, request: Respond(response) if api is wanted else None


@pytest.mark.parametrize("is_barnabas", [True, False], ids=["Barnabas", "Apache Kafka"])
async def test_logs_are_described_with_what_barnabas_cleaner_knows(broker: FakeBroker, *, is_barnabas: bool) -> None:
    logs = [LogDirPartition(partition=0, size_bytes=7), LogDirPartition(partition=0, size_bytes=5, is_future=True)]
    result = LogDirResult(path="/d", topics=[LogDirTopic(name="t", partitions=logs)], total_bytes=9, usable_bytes=3)
    found = {
        ApiKey.DESCRIBE_LOG_DIRS: DescribeLogDirsResponse(results=[result]),
        ApiKey.CLEANING: CleaningResponse(logs=[CompactedLog("/d", "t", 0, 4, 0.5, "idle")]),
    }
    broker.intercept = lambda api, request: Respond(found[api]) if api in found else None
    if not is_barnabas:
        del broker.apis[ApiKey.CLEANING]
    async with admin_of(broker) as admin:
        (described,) = await admin.describe_log_dirs([TopicPartition("t", 0)])
    log, future = described.replicas
    cleaning = (4, 0.5, "idle") if is_barnabas else (-1, -1.0, "")
    assert (log.size_bytes, log.clean_offset, log.dirty_ratio, log.cleaning_state) == (7, *cleaning)
    assert (future.is_future, future.cleaning_state) == (True, "")
    assert [each.topics for each in broker.asked(ApiKey.CLEANING)] == ([["t"]] if is_barnabas else [])


async def test_a_topic_is_created_and_its_warning_returned(broker: FakeBroker) -> None:
    answers(
        broker,
        ApiKey.CREATE_TOPICS,
        CreateTopicsResponse(
            topics=[
                CreatableTopicResult(
                    name="t", error=ErrorCode.NONE, message="small segments", topic_id=ID, partitions=4
                )
            ]
        ),
    )
    async with admin_of(broker) as admin:
        made = await admin.create_topic("t", partitions=4, configs={"segment.bytes": "1000"}, validate_only=True)
        assert made == CreatedTopic("t", uuid_text(ID), 4, "small segments")
        await admin.create_topic("t")
    first, second = broker.asked(ApiKey.CREATE_TOPICS)
    assert first.topics == [
        NewTopic(name="t", partitions=4, replication_factor=-1, configs=config_rows({"segment.bytes": "1000"}))
    ]
    assert first.validate_only
    assert second.topics == [NewTopic(name="t", partitions=-1, replication_factor=-1, configs=())]


async def test_an_error_has_the_brokers_code_and_message(broker: FakeBroker) -> None:
    result = CreatableTopicResult(name="t", error=ErrorCode.TOPIC_ALREADY_EXISTS, message="topic t exists already")
    answers(broker, ApiKey.CREATE_TOPICS, CreateTopicsResponse(topics=[result]))
    async with admin_of(broker) as admin:
        with pytest.raises(RefusedError, match=r"^TOPIC_ALREADY_EXISTS: topic t exists already$") as refusal:
            await admin.create_topic("t")
        assert refusal.value.code is ErrorCode.TOPIC_ALREADY_EXISTS
        assert refusal.value.topic == "t"


async def test_topics_are_deleted_and_grown(broker: FakeBroker) -> None:
    async with admin_of(broker) as admin:
        answers(broker, ApiKey.DELETE_TOPICS, DeleteTopicsResponse(topics=[DeletableTopicResult(name="t")]))
        await admin.delete_topic("t")
        assert broker.asked(ApiKey.DELETE_TOPICS)[0].names == ["t"]
        answers(
            broker, ApiKey.CREATE_PARTITIONS, CreatePartitionsResponse(topics=[CreatePartitionsTopicResult(name="t")])
        )
        await admin.create_partitions("t", 9)
        assert broker.asked(ApiKey.CREATE_PARTITIONS)[0].topics == [NewPartitions(name="t", count=9)]
        answers(broker, ApiKey.CREATE_PARTITIONS, CreatePartitionsResponse(topics=[]))
        with pytest.raises(RefusedError, match="t: the broker left it out of its answer"):
            await admin.create_partitions("t", 9)


async def test_topics_are_listed_and_described_without_creating_any(broker: FakeBroker) -> None:
    broker.create_missing_topics = True
    async with admin_of(broker) as admin:
        assert [topic.name for topic in await admin.list_topics()] == ["lines", "orders"]
        described = await admin.describe_topic("orders")
        assert described.partitions[2] == PartitionDescription(2, 1, 0, ErrorCode.NONE)
        assert len(described.topic_id) == 22
        with pytest.raises(UnknownTopicError, match="there is no topic 'nothing'"):
            await admin.describe_topic("nothing")
    assert "nothing" not in broker.topics


async def test_configs_are_described(broker: FakeBroker) -> None:
    entry = ConfigEntry(name="retention.ms", value="-1", source_code=1, type_code=5, documentation="How long.")
    result = DescribeConfigsResult(type=2, name="t", entries=[entry])
    answers(broker, ApiKey.DESCRIBE_CONFIGS, DescribeConfigsResponse(results=[result]))
    async with admin_of(broker) as admin:
        assert await admin.describe_configs(topic="t", names=["retention.ms"]) == [entry]
        await admin.describe_configs(broker=1)
        await admin.describe_configs(broker="")
        with pytest.raises(ClientConfigError, match="name either a topic or a broker"):
            await admin.describe_configs()
        with pytest.raises(ClientConfigError, match="name either a topic or a broker"):
            await admin.describe_configs(topic="t", broker=1)
    asked = [request.resources[0] for request in broker.asked(ApiKey.DESCRIBE_CONFIGS)]
    assert [(entry.resource, entry.names) for entry in asked] == [
        (ConfigResource(2, "t"), ["retention.ms"]),
        (ConfigResource(4, "1"), None),
        (ConfigResource(4, ""), None),
    ]


async def test_configs_are_set_and_deleted_together(broker: FakeBroker) -> None:
    answers(
        broker,
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        IncrementalAlterConfigsResponse(results=[AlterConfigsResult(type=2, name="t")]),
    )
    async with admin_of(broker) as admin:
        await admin.alter_configs(topic="t", set_to={"retention.ms": "5"}, delete=["segment.ms"])
        (request,) = broker.asked(ApiKey.INCREMENTAL_ALTER_CONFIGS)
        assert request.resources[0].operations == [
            AlterConfigOp(name="retention.ms", operation=0, value="5"),
            AlterConfigOp(name="segment.ms", operation=1, value=None),
        ]
        refusal = AlterConfigsResult(
            type=4, name="1", error=ErrorCode.INVALID_CONFIG, message="log.retention.ms=x is no number"
        )
        answers(broker, ApiKey.INCREMENTAL_ALTER_CONFIGS, IncrementalAlterConfigsResponse(results=[refusal]))
        with pytest.raises(RefusedError, match=r"INVALID_CONFIG: broker 1: log\.retention\.ms=x is no number"):
            await admin.alter_configs(broker=1, set_to={"log.retention.ms": "x"})


async def test_offsets_are_requested_from_the_leaders(broker: FakeBroker) -> None:
    wanted = {TopicPartition("orders", 0): -2, TopicPartition("lines", 0): -1}
    async with admin_of(broker) as admin:
        assert await admin.list_offsets(wanted) == dict.fromkeys(wanted, ListedOffset(0, -1, 0))
        with pytest.raises(UnknownTopicError, match=r"orders-7: the topic has 3 partitions"):
            await admin.list_offsets({TopicPartition("orders", 7): -1})


async def test_a_retriable_error_of_list_offsets_is_retried_and_a_final_one_raised(broker: FakeBroker) -> None:
    left = 2

    def intercept(api: ApiKey, request: Any) -> Any:
        nonlocal left
        if api is ApiKey.LIST_OFFSETS and left:
            left -= 1
            return RefusePartitions(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return None

    broker.intercept = intercept
    wanted = {TopicPartition("lines", 0): -1}
    async with admin_of(broker) as admin:
        assert (await admin.list_offsets(wanted))[TopicPartition("lines", 0)].offset == 0
        broker.intercept = lambda api, request: (
            RefusePartitions(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT) if api is ApiKey.LIST_OFFSETS else None
        )
        with pytest.raises(RefusedError, match="lines-0") as refusal:
            await admin.list_offsets(wanted)
        assert refusal.value.code is ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT


async def test_the_cluster_is_described(broker: FakeBroker) -> None:
    async with admin_of(broker) as admin:
        cluster = await admin.describe_cluster()
    assert cluster.cluster_id == "fake-cluster"
    assert [(node.node_id, node.port) for node in cluster.brokers] == [(1, broker.port)]


async def test_a_query_survives_a_lost_connection_and_a_command_is_not_repeated(
    broker: FakeBroker,
) -> None:
    dropped = False

    def once(api: ApiKey, request: Any) -> Any:
        nonlocal dropped
        if dropped:
            return None
        dropped = True
        return Drop()

    async with admin_of(broker) as admin:
        broker.intercept = once
        assert len(await admin.list_topics()) == 2
        broker.intercept = lambda api, request: Drop() if api is ApiKey.DELETE_TOPICS else None
        with pytest.raises(BrokerConnectionError, match="delete_topics: it is not known whether this was carried out"):
            await admin.delete_topic("orders")
        assert len(broker.asked(ApiKey.DELETE_TOPICS)) == 1


async def test_an_unreachable_broker_is_an_error_after_api_timeout_ms(broker: FakeBroker) -> None:
    async with admin_of(broker, api_timeout_ms=50) as admin:
        await broker.stop()
        with pytest.raises(
            BrokerConnectionError, match=r"list_topics: gave up after \d+ attempts in 50 ms: cannot connect"
        ):
            await admin.list_topics()
        with pytest.raises(BrokerConnectionError, match="delete_topics: gave up"):
            await admin.delete_topic("orders")


async def test_a_command_without_a_response_is_an_error_that_says_its_result_is_unknown(broker: FakeBroker) -> None:
    broker.intercept = lambda api, request: Silence() if api is ApiKey.DELETE_TOPICS else None
    async with admin_of(broker, request_timeout_ms=20) as admin:
        with pytest.raises(BrokerTimeoutError, match=r"not known whether this was carried out: .*did not answer"):
            await admin.delete_topic("orders")


async def test_using_a_closed_admin_is_an_error(broker: FakeBroker) -> None:
    async with admin_of(broker) as admin:
        pass
    with pytest.raises(ClosedError):
        await admin.list_topics()
