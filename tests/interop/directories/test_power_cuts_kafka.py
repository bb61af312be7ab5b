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

from barnabas.protocol.records.batch import iter_batches
from barnabas.protocol.records.reader import read_records
from tests.support.kafka.apache_kafka import Kafka, need_kafka
from tests.support.kafka.kafka_wire import KafkaWire
from tests.torture.crash_states.disk import write_files
from tests.torture.crash_states.explorer import pick, record, states_named
from tests.torture.crash_states.promises import LogId, LogPromises, Stored

VERSION = "4.3.0"
SEED = int(os.environ.get("BARNABAS_FUZZ_SEED", "3"))
STATES = int(os.environ.get("BARNABAS_TEST_POWER_CUTS", "1"))
pytestmark = pytest.mark.timeout(240 + 60 * STATES)  # a start of Kafka for each state, on machines of any speed
WORKLOADS = (
    *("append_and_roll", "topics", "metadata_snapshots", "compaction", "retention", "leader_epochs"),
    *("overflow_split", "producers", "transactions"),
)
"""Without a move between log directories, which both programs do in ways of their own."""


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
        assert not complaints, (str(state.name), complaints)
