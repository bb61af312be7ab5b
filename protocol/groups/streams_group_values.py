"""Values of the records of streams groups (KIP-1071); `streams_group_keys` has the key of each.

    int16 version = 0 | fields of the tables below, all flexible

Source: Kafka's messages of these names, StreamsCoordinatorRecordHelpers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from struct import Struct as Layout
from typing import Any, Final, NamedTuple, TypeAlias

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.groups.streams_group_keys import (
    StreamsCurrentMemberAssignmentKey,
    StreamsGroupKey,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMetadataKey,
    StreamsGroupTopologyKey,
    StreamsTargetAssignmentMemberKey,
    StreamsTargetAssignmentMetadataKey,
)
from barnabas.protocol.groups.streams_topology import (
    ENDPOINT,
    KEY_VALUES,
    PARTITIONS_BY_NAME,
    TOPOLOGY_FIELDS,
    sorted_tasks,
)
from barnabas.protocol.kafka.schema import (
    INT8,
    INT32,
    INT64,
    NULLABLE_STRING,
    STRING,
    Array,
    Computed,
    Message,
    Nullable,
    Struct,
    Tagged,
    rows,
)
from barnabas.protocol.messages.groups.streams_topology import Endpoint, KeyValue, Tasks, Topology

VERSION: Final = 0
NOT_VALIDATED: Final = -1
"""No topology of the group was found valid yet."""

_VERSION: Final = Layout(">h")

TaskEpochs: TypeAlias = Mapping[str, Mapping[int, int]]
"""Active tasks by subtopology id and partition: the member epoch in which each was assigned."""


class StreamsGroupMetadataValue(NamedTuple):
    """`epoch` grows with every change that needs a new assignment. `metadata_hash`: of the group's topics, signed.

    validated_topology_epoch   of the topology whose topics all existed with the right partition counts
    assignment_configs         the configs that the assignor last used; none in records of Kafka before 4.2
    """

    epoch: int
    metadata_hash: int
    validated_topology_epoch: int = NOT_VALIDATED
    assignment_configs: Sequence[KeyValue] | None = ()


class StreamsMemberMetadataValue(NamedTuple):
    """A member's metadata, with tags in the order of their keys."""

    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    topology_epoch: int
    process_id: str
    user_endpoint: Endpoint | None
    client_tags: Sequence[KeyValue]


class StreamsTargetAssignmentMetadataValue(NamedTuple):
    """The group epoch of the target assignment, and when it was computed, in ms of wall time."""

    assignment_epoch: int
    timestamp_ms: int = 0


class StreamsTargetAssignmentMemberValue(NamedTuple):
    """A member's target assignment."""

    active: Tasks
    standby: Tasks
    warmup: Tasks


class StreamsCurrentMemberAssignmentValue(NamedTuple):
    """A member's current assignment. `state`: 1 stable, 2 has tasks to give up, 3 waits for others' tasks."""

    member_epoch: int
    previous_member_epoch: int
    state: int
    active: TaskEpochs
    standby: Tasks
    warmup: Tasks
    active_revoked: TaskEpochs
    standby_revoked: Tasks
    warmup_revoked: Tasks


StreamsGroupValue: TypeAlias = (
    StreamsGroupMetadataValue
    | StreamsMemberMetadataValue
    | StreamsTargetAssignmentMetadataValue
    | StreamsTargetAssignmentMemberValue
    | StreamsCurrentMemberAssignmentValue
    | Topology
)


class _EpochRow(NamedTuple):
    subtopology_id: str
    partitions: Sequence[int]
    epochs: Sequence[int] | None


def _epoch_rows(tasks: TaskEpochs) -> list[_EpochRow]:
    return [
        _EpochRow(each, sorted(tasks[each]), tuple(tasks[each][number] for number in sorted(tasks[each])))
        for each in sorted(tasks)
    ]


_TASKS = Array(
    Struct(
        lambda subtopology_id, partitions: (subtopology_id, frozenset(partitions)),
        subtopology_id=STRING,
        partitions=Array(INT32),
    ),
    make=dict,
)
_READ_EPOCHS = rows(
    _EpochRow, subtopology_id=STRING, partitions=Array(INT32), epochs=Tagged(Array(INT32, nullable_from=0), 0, ())
)


def _written_tasks(name: str) -> Computed:
    return Computed(PARTITIONS_BY_NAME, lambda value: sorted_tasks(getattr(value, name)))


def _written_epochs(name: str) -> Computed:
    return Computed(_READ_EPOCHS, lambda value: _epoch_rows(getattr(value, name)))


_GROUP = Message(
    0,
    StreamsGroupMetadataValue,
    epoch=INT32,
    metadata_hash=INT64,
    validated_topology_epoch=Tagged(INT32, 0, NOT_VALIDATED),
    assignment_configs=Tagged(KEY_VALUES._replace(nullable_from=0), 1, ()),
)
_MEMBER = Message(
    0,
    StreamsMemberMetadataValue,
    instance_id=NULLABLE_STRING,
    rack_id=NULLABLE_STRING,
    client_id=STRING,
    client_host=STRING,
    rebalance_timeout_ms=INT32,
    topology_epoch=INT32,
    process_id=STRING,
    user_endpoint=Nullable(ENDPOINT),
    client_tags=KEY_VALUES,
)
_TARGET_EPOCH = Message(
    0, StreamsTargetAssignmentMetadataValue, assignment_epoch=INT32, timestamp_ms=Tagged(INT64, 0, 0)
)
_READ_TARGET = Message(0, StreamsTargetAssignmentMemberValue, active=_TASKS, standby=_TASKS, warmup=_TASKS)
_WRITTEN_TARGET = Message(
    0, active=_written_tasks("active"), standby=_written_tasks("standby"), warmup=_written_tasks("warmup")
)
_READ_CURRENT = Message(
    0,
    StreamsCurrentMemberAssignmentValue,
    member_epoch=INT32,
    previous_member_epoch=INT32,
    state=INT8,
    active=_READ_EPOCHS,
    standby=_TASKS,
    warmup=_TASKS,
    active_revoked=_READ_EPOCHS,
    standby_revoked=_TASKS,
    warmup_revoked=_TASKS,
)
_WRITTEN_CURRENT = Message(
    0,
    member_epoch=INT32,
    previous_member_epoch=INT32,
    state=INT8,
    active=_written_epochs("active"),
    standby=_written_tasks("standby"),
    warmup=_written_tasks("warmup"),
    active_revoked=_written_epochs("active_revoked"),
    standby_revoked=_written_tasks("standby_revoked"),
    warmup_revoked=_written_tasks("warmup_revoked"),
)
_TOPOLOGY = Message(0, Topology, **TOPOLOGY_FIELDS)

_WRITERS: Final[dict[type, Message]] = {
    StreamsGroupMetadataValue: _GROUP,
    StreamsMemberMetadataValue: _MEMBER,
    StreamsTargetAssignmentMetadataValue: _TARGET_EPOCH,
    StreamsTargetAssignmentMemberValue: _WRITTEN_TARGET,
    StreamsCurrentMemberAssignmentValue: _WRITTEN_CURRENT,
    Topology: _TOPOLOGY,
}
_READERS: Final[dict[type, Message]] = {
    StreamsGroupMetadataKey: _GROUP,
    StreamsGroupMemberMetadataKey: _MEMBER,
    StreamsTargetAssignmentMetadataKey: _TARGET_EPOCH,
    StreamsTargetAssignmentMemberKey: _READ_TARGET,
    StreamsCurrentMemberAssignmentKey: _READ_CURRENT,
    StreamsGroupTopologyKey: _TOPOLOGY,
}


def encode_streams_group_value(value: StreamsGroupValue) -> bytes:
    """Encode a value."""
    return _VERSION.pack(VERSION) + _WRITERS[type(value)].write(VERSION, value)


def decode_streams_group_value(key: StreamsGroupKey, data: bytes) -> StreamsGroupValue:
    """Decode the value of a key. Raises DecodeError."""
    if len(data) < _VERSION.size:
        raise DecodeError(f"a value of {len(data)} bytes has no version")
    (version,) = _VERSION.unpack_from(data)
    if version != VERSION:
        raise DecodeError(f"version {version} of a streams group's record is not known")
    value: Any = _READERS[type(key)].read(VERSION, memoryview(data)[_VERSION.size :], max_items=len(data))
    if isinstance(value, StreamsCurrentMemberAssignmentValue):
        value = value._replace(
            active=_epochs(value.active, value.member_epoch),  # type: ignore[arg-type]
            active_revoked=_epochs(value.active_revoked, value.member_epoch),  # type: ignore[arg-type]
        )
    found: StreamsGroupValue = value
    return found


def _epochs(found: Sequence[_EpochRow], member_epoch: int) -> TaskEpochs:
    """Return the epochs of tasks; tasks without them, of Kafka before 4.2, get the member epoch."""
    tasks = {}
    for row in found:
        epochs = row.epochs
        if epochs is None or len(epochs) != len(row.partitions):
            epochs = [member_epoch] * len(row.partitions)
        tasks[row.subtopology_id] = dict(zip(row.partitions, epochs, strict=True))
    return tasks
