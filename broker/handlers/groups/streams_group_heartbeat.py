"""StreamsGroupHeartbeat (key 88): the request with which members of a streams group join, stay and leave.

UNSUPPORTED_VERSION if streams.version is 0 or group.coordinator.rebalance.protocols does not name the protocol;
GROUP_AUTHORIZATION_FAILED if the client may not READ the group. A topology must name neither internal nor illegal
topics (STREAMS_INVALID_TOPOLOGY), and only topics that the client may DESCRIBE (TOPIC_AUTHORIZATION_FAILED). Then come
the checks of `groups.streams.heartbeat`, in the order given there.

Internal topics that are missing are created before the response, which still says that they are missing: the next
heartbeat finds them. The client needs CREATE on the cluster or on each topic; what was refused is in the status.
Differs from Kafka: the response waits for the creation, so it tells a failure immediately and not one heartbeat later;
a topology with a negative epoch, two subtopologies of the same id or a copartition group of topics that do not exist is
answered STREAMS_INVALID_TOPOLOGY or STREAMS_INVALID_TOPOLOGY_EPOCH and not UNKNOWN_SERVER_ERROR; a member id has at
most 36 characters, as in share groups.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from barnabas.broker.groups.client import JoiningClient
from barnabas.broker.groups.join_limits import ensure_streams_heartbeat_is_storable
from barnabas.broker.handlers.authorization import denial, denied_names, ensure_allowed, is_cluster_allowed
from barnabas.broker.handlers.turns import Turns, denied_in_turns
from barnabas.broker.network.timed_work import run_on_thread
from barnabas.broker.quotas.mutation import mutation_quota
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.groups.streams_group_heartbeat import GroupStatus, StatusCode
from barnabas.protocol.messages.security.resources import Operation, ResourceType
from barnabas.protocol.messages.topics.topics import CreateTopicsRequest
from barnabas.protocol.topic_name import is_internal, topic_name_fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from barnabas.broker.groups.streams.groups import StreamsGroups, StreamsHeartbeatResult
    from barnabas.broker.metadata_changes import MetadataChanges
    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import ApiProbe
    from barnabas.protocol.messages.groups.streams_group_heartbeat import (
        StreamsGroupHeartbeatRequest,
        StreamsGroupHeartbeatResponse,
    )
    from barnabas.protocol.messages.groups.streams_topology import Topology
    from barnabas.protocol.messages.topics.topics import NewTopic

T = TypeVar("T")

_API: Final = ApiKey.STREAMS_GROUP_HEARTBEAT
_LARGE: Final = 1000
"""Texts of a topology, from which on it is checked on a thread."""

_MAX_FAULTS: Final = 3
"""Failed creations in a status; the others are counted."""


class StreamsGroupHeartbeatHandler:
    """Serves StreamsGroupHeartbeat."""

    def __init__(self, groups: StreamsGroups, changes: MetadataChanges, probe: ApiProbe) -> None:
        self._groups = groups
        self._changes = changes
        self._probe = probe

    async def __call__(self, session: Session, request: StreamsGroupHeartbeatRequest) -> StreamsGroupHeartbeatResponse:
        """Answer one StreamsGroupHeartbeat request as the module docstring specifies."""
        ensure_enabled(self._groups)
        ensure_allowed(session, Operation.READ, ResourceType.GROUP, request.group_id, _API)
        topology = request.topology
        if topology is not None:
            names = await _checked(session, topology, partial(_valid_topics, topology))
            if await denied_in_turns(Turns(), session, Operation.DESCRIBE, ResourceType.TOPIC, names, _API):
                raise denial(ResourceType.TOPIC)
        await _checked(session, topology, partial(ensure_streams_heartbeat_is_storable, request))
        answer: asyncio.Future[StreamsHeartbeatResult] = asyncio.get_running_loop().create_future()
        self._groups.heartbeat(request, JoiningClient.of(session), self._probe).then(
            lambda result: None if answer.done() else answer.set_result(result)  # done: the client has gone
        )
        result = await answer
        if result.missing_topics:
            await self._create(session, result)
        return result.response

    async def _create(self, session: Session, result: StreamsHeartbeatResult) -> None:
        """Create the missing internal topics, and add what went wrong to the status."""
        topics = result.missing_topics
        if not is_cluster_allowed(session, Operation.CREATE, _API, log_denied=False):
            names = [topic.name for topic in topics]
            denied = denied_names(session, Operation.CREATE, ResourceType.TOPIC, names, _API)
            if denied:
                _explain(result, f"Unauthorized to CREATE on topics {', '.join(sorted(denied))}.")
                return
        faults = await self._faults(session, topics)
        if faults:
            more = len(faults) - _MAX_FAULTS
            text = ", ".join(faults[:_MAX_FAULTS]) + (f" and {more} more" if more > 0 else "")
            _explain(result, f"Creation failed: {text}.")

    async def _faults(self, session: Session, topics: Sequence[NewTopic]) -> list[str]:
        try:
            created = await self._changes.create_topics(
                CreateTopicsRequest(topics=list(topics)), mutation_quota(session, is_strict=True)
            )
        except BrokerError as error:
            return [f"{topic.name} ({error.message})" for topic in topics]
        return [
            f"{each.name} ({each.message or each.error.name})"
            for each in created
            if each.error not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)  # another member's was first
        ]


def ensure_enabled(groups: StreamsGroups) -> None:
    """Raise BrokerError UNSUPPORTED_VERSION if the protocol is not served."""
    if not groups.is_enabled:
        raise BrokerError(
            ErrorCode.UNSUPPORTED_VERSION,
            "streams groups need streams.version 1, and group.coordinator.rebalance.protocols has to name streams",
        )


async def _checked(session: Session, topology: Topology | None, check: Callable[[], T]) -> T:
    """Return what `check` returns; a large topology is checked on a thread, whose time counts as the client's."""
    if topology is None or _size(topology) < _LARGE:
        return check()
    return await run_on_thread(None, session.quota, check)


def _size(topology: Topology) -> int:
    """Return about how many texts a topology has."""
    return sum(
        1
        + len(each.source_topics)
        + len(each.source_topic_regex)
        + len(each.repartition_sink_topics)
        + sum(1 + len(topic.configs) for topic in (*each.repartition_source_topics, *each.changelog_topics))
        + len(each.copartition_groups)
        for each in topology.subtopologies
    )


def _valid_topics(topology: Topology) -> Iterable[str]:
    """Return the names of a topology's topics. Raises BrokerError STREAMS_INVALID_TOPOLOGY. For any thread."""
    names: dict[str, None] = {}
    for each in topology.subtopologies:
        names.update(dict.fromkeys((*each.source_topics, *each.repartition_sink_topics)))
        names.update(dict.fromkeys(topic.name for topic in each.repartition_source_topics))
        names.update(dict.fromkeys(topic.name for topic in each.changelog_topics))
    internal = [name for name in names if is_internal(name)]
    if internal:
        raise BrokerError(
            ErrorCode.STREAMS_INVALID_TOPOLOGY,
            f"Use of Kafka internal topics {','.join(internal)} in a Kafka Streams topology is prohibited.",
        )
    illegal = [name for name in names if topic_name_fault(name) is not None]
    if illegal:
        raise BrokerError(
            ErrorCode.STREAMS_INVALID_TOPOLOGY, f"Topic names {','.join(illegal)} are not valid topic names."
        )
    return names


def _explain(result: StreamsHeartbeatResult, text: str) -> None:
    """Add a text to the status of missing topics."""
    code = StatusCode.MISSING_INTERNAL_TOPICS
    status = list(result.response.status or ())
    for position, each in enumerate(status):
        if each.code == code:
            status[position] = each.replaced(detail=f"{each.detail}; {text}")
            break
    else:
        status.append(GroupStatus(code=code, detail=text))
    result.response.status = status
