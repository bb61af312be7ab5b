"""Requests of members of a streams group over Kafka's protocol, with kio's codecs, and a life of such groups.

The application has two subtopologies: "0" reads `in` and writes a repartition topic, "1" reads that and has a store.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from datetime import timedelta
from enum import Enum
from pathlib import Path
from typing import Any

from barnabas.protocol.groups.keys import StreamsGroupKey, decode_key
from barnabas.protocol.groups.streams_group_values import (
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMetadataValue,
)
from barnabas.protocol.groups.values import decode_value
from barnabas.protocol.records.batch import iter_batches
from barnabas.protocol.records.reader import read_records
from tests.support.authorization.entities import request
from tests.support.eventually import eventually
from tests.support.kafka.kafka_wire import KafkaWire

SETTINGS = {
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    "offsets.topic.num.partitions": "1",
}
"""Of a broker on which groups live without waiting."""
SOURCE, REPARTITION, CHANGELOG = "in", "app-rep-repartition", "app-store-changelog"
JOIN, LEAVE = 0, -1
_GROUP_ID_NOT_FOUND = 69
_UNORDERED = {"active_partitions", "standby_partitions"}
NO_TASKS: Mapping[str, Sequence[int]] = {}


def internal_topic(name: str, policy: str, partitions: int = 0) -> dict[str, Any]:
    configs = [{"key": "cleanup.policy", "value": policy}]
    return {"name": name, "partitions": partitions, "replication_factor": 0, "topic_configs": configs}


def subtopology(name: str, sources: Sequence[str] = (), **fields: Any) -> dict[str, Any]:
    return {
        "subtopology_id": name,
        "source_topics": list(sources),
        "source_topic_regex": [],
        "state_changelog_topics": [],
        "repartition_sink_topics": [],
        "repartition_source_topics": [],
        "copartition_groups": [],
        **fields,
    }


def topology(epoch: int = 0, source: str = SOURCE, prefix: str = "app") -> dict[str, Any]:
    repartition, changelog = f"{prefix}-rep-repartition", f"{prefix}-store-changelog"
    return {
        "epoch": epoch,
        "subtopologies": [
            subtopology("0", [source], repartition_sink_topics=[repartition]),
            subtopology(
                "1",
                repartition_source_topics=[internal_topic(repartition, "delete")],
                state_changelog_topics=[internal_topic(changelog, "compact")],
            ),
        ],
    }


class Member:
    """A member: it sends what a client would, and remembers its epoch and its tasks from the answers."""

    def __init__(self, wire: KafkaWire, group: str, name: str, process: str | None = None) -> None:
        self._wire = wire
        self.group = group
        self.name = name
        self.process = process or f"process-{name}"
        self.epoch = JOIN
        self.endpoint_epoch = 0
        self.active: dict[str, tuple[int, ...]] = {}
        self.standby: dict[str, tuple[int, ...]] = {}

    def send(self, **fields: Any) -> Any:
        """Send a heartbeat with these fields, and return the answer."""
        unset = ("active_tasks", "standby_tasks", "warmup_tasks", "client_tags", "task_offsets", "task_end_offsets")
        values = {
            "group_id": self.group,
            "member_id": self.name,
            "member_epoch": self.epoch,
            "endpoint_information_epoch": self.endpoint_epoch,
            **dict.fromkeys(unset),
            **fields,
        }
        self._wire.send(request("streams_group_heartbeat", 0, values))
        answer = self._wire.receive("streams_group_heartbeat", 0)
        if answer.error_code == 0:
            self.epoch = answer.member_epoch
            self.endpoint_epoch = answer.endpoint_information_epoch
            if answer.active_tasks is not None:
                self.active = {each.subtopology_id: each.partitions for each in answer.active_tasks}
                self.standby = {each.subtopology_id: each.partitions for each in answer.standby_tasks}
        return answer

    def join(self, **fields: Any) -> Any:
        """Join as a client does."""
        self.epoch = JOIN
        values = {
            "topology": topology(),
            "rebalance_timeout": 60_000,
            "process_id": self.process,
            "client_tags": [],
            **tasks(NO_TASKS),
            **fields,
        }
        return self.send(**values)

    def report(self, **fields: Any) -> Any:
        """Send a heartbeat that says that the member has the tasks that it was given last."""
        return self.send(**tasks(self.active, self.standby), **fields)

    def leave(self) -> Any:
        self.epoch = LEAVE
        return self.send()


def tasks(active: Mapping[str, Sequence[int]], standby: Mapping[str, Sequence[int]] = NO_TASKS) -> dict[str, Any]:
    """Return the fields that report tasks."""

    def rows(found: Mapping[str, Sequence[int]]) -> list[dict[str, Any]]:
        return [{"subtopology_id": each, "partitions": list(found[each])} for each in found]

    return {"active_tasks": rows(active), "standby_tasks": rows(standby), "warmup_tasks": []}


def describe(wire: KafkaWire, *groups: str) -> Any:
    return wire.call("streams_group_describe", 0, group_ids=groups, include_authorized_operations=False).groups


def statuses(answer: Any) -> list[int]:
    return [each.status_code for each in answer.status]


def create_topic(wire: KafkaWire, name: str, partitions: int) -> None:
    topic = {"name": name, "num_partitions": partitions, "replication_factor": 1, "assignments": [], "configs": []}
    wire.send(request("create_topics", 5, {"topics": [topic], "timeout": 30_000, "validate_only": False}))
    assert wire.receive("create_topics", 5).topics[0].error_code == 0


def settled(member: Member, wanted: Callable[[Any], bool]) -> Any:
    """Send heartbeats until an answer is as wanted: brokers learn of new topics a little later."""

    def ask() -> Any:
        answer = member.send()
        assert answer.error_code == 0, answer
        return answer if wanted(answer) else None

    return eventually(ask, what="the answer of a heartbeat")


def records_of(partition_directory: Path) -> list[list[Any]]:
    """Return the records of streams groups: key, value, and None for a tombstone.

    What differs from run to run (times, and the hash of topic ids) is a bool. Raises AssertionError for a value that
    our encoder would write with other bytes.
    """
    found = []
    for segment in sorted(partition_directory.glob("*.log")):
        for batch in iter_batches(memoryview(segment.read_bytes())):
            for record in read_records(batch):
                key = decode_key(bytes(record.key or b""))
                if isinstance(key, StreamsGroupKey):
                    data = None if record.value is None else bytes(record.value)
                    found.append(
                        [type(key).__name__, *key.as_dict().values(), None if data is None else _masked(key, data)]
                    )
    return found


def _masked(key: StreamsGroupKey, data: bytes) -> str:
    value = decode_value(key, data)
    assert value.to_bytes() == data, f"{key}: {data.hex()}"
    if isinstance(value, StreamsGroupMetadataValue):
        return repr(value.replaced(metadata_hash=bool(value.metadata_hash)))
    if isinstance(value, StreamsGroupTargetAssignmentMetadataValue):
        return repr(value.replaced(assignment_timestamp=bool(value.assignment_timestamp)))
    return repr(value)


def live(wire: KafkaWire) -> list[Any]:
    """Let members join, share tasks, fail and leave; return the answers."""
    seen: list[Any] = []

    def see(answer: Any) -> Any:
        seen.append(_plain(answer))
        return answer

    _wait_for_coordinator(wire, "app")
    one, two = Member(wire, "app", "one"), Member(wire, "app", "two")
    see(describe(wire, "app"))
    see(describe(wire, ""))
    for changed in (
        {"member_id": ""},
        {"group_id": ""},
        {"rack_id": ""},
        {"instance_id": "static"},
        {"rebalance_timeout": -1},
        {"topology": None},
        {"active_tasks": None},
        tasks({"0": [0]}),
        {"member_epoch": -2},
        {"member_epoch": -3},
        {"member_epoch": 1},
        {"member_epoch": 1, "topology": None},
        {"member_epoch": -1, "topology": None},
        {"topology": topology(source="__consumer_offsets")},
        {"topology": topology(source="a b")},
        {"topology": _with_counted_changelog()},
    ):
        see(one.send(**{**_joining(one), **changed}))
    see(one.join())
    see(describe(wire, "app"))
    see(one.send())
    create_topic(wire, SOURCE, 3)
    see(settled(one, lambda answer: statuses(answer) != [1]))
    see(settled(one, lambda answer: not statuses(answer)))
    see(one.report())
    see(describe(wire, "app"))
    see(one.send(**tasks({"7": [0]})))
    see(one.send(**tasks({"0": [3]})))
    see(two.join(topology=topology(1)))
    see(two.join(topology={**topology(), "subtopologies": topology()["subtopologies"][:1]}))
    see(two.join(user_endpoint={"host": "localhost", "port": 7000}, client_tags=[{"key": "zone", "value": "a"}]))
    see(describe(wire, "app"))
    see(two.report())
    see(one.send())
    see(one.report())
    see(one.report())
    see(two.report())
    see(two.report())
    see(describe(wire, "app"))
    for epoch in (one.epoch, one.epoch - 1, one.epoch + 1, 1):
        for partition in (0, 2):
            see(commit(wire, "app", "one", epoch, partition))
    see(commit(wire, "app", "nobody", one.epoch, 0))
    see(commit(wire, "app", "", -1, 0))
    two.epoch += 1
    see(two.send())
    two.epoch -= 2
    see(two.send())
    two.epoch += 1
    see(two.report(shutdown_application=True))
    see(one.report())
    see(_delete(wire, "app"))
    see(_join_classic(wire, "app"))
    see(two.leave())
    see(one.report())
    see(one.report())
    see(describe(wire, "app"))
    see(one.leave())
    see(describe(wire, "app"))
    see(commit(wire, "app", "", -1, 1))
    see(_list(wire))
    see(_delete(wire, "app"))
    see(describe(wire, "app"))
    return seen


def _wait_for_coordinator(wire: KafkaWire, group: str) -> None:
    """Let the broker create `__consumer_offsets` and load the group's partition."""

    def is_served() -> bool | None:
        wire.call("find_coordinator", 4, key_type=0, coordinator_keys=(group,))
        return describe(wire, group)[0].error_code == _GROUP_ID_NOT_FOUND or None

    eventually(is_served, what="a coordinator")


def commit(wire: KafkaWire, group: str, member: str, epoch: int, partition: int) -> Any:
    values = {
        "group_id": group,
        "generation_id_or_member_epoch": epoch,
        "member_id": member,
        "group_instance_id": None,
        "topics": [
            {
                "name": SOURCE,
                "partitions": [
                    {
                        "partition_index": partition,
                        "committed_offset": 5,
                        "committed_leader_epoch": -1,
                        "committed_metadata": "",
                    }
                ],
            }
        ],
    }
    wire.send(request("offset_commit", 9, values))
    return wire.receive("offset_commit", 9)


def _joining(member: Member) -> dict[str, Any]:
    return {
        "topology": topology(),
        "rebalance_timeout": 60_000,
        "process_id": member.process,
        "client_tags": [],
        **tasks(NO_TASKS),
    }


def _with_counted_changelog() -> dict[str, Any]:
    return {"epoch": 0, "subtopologies": [subtopology("0", state_changelog_topics=[internal_topic("c", "compact", 3)])]}


def _delete(wire: KafkaWire, group: str) -> Any:
    return wire.call("delete_groups", 2, groups_names=(group,))


def _list(wire: KafkaWire) -> Any:
    return wire.call("list_groups", 5, states_filter=(), types_filter=("streams",))


def _join_classic(wire: KafkaWire, group: str) -> Any:
    values = {
        "group_id": group,
        "session_timeout": 30_000,
        "rebalance_timeout": 30_000,
        "member_id": "",
        "group_instance_id": None,
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b""}],
    }
    wire.send(request("join_group", 5, values))
    return wire.receive("join_group", 5)


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: numbers for codes and times. Kafka lists topics of endpoints in a random order."""
    if is_dataclass(value):
        found = {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
        for name in _UNORDERED & found.keys():
            found[name].sort(key=lambda each: each["topic"])
        return found
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    if isinstance(value, timedelta):
        return round(value.total_seconds() * 1000)
    return value.value if isinstance(value, Enum) else value
