"""Requests of the admin in a cluster of three brokers: who gets them, and what a move changes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from barnabas.clients.admin.admin import Admin
from barnabas.clients.admin.transactions import OpenTransaction
from barnabas.clients.config import AdminConfig, ClientConfig, ProducerConfig
from barnabas.clients.errors import BrokerConnectionError, RefusedError, UnknownTopicError
from barnabas.clients.network.cluster import Cluster
from barnabas.clients.producer.given_identity import ProducerIdentity, stored_records
from barnabas.clients.producer.prepared import PreparedTransaction, PreparedTransactions
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.cluster.configs import (
    AlterConfigsResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    IncrementalAlterConfigsResponse,
)
from barnabas.protocol.messages.data.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from barnabas.protocol.messages.data.describe_producers import (
    ActiveProducer,
    DescribeProducersPartitionResult,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeProducersTopicResult,
)
from barnabas.protocol.messages.data.init_producer_id import InitProducerIdResponse
from barnabas.protocol.messages.groups.find_coordinator import CoordinatorResult, FindCoordinatorResponse
from barnabas.protocol.messages.groups.groups import ListedGroup, ListGroupsResponse
from barnabas.protocol.messages.topics.log_dirs import (
    AlterReplicaLogDirsPartitionResult,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirsTopicResult,
    DescribeLogDirsResponse,
    LogDirResult,
)
from barnabas.protocol.messages.transactions.add_partitions_to_txn import TxnPartitionResult, TxnTopicResult
from barnabas.protocol.messages.transactions.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionDescription,
)
from barnabas.protocol.messages.transactions.list_transactions import ListTransactionsResponse, TransactionListing
from barnabas.protocol.messages.transactions.write_txn_markers import TxnMarkerResult, WriteTxnMarkersResponse
from barnabas.protocol.topic_partition import TopicPartition
from tests.clients.fake_broker import Action, Drop, FakeBroker, Respond

PLACES = [TopicPartition("t", number) for number in range(3)]


@asynccontextmanager
async def three_brokers() -> AsyncIterator[list[FakeBroker]]:
    """Brokers 1 to 3; broker N leads partition N - 1 of the topic `t`, and coordinates every key that ends with N."""
    brokers: list[FakeBroker] = []
    async with AsyncExitStack() as stack:
        for node_id in (1, 2, 3):
            brokers.append(await stack.enter_async_context(FakeBroker(node_id, peers=brokers)))
        brokers[0].create("t", 3)
        for number, each in enumerate(brokers):
            each.topics, each.leaders, each.logs = brokers[0].topics, brokers[0].leaders, brokers[0].logs
            each.leaders[PLACES[number]] = each.node_id
            del each.apis[ApiKey.CLEANING]  # as Apache Kafka
        serve(brokers, {})
        yield brokers


def serve(
    brokers: list[FakeBroker],
    answers: dict[ApiKey, Callable[[FakeBroker, Any], Any]],
    coordinator: Callable[[str], int] = lambda key: int(key[-1]),
) -> None:
    """Answer each of these APIs by a function of the broker and the request; it may return an action instead."""

    def of(broker: FakeBroker) -> Callable[[ApiKey, Any], Action | None]:
        def answer(api: ApiKey, request: Any) -> Action | None:
            if api is ApiKey.FIND_COORDINATOR:
                found = brokers[coordinator(request.key or request.keys[0]) - 1]
                return Respond(
                    FindCoordinatorResponse(
                        coordinators=[
                            CoordinatorResult(
                                key=request.keys[0], node_id=found.node_id, host=found.host, port=found.port
                            )
                        ]
                    )
                )
            if api not in answers:
                return None
            made = answers[api](broker, request)
            return made if made is None or isinstance(made, Action) else Respond(made)

        return answer

    for each in brokers:
        each.intercept = of(each)


@asynccontextmanager
async def admin_of(brokers: list[FakeBroker], **settings: Any) -> AsyncIterator[Admin]:
    config = AdminConfig(bootstrap=brokers[0].bootstrap, retry_backoff_ms=2, reconnect_backoff_ms=2, **settings)
    async with Admin(config) as admin:
        yield admin


def deleted(broker: FakeBroker, request: DeleteRecordsRequest) -> DeleteRecordsResponse:
    """Delete in the partitions that the broker leads."""
    return DeleteRecordsResponse(
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    DeleteRecordsPartitionResult(partition=each.partition, low_watermark=each.offset)
                    if broker.leaders[TopicPartition(topic.name, each.partition)] == broker.node_id
                    else DeleteRecordsPartitionResult(partition=each.partition, error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


async def test_records_are_deleted_at_each_partitions_leader_and_again_where_it_has_moved() -> None:
    async with three_brokers() as brokers, admin_of(brokers) as admin:
        serve(brokers, {ApiKey.DELETE_RECORDS: deleted})
        wanted: dict[TopicPartition, int] = dict.fromkeys(PLACES, 5)
        assert await admin.delete_records(wanted) == wanted
        brokers[0].leaders[PLACES[2]] = 1
        assert await admin.delete_records(wanted) == wanted
        asked = [
            [len(request.topics[0].partitions) for request in each.asked(ApiKey.DELETE_RECORDS)] for each in brokers
        ]
        assert asked == [[1, 1, 1], [1, 1], [1, 1]]


async def test_a_leader_that_stays_away_costs_only_its_partition() -> None:
    async with three_brokers() as brokers, admin_of(brokers, api_timeout_ms=50) as admin:
        serve(brokers, {ApiKey.DELETE_RECORDS: deleted})
        brokers[0].leaders[PLACES[1]] = -1
        found = await admin.delete_records(dict.fromkeys(PLACES, 5))
        refused = found[PLACES[1]]
        assert isinstance(refused, RefusedError)
        assert refused.code is ErrorCode.LEADER_NOT_AVAILABLE
        assert [found[PLACES[0]], found[PLACES[2]]] == [5, 5]


async def test_a_deletion_whose_answer_is_lost_is_not_sent_again() -> None:
    async with three_brokers() as brokers, admin_of(brokers) as admin:
        serve(
            brokers,
            {
                ApiKey.DELETE_RECORDS: lambda broker, request: (
                    Drop() if broker.node_id == 2 else deleted(broker, request)
                )
            },
        )
        with pytest.raises(BrokerConnectionError, match="it is not known whether this was carried out"):
            await admin.delete_records(dict.fromkeys(PLACES, -1))
        assert len(brokers[1].asked(ApiKey.DELETE_RECORDS)) == 1


async def test_a_partition_that_does_not_exist_is_named_and_the_others_are_served() -> None:
    async with three_brokers() as brokers, admin_of(brokers) as admin:
        serve(brokers, {ApiKey.DELETE_RECORDS: deleted})
        found = await admin.delete_records({PLACES[0]: 1, TopicPartition("t", 9): 1})
        assert found[PLACES[0]] == 1
        assert isinstance(found[TopicPartition("t", 9)], UnknownTopicError)


def producers(broker: FakeBroker, request: DescribeProducersRequest) -> DescribeProducersResponse:
    """Return one open transaction for each partition; its producer has the broker's number."""
    producer = ActiveProducer(
        producer_id=broker.node_id,
        epoch=0,
        last_sequence=broker.node_id,
        last_timestamp=0,
        coordinator_epoch=0,
        transaction_start_offset=7,
    )
    return DescribeProducersResponse(
        topics=[
            DescribeProducersTopicResult(
                name=topic.name,
                partitions=[
                    DescribeProducersPartitionResult(partition=each, producers=[producer]) for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


async def test_producers_are_described_and_markers_written_by_the_leaders() -> None:
    async with three_brokers() as brokers, admin_of(brokers) as admin:
        written = WriteTxnMarkersResponse(
            markers=[
                TxnMarkerResult(
                    producer_id=2, topics=[TxnTopicResult(name="t", partitions=[TxnPartitionResult(partition=1)])]
                )
            ]
        )
        serve(
            brokers,
            {ApiKey.DESCRIBE_PRODUCERS: producers, ApiKey.WRITE_TXN_MARKERS: lambda broker, request: written},
        )
        found = await admin.open_transactions(PLACES)
        assert [(each.topic_partition, each.producer_id) for each in found] == list(zip(PLACES, (1, 2, 3), strict=True))
        await admin.abort_hanging_transaction(OpenTransaction(PLACES[1], 2, 0, 0, 7, 0))
        assert [len(each.asked(ApiKey.WRITE_TXN_MARKERS)) for each in brokers] == [0, 1, 0]


def described(broker: FakeBroker, request: DescribeTransactionsRequest) -> DescribeTransactionsResponse:
    """Describe the ids that end with the broker's number; the others are another one's."""
    return DescribeTransactionsResponse(
        transactions=[
            TransactionDescription(
                transactional_id=each,
                error=ErrorCode.NONE if each.endswith(str(broker.node_id)) else ErrorCode.NOT_COORDINATOR,
                state="Ongoing",
                producer_id=broker.node_id,
            )
            for each in request.transactional_ids
        ]
    )


async def test_transactions_are_described_and_aborted_by_their_coordinators() -> None:
    async with three_brokers() as brokers, admin_of(brokers) as admin:
        answers = {
            ApiKey.DESCRIBE_TRANSACTIONS: described,
            ApiKey.INIT_PRODUCER_ID: lambda broker, request: InitProducerIdResponse(producer_id=1, producer_epoch=1),
        }
        serve(brokers, answers)
        ids = ["a1", "b2", "c3", "d2"]
        found = await admin.describe_transactions(ids)
        assert list(found) == ids
        assert [each.producer_id for each in found.values() if isinstance(each, TransactionDescription)] == [1, 2, 3, 2]
        assert [len(each.asked(ApiKey.DESCRIBE_TRANSACTIONS)) for each in brokers] == [1, 1, 1]
        await admin.abort_transaction("b2")
        assert [len(each.asked(ApiKey.INIT_PRODUCER_ID)) for each in brokers] == [0, 1, 0]


async def test_a_coordinator_that_has_moved_is_looked_for_again() -> None:
    async with three_brokers() as brokers, admin_of(brokers) as admin:
        places = iter((1, 1, 3))
        serve(brokers, {ApiKey.DESCRIBE_TRANSACTIONS: described}, lambda key: next(places))
        found = (await admin.describe_transactions(["c3"]))["c3"]
        assert isinstance(found, TransactionDescription)
        assert found.producer_id == 3


async def test_prepared_transactions_of_several_coordinators_are_checked_and_listed() -> None:
    async with three_brokers() as brokers:
        serve(
            brokers,
            {
                ApiKey.DESCRIBE_TRANSACTIONS: described,
                ApiKey.LIST_TRANSACTIONS: lambda broker, request: ListTransactionsResponse(
                    transactions=[
                        TransactionListing(transactional_id=f"id{broker.node_id}", producer_id=1, state="Ongoing")
                    ]
                ),
            },
        )
        async with PreparedTransactions(ClientConfig(bootstrap=brokers[0].bootstrap)) as prepared:
            await prepared.ensure_open([PreparedTransaction("b2", 2, 0), PreparedTransaction("c3", 3, 0)])
            assert await prepared.open_ids("id.*") == ["id1", "id2", "id3"]


async def test_groups_transactions_and_log_directories_are_those_of_all_brokers() -> None:
    async with three_brokers() as brokers, admin_of(brokers) as admin:
        loading = [True]

        def groups(broker: FakeBroker, request: Any) -> ListGroupsResponse:
            if broker.node_id == 2 and loading:
                loading.pop()
                return ListGroupsResponse(error=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            names = (f"g{broker.node_id}", "moving")
            return ListGroupsResponse(groups=[ListedGroup(group_id=each, protocol_type="consumer") for each in names])

        def transactions(broker: FakeBroker, request: Any) -> ListTransactionsResponse:
            listing = TransactionListing(transactional_id=f"id{broker.node_id}", producer_id=1, state="Ongoing")
            return ListTransactionsResponse(transactions=[listing])

        def log_dirs(broker: FakeBroker, request: Any) -> DescribeLogDirsResponse:
            return DescribeLogDirsResponse(results=[LogDirResult(path=f"/data{broker.node_id}")])

        serve(
            brokers,
            {
                ApiKey.LIST_GROUPS: groups,
                ApiKey.LIST_TRANSACTIONS: transactions,
                ApiKey.DESCRIBE_LOG_DIRS: log_dirs,
            },
        )
        assert [each.group_id for each in await admin.list_groups()] == ["g1", "g2", "g3", "moving"]
        assert [len(each.asked(ApiKey.LIST_GROUPS)) for each in brokers] == [1, 2, 1]
        assert [each.transactional_id for each in await admin.list_transactions()] == ["id1", "id2", "id3"]
        assert [(each.broker, each.path) for each in await admin.describe_log_dirs()] == [
            (1, "/data1"),
            (2, "/data2"),
            (3, "/data3"),
        ]


async def test_a_filter_that_a_broker_does_not_have_is_refused_and_not_left_out() -> None:
    async with three_brokers() as brokers:
        brokers[0].apis[ApiKey.LIST_TRANSACTIONS] = (0, 1)
        serve(brokers, {ApiKey.LIST_TRANSACTIONS: lambda broker, request: ListTransactionsResponse()})
        async with admin_of(brokers) as admin:
            assert await admin.list_transactions(longer_than_ms=5) == []
            with pytest.raises(RefusedError, match=r"lists transactions without this filter \(version 1, not 2\)"):
                await admin.list_transactions(pattern="mine-.*")


async def test_a_brokers_configuration_is_asked_of_that_broker() -> None:
    async with three_brokers() as brokers, admin_of(brokers) as admin:
        serve(
            brokers,
            {
                ApiKey.DESCRIBE_CONFIGS: lambda broker, request: DescribeConfigsResponse(
                    results=[DescribeConfigsResult(type=4, name=str(broker.node_id))]
                ),
                ApiKey.INCREMENTAL_ALTER_CONFIGS: lambda broker, request: IncrementalAlterConfigsResponse(
                    results=[AlterConfigsResult(type=4, name=str(broker.node_id))]
                ),
            },
        )
        await admin.describe_configs(broker=3)
        await admin.alter_configs(broker="2", set_to={"log.retention.ms": "1"})
        assert [len(each.asked(ApiKey.DESCRIBE_CONFIGS)) for each in brokers] == [0, 0, 1]
        assert [len(each.asked(ApiKey.INCREMENTAL_ALTER_CONFIGS)) for each in brokers] == [0, 1, 0]
        await admin.describe_configs(broker=77)  # whoever gets it refuses it, with Kafka's sentence
        assert sum(len(each.asked(ApiKey.DESCRIBE_CONFIGS)) for each in brokers) == 2


async def test_a_partition_moves_at_its_leader_or_at_the_broker_that_is_named() -> None:
    async with three_brokers() as brokers, admin_of(brokers) as admin:

        def moving(broker: FakeBroker, request: Any) -> AlterReplicaLogDirsResponse:
            ((topic,),) = (target.topics for target in request.dirs)
            results = [AlterReplicaLogDirsPartitionResult(partition=each) for each in topic.partitions]
            return AlterReplicaLogDirsResponse(
                topics=[AlterReplicaLogDirsTopicResult(name=topic.name, partitions=results)]
            )

        serve(brokers, {ApiKey.ALTER_REPLICA_LOG_DIRS: moving})
        targets = {PLACES[0]: "/b", PLACES[1]: "/b"}
        assert await admin.alter_replica_log_dirs(targets) == dict.fromkeys(targets)
        assert [len(each.asked(ApiKey.ALTER_REPLICA_LOG_DIRS)) for each in brokers] == [1, 1, 0]
        assert await admin.alter_replica_log_dirs(targets, broker=3) == dict.fromkeys(targets)
        assert [len(each.asked(ApiKey.ALTER_REPLICA_LOG_DIRS)) for each in brokers] == [1, 1, 1]


async def test_an_identity_resumes_from_the_answers_of_all_leaders() -> None:
    async with three_brokers() as brokers:
        serve(brokers, {ApiKey.DESCRIBE_PRODUCERS: producers})
        config = ProducerConfig(bootstrap=brokers[0].bootstrap)
        cluster = Cluster(config)
        await cluster.start()
        try:
            found = await stored_records(cluster, config, "t", ProducerIdentity(3, 0))
        finally:
            await cluster.close()
        assert found == {PLACES[0]: 0, PLACES[1]: 0, PLACES[2]: 4}
