"""Requests with many names let other connections have their turns, and are answered like small ones."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.broker.groups.group import SIMPLE_GROUP, GroupSummary
from barnabas.broker.handlers import turns as turns_module
from barnabas.broker.handlers.cluster.configs import DescribeConfigsHandler, IncrementalAlterConfigsHandler
from barnabas.broker.handlers.data.delete_records import DeleteRecordsHandler
from barnabas.broker.handlers.data.describe_producers import DescribeProducersHandler
from barnabas.broker.handlers.data.list_offsets import ListOffsetsHandler
from barnabas.broker.handlers.data.offset_for_leader_epoch import OffsetForLeaderEpochHandler
from barnabas.broker.handlers.groups.consumer_group_describe import ConsumerGroupDescribeHandler
from barnabas.broker.handlers.groups.describe_groups import DescribeGroupsHandler
from barnabas.broker.handlers.groups.find_coordinator import FindCoordinatorHandler
from barnabas.broker.handlers.groups.groups import DeleteGroupsHandler, ListGroupsHandler
from barnabas.broker.handlers.groups.offset_commit import OffsetCommitHandler
from barnabas.broker.handlers.groups.offset_fetch import OffsetFetchHandler
from barnabas.broker.handlers.security.acls import DescribeAclsHandler
from barnabas.broker.handlers.share import group_state
from barnabas.broker.handlers.topics.describe_topic_partitions import DescribeTopicPartitionsHandler
from barnabas.broker.handlers.topics.elect_leaders import ElectLeadersHandler
from barnabas.broker.handlers.topics.metadata import MetadataHandler
from barnabas.broker.handlers.transactions.add_partitions_to_txn import AddPartitionsToTxnHandler
from barnabas.broker.handlers.transactions.describe_transactions import DescribeTransactionsHandler
from barnabas.broker.handlers.transactions.list_transactions import ListTransactionsHandler
from barnabas.broker.handlers.transactions.txn_offset_commit import TxnOffsetCommitHandler
from barnabas.broker.handlers.transactions.write_txn_markers import WriteTxnMarkersHandler
from barnabas.broker.handlers.turns import Turns, in_turns
from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.network.deferred import Deferred
from barnabas.broker.probes import BrokerProbes
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.cluster.configs import (
    AlterConfigsResource,
    AlterConfigsResult,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.protocol.messages.data.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.protocol.messages.data.describe_producers import DescribeProducersRequest, DescribeProducersTopic
from barnabas.protocol.messages.data.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.protocol.messages.data.offset_for_leader_epoch import (
    EpochPartition,
    EpochTopic,
    OffsetForLeaderEpochRequest,
)
from barnabas.protocol.messages.groups.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.protocol.messages.groups.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.groups.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.groups.groups import DeleteGroupsRequest, ListGroupsRequest
from barnabas.protocol.messages.groups.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
)
from barnabas.protocol.messages.groups.offset_fetch import OffsetFetchGroup, OffsetFetchRequest, OffsetFetchTopic
from barnabas.protocol.messages.security.acls import Acl, AclFilter, DescribeAclsRequest
from barnabas.protocol.messages.security.resources import Operation, PatternType, Permission, ResourceType
from barnabas.protocol.messages.share.group_state import (
    DeletedPartition,
    DeletedTopic,
    DeleteShareGroupStateRequest,
)
from barnabas.protocol.messages.topics.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicToDescribe
from barnabas.protocol.messages.topics.elect_leaders import PREFERRED, ElectLeadersRequest, ElectLeadersTopic
from barnabas.protocol.messages.topics.metadata import MetadataRequest
from barnabas.protocol.messages.transactions.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    TxnTopic,
)
from barnabas.protocol.messages.transactions.describe_transactions import DescribeTransactionsRequest
from barnabas.protocol.messages.transactions.list_transactions import ListTransactionsRequest
from barnabas.protocol.messages.transactions.txn_offset_commit import (
    TxnOffsetCommitPartition,
    TxnOffsetCommitRequest,
    TxnOffsetCommitTopic,
)
from barnabas.protocol.messages.transactions.write_txn_markers import TxnMarker, WriteTxnMarkersRequest
from barnabas.protocol.uuids import ZERO_UUID

READ, ALLOW = Operation.READ, Permission.ALLOW
NAMES = [f"name-{number}" for number in range(50)]


class Access:
    """Denies every other name, and the cluster."""

    def allows(self, operation: object, resource: object, name: str, **_: object) -> bool:
        return name != "kafka-cluster" and int(name.rpartition("-")[2]) % 2 == 0

    def operations(self, resource: object, name: str) -> int:
        return 8


SESSION: Any = SimpleNamespace(access=Access(), is_own=False)
STORE: Any = SimpleNamespace(image=MetadataImage(), cluster_id="c", node_id=1)
ADDRESSES: Any = SimpleNamespace(address_for=lambda session: SimpleNamespace(node_id=1, host="h", port=9))
NOTHING: Any = None
PROBE = BrokerProbes().api("test")


class NoPartitions:
    """Answers as the registry of a broker without topics."""

    def get(self, topic: str, number: int) -> None:
        return None

    def refusal(self, topic: str, number: int) -> BrokerError:
        return BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no topic")


PARTITIONS: Any = NoPartitions()


def ask_metadata() -> Any:
    handler = MetadataHandler(STORE, NOTHING, ADDRESSES, NOTHING, NOTHING)
    return handler(SESSION, MetadataRequest.of_names(NAMES, allow_auto_creation=False))


COORDINATORS: Any = SimpleNamespace(unserved=lambda _type, _key: None)


def ask_find_coordinator() -> Any:
    return FindCoordinatorHandler(COORDINATORS, ADDRESSES, PROBE)(
        SESSION, FindCoordinatorRequest(coordinator_keys=NAMES)
    )


def ask_describe_topic_partitions() -> Any:
    return DescribeTopicPartitionsHandler(STORE, NOTHING)(
        SESSION, DescribeTopicPartitionsRequest(topics=[TopicToDescribe(name=name) for name in NAMES])
    )


def ask_describe_configs() -> Any:
    resources = [DescribeConfigsResource(type=2, name=name, names=None) for name in NAMES]
    return DescribeConfigsHandler(STORE, NOTHING, PROBE)(SESSION, DescribeConfigsRequest(resources=resources))


def ask_delete_records() -> Any:
    topics = [
        DeleteRecordsTopic(name=name, partitions=[DeleteRecordsPartition(partition=0, offset=1)]) for name in NAMES
    ]
    return DeleteRecordsHandler(PARTITIONS, PROBE, NOTHING)(SESSION, DeleteRecordsRequest(topics=topics))


def ask_list_offsets() -> Any:
    topics = [
        ListOffsetsTopic(name=name, partitions=[ListOffsetsPartition(partition=0, timestamp=-1)]) for name in NAMES
    ]
    return ListOffsetsHandler(PARTITIONS, NOTHING, PROBE)(SESSION, ListOffsetsRequest(isolation=0, topics=topics))


def ask_offset_for_leader_epoch() -> Any:
    topics = [EpochTopic(name=name, partitions=[EpochPartition(partition=0, leader_epoch=1)]) for name in NAMES]
    return OffsetForLeaderEpochHandler(PARTITIONS, PROBE)(SESSION, OffsetForLeaderEpochRequest(topics=topics))


def ask_describe_producers() -> Any:
    topics = [DescribeProducersTopic(name=name, partitions=[0]) for name in NAMES]
    return DescribeProducersHandler(PARTITIONS, PROBE)(SESSION, DescribeProducersRequest(topics=topics))


def ask_describe_groups() -> Any:
    groups: Any = SimpleNamespace(describe=lambda group_id: None)
    return DescribeGroupsHandler(groups, lambda _: True, PROBE)(SESSION, DescribeGroupsRequest(groups=NAMES))


def fetch_offsets(committed: Any, groups: list[OffsetFetchGroup]) -> Any:
    log: Any = SimpleNamespace(ensure_loaded=lambda group_id: None)
    offsets: Any = SimpleNamespace(committed=SimpleNamespace(of=lambda group_id: committed))
    registry: Any = SimpleNamespace(get=lambda group_id: None)
    handler = OffsetFetchHandler(offsets, registry, log, STORE, PROBE)
    return handler(SESSION, OffsetFetchRequest(groups=groups))


def ask_offset_fetch() -> Any:
    return fetch_offsets({}, [OffsetFetchGroup(group_id=name, topics=None) for name in NAMES])


def ask_offset_fetch_of_one_topic() -> Any:
    return fetch_offsets(
        {},
        [OffsetFetchGroup(group_id="group-0", topics=[OffsetFetchTopic(name="name-0", partitions=range(len(NAMES)))])],
    )


def ask_offset_fetch_of_all() -> Any:
    value = SimpleNamespace(offset=7, leader_epoch=0, metadata="", topic_id=ZERO_UUID)
    committed = {("name-0", number): value for number in range(len(NAMES))}
    return fetch_offsets(committed, [OffsetFetchGroup(group_id="group-0", topics=None)])


def ask_describe_transactions() -> Any:
    log: Any = SimpleNamespace(coordinator_log=SimpleNamespace(ensure_loaded=lambda _: None), states={})
    return DescribeTransactionsHandler(log, PROBE)(SESSION, DescribeTransactionsRequest(transactional_ids=NAMES))


class Offsets:
    """Answers as the group coordinator with a group of each name, whose deletions are not durable immediately."""

    def __init__(self) -> None:
        self.deleted: list[Deferred[BrokerError | None]] = []
        self.committed: list[frozenset[str]] = []

    def summaries(self) -> dict[str, GroupSummary]:
        return dict.fromkeys(NAMES, SIMPLE_GROUP)

    def delete_group(self, group_id: str) -> Deferred[BrokerError | None]:
        if group_id.endswith("4"):
            raise BrokerError(ErrorCode.NON_EMPTY_GROUP, "it has members")
        self.deleted.append(Deferred())
        asyncio.get_running_loop().call_soon(self.deleted[-1].resolve, None)
        return self.deleted[-1]

    def commit(self, request: OffsetCommitRequest, denied: frozenset[str]) -> Deferred[OffsetCommitResponse]:
        self.committed.append(denied)
        response: Deferred[OffsetCommitResponse] = Deferred()
        asyncio.get_running_loop().call_soon(response.resolve, OffsetCommitResponse(topics=[]))
        return response


def ask_list_groups() -> Any:
    offsets: Any = Offsets()
    return ListGroupsHandler(offsets)(SESSION, ListGroupsRequest(states=["empty"]))


def ask_describe_consumer_groups() -> Any:
    groups: Any = SimpleNamespace(is_enabled=True, ensure_serving=lambda group_id: None, get=lambda group_id: None)
    handler = ConsumerGroupDescribeHandler(groups, STORE, PROBE)
    return handler(SESSION, ConsumerGroupDescribeRequest(group_ids=NAMES, include_authorized_operations=True))


def ask_list_transactions() -> Any:
    metadata = SimpleNamespace(producer_id=7, state=SimpleNamespace(label="Ongoing"), start_ms=0)
    log: Any = SimpleNamespace(
        coordinator_log=SimpleNamespace(ensure_all_loaded=lambda: None), states=dict.fromkeys(NAMES, metadata)
    )
    clock: Any = SimpleNamespace(wall_ms=lambda: 1)
    return ListTransactionsHandler(log, clock)(SESSION, ListTransactionsRequest(states=[], producer_ids=[7]))


def ask_describe_acls() -> Any:
    acls = {name: Acl(ResourceType.TOPIC, name, PatternType.LITERAL, "User:a", "*", READ, ALLOW) for name in NAMES}
    store: Any = SimpleNamespace(image=SimpleNamespace(security=SimpleNamespace(acls=acls)))
    describer: Any = SimpleNamespace(access=SimpleNamespace(allows=lambda *_, **__: True))
    return DescribeAclsHandler(store)(describer, DescribeAclsRequest.of(AclFilter()))


def ask_elect_leaders() -> Any:
    topics = [ElectLeadersTopic(name=name, partitions=[0]) for name in NAMES]
    open_session: Any = SimpleNamespace(access=None)
    return ElectLeadersHandler(STORE, PARTITIONS, PROBE)(
        open_session, ElectLeadersRequest(election_type=PREFERRED, topics=topics)
    )


def ask_elect_leaders_of_one_topic() -> Any:
    topics = [ElectLeadersTopic(name="name-0", partitions=list(range(len(NAMES))))]
    open_session: Any = SimpleNamespace(access=None)
    return ElectLeadersHandler(STORE, PARTITIONS, PROBE)(
        open_session, ElectLeadersRequest(election_type=PREFERRED, topics=topics)
    )


def ask_write_txn_markers_of_one_topic() -> Any:
    def append(partition: object, end: object) -> None:
        raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no topic")

    markers: Any = SimpleNamespace(append=append)
    open_session: Any = SimpleNamespace(access=None)
    marker = TxnMarker(
        producer_id=1,
        producer_epoch=0,
        is_commit=True,
        topics=[TxnTopic(name="name-0", partitions=list(range(len(NAMES))))],
        coordinator_epoch=0,
    )
    return WriteTxnMarkersHandler(markers, PROBE)(open_session, WriteTxnMarkersRequest(markers=[marker]))


@pytest.mark.parametrize(
    "ask",
    [
        ask_offset_fetch,
        ask_offset_fetch_of_one_topic,
        ask_offset_fetch_of_all,
        ask_elect_leaders_of_one_topic,
        ask_write_txn_markers_of_one_topic,
        ask_describe_transactions,
        ask_elect_leaders,
        ask_metadata,
        ask_find_coordinator,
        ask_describe_topic_partitions,
        ask_describe_configs,
        ask_delete_records,
        ask_list_offsets,
        ask_offset_for_leader_epoch,
        ask_describe_producers,
        ask_describe_groups,
        ask_list_groups,
        ask_describe_consumer_groups,
        ask_list_transactions,
        ask_describe_acls,
    ],
)
def test_many_names_take_several_turns_and_the_answer_is_the_same(
    ask: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns_module, "TURN_SECONDS", 1_000.0)
    whole = ask()
    assert not inspect.iscoroutine(whole), "a request that ends in its turn costs no task"
    monkeypatch.setattr(turns_module, "TURN_SECONDS", 0.0)
    work = ask()
    assert inspect.iscoroutine(work)
    answer, turns = asyncio.run(turns_of(work))
    assert answer == whole
    assert turns >= len(NAMES)


def test_the_permissions_of_a_change_of_many_configs_are_checked_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    class Changes:
        async def alter_configs(
            self, resources: Sequence[AlterConfigsResource], **options: bool
        ) -> list[AlterConfigsResult]:
            return [AlterConfigsResult(type=each.type, name=each.name) for each in resources]

    changes: Any = Changes()
    request = IncrementalAlterConfigsRequest(
        resources=[AlterConfigsResource(type=2, name=name, operations=[]) for name in NAMES]
    )
    results = []
    for seconds in (1_000.0, 0.0):
        monkeypatch.setattr(turns_module, "TURN_SECONDS", seconds)
        results.append(asyncio.run(turns_of(IncrementalAlterConfigsHandler(changes, 1, PROBE)(SESSION, request))))
    (whole, few), (answer, many) = results
    assert answer == whole
    assert (few < len(NAMES), many >= 2 * len(NAMES)) == (True, True)


def test_states_of_many_share_partitions_are_asked_for_in_turns_and_in_portions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Coordinator:
        waiting = most_waiting = 0

        def forget(self, key: object) -> Deferred[None]:
            self.waiting += 1
            self.most_waiting = max(self.most_waiting, self.waiting)
            answer: Deferred[None] = Deferred()
            answer.resolve(None)
            return answer

        async def awaited(self, answer: Deferred[None]) -> None:
            self.waiting -= 1
            return answer.value

    monkeypatch.setattr(group_state, "_AT_ONCE", 20)
    open_session: Any = SimpleNamespace(access=None)
    request = DeleteShareGroupStateRequest(
        group_id="g",
        topics=[
            DeletedTopic(
                topic_id=bytes(16), partitions=[DeletedPartition(partition=each) for each in range(len(NAMES))]
            )
        ],
    )
    results = []
    for seconds in (1_000.0, 0.0):
        monkeypatch.setattr(turns_module, "TURN_SECONDS", seconds)
        coordinator: Any = Coordinator()
        handler = group_state.delete_handler(coordinator, PROBE)
        results.append(asyncio.run(turns_of(handler(open_session, request))))
        assert coordinator.most_waiting == 20
    (whole, few), (answer, many) = results
    assert answer == whole
    assert [each.partition for each in answer.topics[0].partitions] == list(range(len(NAMES)))
    assert (few < len(NAMES), many >= 2 * len(NAMES)) == (True, True)


def topics_to_commit() -> list[TxnOffsetCommitTopic]:
    return [
        TxnOffsetCommitTopic(name=name, partitions=[TxnOffsetCommitPartition(partition=0, offset=1)]) for name in NAMES
    ]


def ask_delete_groups(offsets: Any) -> Any:
    return DeleteGroupsHandler(offsets.delete_group, PROBE)(SESSION, DeleteGroupsRequest(group_ids=NAMES))


def ask_offset_commit(offsets: Any) -> Any:
    return OffsetCommitHandler(offsets, STORE, PROBE)(
        SESSION, OffsetCommitRequest(group_id="group-0", topics=topics_to_commit())
    )


def ask_txn_offset_commit(offsets: Any) -> Any:
    handler = TxnOffsetCommitHandler(NOTHING, NOTHING, STORE, PROBE)
    return handler(
        SESSION,
        TxnOffsetCommitRequest(
            transactional_id="tx-0", group_id="group-0", producer_id=1, producer_epoch=0, topics=topics_to_commit()
        ),
    )


def ask_add_partitions(offsets: Any) -> Any:
    topics = [TxnTopic(name=name, partitions=[0]) for name in NAMES]
    handler = AddPartitionsToTxnHandler(NOTHING, STORE, PROBE)
    return handler(
        SESSION,
        AddPartitionsToTxnRequest(version=3, transactional_id="tx-0", producer_id=1, producer_epoch=0, topics=topics),
    )


@pytest.mark.parametrize("ask", [ask_delete_groups, ask_offset_commit, ask_txn_offset_commit, ask_add_partitions])
def test_a_change_of_many_names_checks_permissions_in_turns_and_waits_for_the_log(
    ask: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answer(offsets: Offsets) -> tuple[bool, Any, int]:
        outcome = ask(offsets)
        if inspect.iscoroutine(outcome):
            return True, *await turns_of(outcome)
        late = asyncio.get_running_loop().create_future()
        outcome.then(late.set_result)
        return False, await late, 0

    monkeypatch.setattr(turns_module, "TURN_SECONDS", 1_000.0)
    before = Offsets()
    is_in_turns, whole, _ = asyncio.run(answer(before))
    assert not is_in_turns
    monkeypatch.setattr(turns_module, "TURN_SECONDS", 0.0)
    after = Offsets()
    is_in_turns, found, turns = asyncio.run(answer(after))
    assert is_in_turns
    assert found == whole
    assert turns >= len(NAMES)
    assert len(after.deleted) == len(before.deleted)
    assert after.committed == before.committed


async def turns_of(work: Coroutine[Any, Any, Any]) -> tuple[Any, int]:
    """Run `work` in a task; return its result and the number of the loop's turns."""
    turns = 0
    task = asyncio.get_running_loop().create_task(work)
    while not task.done():
        await asyncio.sleep(0)
        turns += 1
    return task.result(), turns


def test_an_error_in_a_later_turn_is_raised_by_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        await Turns().next()
        raise ValueError("later")

    rest = in_turns(work())
    assert inspect.iscoroutine(rest)
    with pytest.raises(ValueError, match="later"):
        asyncio.run(rest)
