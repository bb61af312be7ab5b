"""StreamsGroupDescribe (key 89): streams groups with their topology and members, for administration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.authorized_operations import NOT_ASKED
from barnabas.protocol.messages.groups.streams_topology import Endpoint, KeyValue, TaskIds, TaskOffset, TopicInfo
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import Bool, Error, Int32, Message, Nullable, NullableString, String


class TaskAssignment(Struct):
    """A member's tasks of each kind."""

    active: Sequence[TaskIds] = ()
    standby: Sequence[TaskIds] = ()
    warmup: Sequence[TaskIds] = ()


class DescribedSubtopology(Struct):
    """A subtopology. Its internal topics have the partition counts that the broker decided, once it has."""

    subtopology_id: String
    source_topics: Sequence[String]
    repartition_sink_topics: Sequence[String]
    changelog_topics: Sequence[TopicInfo]
    repartition_source_topics: Sequence[TopicInfo]


class DescribedTopology(Struct):
    """The topology of the group."""

    epoch: Int32
    subtopologies: Annotated[Sequence[DescribedSubtopology] | None, Nullable()]


class StreamsGroupMemberDescription(Struct):
    """A member. `user_endpoint` is None if it answers no interactive queries; only the clients know offsets."""

    member_id: String
    member_epoch: Int32
    instance_id: NullableString
    rack_id: NullableString
    client_id: String
    client_host: String
    topology_epoch: Int32
    process_id: String
    user_endpoint: Annotated[Endpoint | None, Nullable()]
    client_tags: Sequence[KeyValue]
    task_offsets: Sequence[TaskOffset] = ()
    task_end_offsets: Sequence[TaskOffset] = ()
    assignment: TaskAssignment
    target: TaskAssignment
    is_classic: Bool = False


class StreamsGroupDescription(Struct):
    """`state` by Kafka's name: Empty, NotReady, Assigning, Reconciling, Stable."""

    error: Error = ErrorCode.NONE
    message: Message = None
    group_id: String
    state: String = ""
    group_epoch: Int32 = 0
    assignment_epoch: Int32 = 0
    topology: Annotated[DescribedTopology | None, Nullable()] = None
    members: Sequence[StreamsGroupMemberDescription] = ()
    authorized_operations: Int32 = NOT_ASKED


class StreamsGroupDescribeResponse(Struct, flexible=0):
    """In the order of the request."""

    throttle_ms: Int32 = 0
    groups: Sequence[StreamsGroupDescription]


class StreamsGroupDescribeRequest(Request[StreamsGroupDescribeResponse], api=ApiKey.STREAMS_GROUP_DESCRIBE, flexible=0):
    """Group ids."""

    group_ids: Sequence[String]
    include_authorized_operations: Bool = False

    def refused(self, code: ErrorCode, message: str) -> StreamsGroupDescribeResponse:
        """The same refusal for every group."""
        groups = [StreamsGroupDescription(group_id=each, error=code, message=message) for each in self.group_ids]
        return StreamsGroupDescribeResponse(groups=groups)
