"""StreamsGroupDescribe (key 89): streams groups with their topology and members, for administration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.authorized_operations import NOT_ASKED
from barnabas.protocol.messages.groups.streams_topology import Endpoint, KeyValue, Tasks, TopicInfo


@dataclass(slots=True)
class StreamsGroupDescribeRequest:
    """Group ids."""

    group_ids: Sequence[str]
    include_authorized_operations: bool = False


class TaskAssignment(NamedTuple):
    """A member's tasks of each kind."""

    active: Tasks
    standby: Tasks
    warmup: Tasks


class DescribedSubtopology(NamedTuple):
    """A subtopology. Its internal topics have the partition counts that the broker decided, once it has."""

    subtopology_id: str
    source_topics: Sequence[str]
    repartition_sink_topics: Sequence[str]
    changelog_topics: Sequence[TopicInfo]
    repartition_source_topics: Sequence[TopicInfo]


class DescribedTopology(NamedTuple):
    """The topology of the group."""

    epoch: int
    subtopologies: Sequence[DescribedSubtopology]


class StreamsGroupMemberDescription(NamedTuple):
    """A member. `user_endpoint` is None if it answers no interactive queries."""

    member_id: str
    member_epoch: int
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    topology_epoch: int
    process_id: str
    user_endpoint: Endpoint | None
    client_tags: Sequence[KeyValue]
    assignment: TaskAssignment
    target: TaskAssignment


class StreamsGroupDescription(NamedTuple):
    """`state` by Kafka's name: Empty, NotReady, Assigning, Reconciling, Stable."""

    group_id: str
    state: str = ""
    group_epoch: int = 0
    assignment_epoch: int = 0
    topology: DescribedTopology | None = None
    members: Sequence[StreamsGroupMemberDescription] = ()
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    authorized_operations: int = NOT_ASKED


@dataclass(slots=True)
class StreamsGroupDescribeResponse:
    """In the order of the request."""

    groups: list[StreamsGroupDescription]
