"""The same requests about share partitions' states leave the same records in Kafka 4.3 and in our daemon.

Both get them over Kafka's protocol, one at a time: initializations, changes with overlapping batches, reads by new
leaders, snapshots after some updates, fenced epochs, deletions. All answers are compared, then the files of
`__share_group_state`, apart from times. Then Kafka opens our directory, reads the states and goes on, and so do we.
"""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import Any

import pytest

from barnabas.protocol.records.batch import iter_batches
from barnabas.protocol.records.reader import read_records
from barnabas.protocol.share.state_records import ShareSnapshotKey, decode_key
from barnabas.protocol.uuids import uuid_text
from tests.support.daemon import Daemon
from tests.support.eventually import eventually
from tests.support.kafka.apache_kafka import Kafka
from tests.support.kafka.kafka_wire import KafkaWire, metadata_request, schema
from tests.support.share.share_wire import states

pytestmark = pytest.mark.timeout(300)
VERSION = "4.3.0"
SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.snapshot.update.records.per.snapshot": "5",
}
UUID_TEXT = re.compile(r"(?<=topicId\":\")[^\"]+")
TIMES = re.compile(r"^Dumping .*$|(?<=CreateTime: )\d+|(?<=crc: )\d+|(?<=[a-z]Timestamp\":)\d+", re.MULTILINE)
LOG = "__share_group_state-0/00000000000000000000.log"


class Traffic:
    """The requests of the test, and what was answered."""

    def __init__(self, wire: KafkaWire) -> None:
        self.wire = wire
        self.topic_id = _topic_id(wire)
        self.answers: list[Any] = []

    def send(self, api: str, version: int, group: str, **partition: Any) -> Any:
        (row,) = states(self.wire, api, version, group, self.topic_id, {"partition": 0, **partition})
        return row

    def note(self, api: str, version: int, group: str, **partition: Any) -> None:
        row = self.send(api, version, group, **partition)
        known = ("state_epoch", "leader_epoch", "start_offset", "delivery_complete_count", "state_batches")
        self.answers.append((api, row.error_code, [getattr(row, each, None) for each in known]))

    def begin(self) -> None:
        """Create the topic of the states, for which Kafka needs a moment."""
        key = f"first:{_text(self.topic_id)}:0"

        def has_begun() -> bool | None:
            self.wire.call("find_coordinator", 6, key_type=2, coordinator_keys=(key,))
            row = self.send("read_share_group_state_summary", 1, "first", leader_epoch=0)
            return row.error_code == 0 or None

        eventually(has_begun, what="a summary of the states")

    def run(self) -> list[Any]:
        self.begin()
        self.note("write_share_group_state", 1, "first", **_change(0, 0, 0, []))
        self.note("read_share_group_state", 0, "first", leader_epoch=0)
        self.note("initialize_share_group_state", 0, "first", state_epoch=1, start_offset=-1)
        self.note("initialize_share_group_state", 0, "second", state_epoch=0, start_offset=7)
        self.note("read_share_group_state", 0, "first", leader_epoch=2)
        self.note("read_share_group_state", 0, "first", leader_epoch=1)
        self.note("write_share_group_state", 1, "first", **_change(1, 1, 0, []))
        self.note("write_share_group_state", 1, "first", **_change(0, 2, 0, []))
        rng = random.Random(7)
        start = 0
        for number in range(40):
            batches = []
            for _ in range(rng.randrange(4)):
                first = start + rng.randrange(20)
                batches.append((first, first + rng.randrange(8), rng.choice((0, 2, 4)), rng.randrange(1, 5)))
            start += rng.randrange(3)
            self.note(
                "write_share_group_state", 1, "first", **_change(1, 2, rng.choice((start, start, -1)), batches, number)
            )
            if number % 10 == 0:
                self.note("read_share_group_state", 0, "first", leader_epoch=2)
                self.note("write_share_group_state", 0, "second", **_change(-1, -1, 7 + number, batches, None))
                self.note("read_share_group_state_summary", 1, "second", leader_epoch=-1)
        self.note("initialize_share_group_state", 0, "first", state_epoch=0, start_offset=3)
        self.note("initialize_share_group_state", 0, "first", state_epoch=2, start_offset=3)
        self.note("read_share_group_state_summary", 0, "first", leader_epoch=-1)
        self.note("delete_share_group_state", 0, "second")
        self.note("delete_share_group_state", 0, "nobody")
        self.note("read_share_group_state_summary", 1, "second", leader_epoch=-1)
        self.note("initialize_share_group_state", 0, "first", partition=-1, state_epoch=2, start_offset=3)
        self.note("delete_share_group_state", 0, "first", partition=9)
        return self.answers


def _change(
    state_epoch: int, leader_epoch: int, start: int, batches: list[tuple[int, int, int, int]], done: int | None = -1
) -> dict[str, Any]:
    kio = schema("write_share_group_state", 0 if done is None else 1, "request")
    return {
        "state_epoch": state_epoch,
        "leader_epoch": leader_epoch,
        "start_offset": start,
        "state_batches": tuple(
            kio.StateBatch(first_offset=first, last_offset=last, delivery_state=state, delivery_count=count)
            for first, last, state, count in batches
        ),
        **({} if done is None else {"delivery_complete_count": done}),
    }


def _topic_id(wire: KafkaWire) -> bytes:
    """Return the id of the topic, which is created if missing; Kafka needs a moment for it."""

    def topic_id() -> bytes | None:
        wire.send(metadata_request(12, "t"))
        (found,) = wire.receive("metadata", 12).topics
        return bytes(found.topic_id.bytes) if found.error_code == 0 else None

    return eventually(topic_id, what="the topic t")


def _text(topic_id: bytes) -> str:
    return uuid_text(topic_id)


def test_the_same_requests_leave_the_same_records_and_each_goes_on_with_the_others(tmp_path: Path) -> None:
    theirs, ours = tmp_path / "kafka" / "data", tmp_path / "ours" / "data"
    names = {name.replace(".", "_"): value for name, value in SETTINGS.items()}
    kafka = Kafka(VERSION, theirs, tmp_path / "kafka", node_id=1, **names)
    kafka.format()
    with kafka.running() as broker, KafkaWire("127.0.0.1", broker.port) as wire:
        expected = Traffic(wire).run()
    with Daemon(tmp_path / "ours", SETTINGS) as daemon:
        with KafkaWire(daemon.host, daemon.port) as wire:
            answers = Traffic(wire).run()
        assert daemon.stop() == 0
    assert answers == expected

    dumps = [
        TIMES.sub(
            "*", UUID_TEXT.sub("*", kafka.dump_log_segments("--share-group-state-decoder", "--files", str(data / LOG)))
        )
        for data in (ours, theirs)
    ]
    assert dumps[0] == dumps[1]
    assert dumps[0].count("stateBatches") > 40
    assert _masked(ours / LOG) == _masked(theirs / LOG)

    with Daemon(tmp_path / "kafka", SETTINGS) as daemon, KafkaWire(daemon.host, daemon.port) as wire:
        traffic = Traffic(wire)
        traffic.note("read_share_group_state", 0, "first", leader_epoch=2**31 - 1)
        assert traffic.answers[0][1] == 0
        found = traffic.answers[0][2]
        traffic.note("write_share_group_state", 1, "first", **_change(2, 2**31 - 1, 5, [(9, 9, 2, 1)], 1))
        assert traffic.answers[1][1] == 0
    assert found[2] == 3
    with kafka.running() as broker, KafkaWire("127.0.0.1", broker.port) as wire:
        traffic = Traffic(wire)

        def state() -> Any:
            row = traffic.send("read_share_group_state", 0, "first", leader_epoch=2**31 - 1)
            return row if row.error_code == 0 else None

        row = eventually(state, what="the state is loaded")
        assert (row.start_offset, len(row.state_batches)) == (5, 1), row


def _masked(path: Path) -> list[tuple[bytes, bytes | None]]:
    """Return keys and values of a log, without times and topic ids."""
    found = []
    for batch in iter_batches(path.read_bytes()):
        for record in read_records(batch):
            assert record.key is not None
            decoded = decode_key(record.key)
            assert decoded is not None
            kind, key = decoded
            value = record.value
            if value is not None and kind == ShareSnapshotKey.number:
                # After version, three epochs and the start offset: two times of eight bytes.
                value = value[:22] + bytes(16) + value[38:]
            found.append((record.key.replace(key.topic_id, bytes(16)), value))
    return found
