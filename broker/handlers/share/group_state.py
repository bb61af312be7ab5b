"""The APIs of share partitions' states, keys 83 to 87: Initialize-, Read-, Write-, DeleteShareGroupState, ...Summary.

Brokers send them to the share coordinator. CLUSTER_AUTHORIZATION_FAILED for every partition without CLUSTER_ACTION on
the cluster. An empty response for an empty group id, no topics, or a topic without partitions (84, 85, 87). Then the
errors of `broker/share/shard`, in its order, each partition for itself. A partition of which the topic
`__share_group_state` is being loaded: COORDINATOR_LOAD_IN_PROGRESS. Source: Kafka's ShareCoordinatorService.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.handlers.authorization import is_cluster_allowed
from barnabas.broker.handlers.turns import Turns
from barnabas.broker.share.shard import StateChange
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.security.resources import Operation
from barnabas.protocol.messages.share.group_state import GroupStateRequest
from barnabas.protocol.share.state_records import SharePartitionKey
from barnabas.protocol.wire.structures import Struct

if TYPE_CHECKING:
    from barnabas.broker.network.deferred import Deferred
    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import ApiProbe
    from barnabas.broker.share.coordinator import ShareCoordinator

_Begin = Callable[["ShareCoordinator", SharePartitionKey, Any], "Deferred[Any]"]
"""Begins the work for one partition; the deferred answer is a BrokerError, or what the handler copies."""

_NEED_PARTITIONS: Final = (
    ApiKey.READ_SHARE_GROUP_STATE,
    ApiKey.WRITE_SHARE_GROUP_STATE,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
)


_AT_ONCE: Final = 500
"""Partitions whose answers a request waits for at the same time: each takes memory until then."""


class GroupStateHandler:
    """Serves one of the APIs. `copied`: the fields of an answer that are attributes of a state."""

    def __init__(
        self,
        api: ApiKey,
        begin: _Begin,
        coordinator: ShareCoordinator,
        probe: ApiProbe,
        copied: Sequence[str] = (),
    ) -> None:
        self._api = api
        self._begin = begin
        self._coordinator = coordinator
        self._probe = probe
        self._copied = copied

    async def __call__(self, session: Session, request: GroupStateRequest[Any]) -> Struct:
        """Answer one request as the module docstring specifies."""
        if not is_cluster_allowed(session, Operation.CLUSTER_ACTION, self._api):
            return request.refused(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed.")
        is_empty = self._api in _NEED_PARTITIONS and not all(topic.partitions for topic in request.topics)
        topics: list[Any] = []
        response = request.answer_of(topics)
        if not request.group_id or is_empty:
            return response
        topics += [request.topic_result(topic_id=topic.topic_id, partitions=[]) for topic in request.topics]
        pairs = zip(topics, request.topics, strict=True)
        partitions = [(topic, each) for topic, asked in pairs for each in asked.partitions]
        turns = Turns()
        for start in range(0, len(partitions), _AT_ONCE):
            begun = []
            for topic, each in partitions[start : start + _AT_ONCE]:
                if turns.is_over:
                    await turns.next()
                key = SharePartitionKey(request.group_id, topic.topic_id, each.partition)
                begun.append((topic, each.partition, self._begin(self._coordinator, key, each)))
            for topic, number, answer in begun:
                found = await self._coordinator.awaited(answer)
                topic.partitions.append(self._result(request, number, found))
                if turns.is_over:
                    await turns.next()
        return response

    def _result(self, request: GroupStateRequest[Any], number: int, found: Any) -> Any:
        if isinstance(found, BrokerError):
            self._probe.count_error(found.code.name.lower())
            return request.partition_result(partition=number, error=found.code, message=found.message)
        return request.partition_result(partition=number, **{name: getattr(found, name) for name in self._copied})


def initialize_handler(coordinator: ShareCoordinator, probe: ApiProbe) -> GroupStateHandler:
    """Return the handler of InitializeShareGroupState."""
    return GroupStateHandler(
        ApiKey.INITIALIZE_SHARE_GROUP_STATE,
        lambda coordinator, key, each: coordinator.begin(key, each.state_epoch, each.start_offset),
        coordinator,
        probe,
    )


def read_handler(coordinator: ShareCoordinator, probe: ApiProbe) -> GroupStateHandler:
    """Return the handler of ReadShareGroupState."""
    return GroupStateHandler(
        ApiKey.READ_SHARE_GROUP_STATE,
        lambda coordinator, key, each: coordinator.read(key, each.leader_epoch),
        coordinator,
        probe,
        ("state_epoch", "start_offset", "state_batches"),
    )


def write_handler(coordinator: ShareCoordinator, probe: ApiProbe) -> GroupStateHandler:
    """Return the handler of WriteShareGroupState."""

    def begin(coordinator: ShareCoordinator, key: SharePartitionKey, each: Any) -> Deferred[Any]:
        change = StateChange(
            each.state_epoch, each.leader_epoch, each.start_offset, each.state_batches, each.delivery_complete_count
        )
        return coordinator.write(key, change)

    return GroupStateHandler(ApiKey.WRITE_SHARE_GROUP_STATE, begin, coordinator, probe)


def delete_handler(coordinator: ShareCoordinator, probe: ApiProbe) -> GroupStateHandler:
    """Return the handler of DeleteShareGroupState."""
    return GroupStateHandler(
        ApiKey.DELETE_SHARE_GROUP_STATE, lambda coordinator, key, _: coordinator.forget(key), coordinator, probe
    )


def summary_handler(coordinator: ShareCoordinator, probe: ApiProbe) -> GroupStateHandler:
    """Return the handler of ReadShareGroupStateSummary."""
    return GroupStateHandler(
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
        lambda coordinator, key, _: coordinator.read_summary(key),
        coordinator,
        probe,
        ("state_epoch", "leader_epoch", "start_offset", "delivery_complete_count"),
    )
