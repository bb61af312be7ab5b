"""Apache Kafka starts on what a power cut leaves of a directory of ours, and has everything that was acknowledged.

The states are those of the crash-state explorer (`tests/torture/crash_states`), with a part of the changes that were
not synced. More of each workload: BARNABAS_TEST_POWER_CUTS=20. Another seed: BARNABAS_FUZZ_SEED=8.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.batch import iter_batches
from barnabas.protocol.records.reader import read_records
from barnabas.protocol.share.state_records import StateBatch
from barnabas.protocol.uuids import uuid_text
from tests.support.eventually import eventually
from tests.support.groups.share_groups import NOT_READY
from tests.support.kafka.apache_kafka import Kafka, need_kafka
from tests.support.kafka.kafka_wire import KafkaWire
from tests.support.share.share_wire import states
from tests.torture.crash_states.disk import write_files
from tests.torture.crash_states.explorer import pick, record, states_named
from tests.torture.crash_states.promises import LogId, LogPromises, Stored
from tests.torture.crash_states.share_outcomes import ShareOutcomes, is_allowed, stored_deliveries

VERSION = "4.3.0"
SEED = int(os.environ.get("BARNABAS_FUZZ_SEED", "3"))
STATES = int(os.environ.get("BARNABAS_TEST_POWER_CUTS", "1"))
pytestmark = pytest.mark.timeout(240 + 60 * STATES)  # a start of Kafka for each state, on machines of any speed
WORKLOADS = (
    *("append_and_roll", "topics", "metadata_snapshots", "compaction", "retention", "leader_epochs"),
    *("overflow_split", "producers", "transactions", "share_groups", "share_groups_unsynced"),
)
"""Without a move between log directories, which both programs do in ways of their own."""
_LATEST = 2**31 - 1
"""A leader epoch that no other leader of a share partition has."""


def topics_of(wire: KafkaWire) -> dict[str, bytes]:
    """Return the ids of all topics."""
    settings: dict[str, Any] = {"include_topic_authorized_operations": False, "allow_auto_topic_creation": False}
    answer = wire.call("metadata", 12, topics=None, **settings)
    return {each.name: each.topic_id.bytes for each in answer.topics}


def stored_from(wire: KafkaWire, log: LogId, offset: int) -> dict[int, Stored]:
    """Return all records of a partition from an offset."""
    found: dict[int, Stored] = {}
    while True:
        answer = wire.fetch(11, log.topic, offset, partition=log.partition)
        assert answer.error_code == 0, (log, offset, answer.error_code)
        if not answer.records:
            return found
        for batch in iter_batches(answer.records):
            batch.ensure_valid()
            offset = batch.next_offset
            for each in () if batch.is_control else read_records(batch):
                found[each.offset] = Stored(each.key, each.value, each.timestamp)


def broken(wire: KafkaWire, topics: Mapping[str, bytes], promises: Mapping[LogId, LogPromises]) -> list[str]:
    """Return what is lost of the records that were promised, and what is there although nobody has written it."""
    complaints = []
    for log, promised in promises.items():
        if topics.get(log.topic) != log.topic_id:
            continue  # deleted, or not created yet
        where = f"{log.topic}-{log.partition}"
        found = stored_from(wire, log, promised.start_at_most)
        for offset, expected in promised.required():
            if offset >= promised.start_at_most and found.get(offset) != expected:
                complaints.append(f"{where}, {offset}: {found.get(offset)} instead of {expected}")
        for offset, actual in found.items():
            if actual not in promised.records.get(offset, ()):
                complaints.append(f"{where}, {offset}: {actual} was not written there")
    return complaints


def broken_shares(wire: KafkaWire, topics: Mapping[str, bytes], promises: ShareOutcomes) -> list[str]:
    """Return what of the share groups and the states of their partitions is not as it was promised."""
    complaints = []
    for (group, (topic, number)), allowed in promises.states.items():
        present = stored_from(wire, LogId(topic, number, topics[topic]), 0).keys()
        found = share_state(wire, group, topics[topic], number)
        start_offset, batches = (None, ()) if found is None else found
        deliveries = {} if start_offset is None else stored_deliveries(start_offset, batches, present)
        if not is_allowed(allowed, start_offset, deliveries, present):
            complaints.append(f"{group}, {topic}-{number}: {found}, allowed are {allowed}")
    for group, groups in promises.groups.items():
        epoch = share_group_epoch(wire, group)
        known = [each.epoch for each in groups if each is not None]
        if (None not in groups) if epoch is None else (not known or (None not in groups and epoch < min(known))):
            complaints.append(f"{group}: epoch {epoch}, allowed are {groups}")
    return complaints


def share_state(wire: KafkaWire, group: str, topic_id: bytes, number: int) -> tuple[int, list[StateBatch]] | None:
    """Return start offset and batches of a share partition, once they are loaded; None without a state."""

    def loaded() -> Any:
        wire.call("find_coordinator", 6, key_type=2, coordinator_keys=(f"{group}:{uuid_text(topic_id)}:{number}",))
        rows = states(
            wire, "read_share_group_state", 0, group, topic_id, {"partition": number, "leader_epoch": _LATEST}
        )
        return None if rows[0].error_code in NOT_READY else rows[0]

    row = eventually(loaded, what="a share partition's state")
    if row.error_code == ErrorCode.INVALID_REQUEST:
        return None
    assert row.error_code == 0, row
    found = row.state_batches
    return row.start_offset, [
        StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count) for each in found
    ]


def share_group_epoch(wire: KafkaWire, group: str) -> int | None:
    """Return the epoch of a share group, once it is loaded; None without the group."""

    def loaded() -> Any:
        wire.call("find_coordinator", 6, key_type=0, coordinator_keys=(group,))
        answer = wire.call("share_group_describe", 1, group_ids=(group,), include_authorized_operations=False)
        return None if answer.groups[0].error_code in NOT_READY else answer.groups[0]

    row = eventually(loaded, what="a share group")
    if row.error_code == ErrorCode.GROUP_ID_NOT_FOUND:
        return None
    assert row.error_code == 0, row
    return int(row.group_epoch)


@pytest.mark.parametrize("workload", WORKLOADS)
def test_kafka_has_what_was_acknowledged_before_a_power_cut(workload: str, tmp_path: Path) -> None:
    need_kafka(VERSION)
    recording = record(workload, SEED, tmp_path)
    names = pick(recording, STATES, SEED, family="sample")
    for number, state in enumerate(states_named(recording, names)):
        root = tmp_path / f"state-{number}"
        write_files(state.files, root)
        allowed = [
            {name: topic_id for name, topic_id, _ in held.topics}
            for held in state.promises.allowed_holdings(recording.events[state.name.event + 1 :])
        ]
        kafka = Kafka(VERSION, [root / "one", root / "two"], tmp_path / f"kafka-{number}")
        with kafka.running() as broker, KafkaWire("127.0.0.1", broker.port) as wire:
            topics = topics_of(wire)
            assert topics in allowed, (str(state.name), topics, allowed)
            complaints = broken(wire, topics, state.promises.logs)
            complaints += broken_shares(wire, topics, state.promises.shares)
        assert not complaints, (str(state.name), complaints)
