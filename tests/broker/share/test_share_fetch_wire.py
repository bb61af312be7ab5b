"""ShareFetch, ShareAcknowledge and the APIs of the states, over the wire."""

from __future__ import annotations

import select
from collections.abc import Iterator
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.builder import RecordBatchBuilder
from tests.support.daemon import Daemon, start_daemon, with_fault
from tests.support.eventually import eventually
from tests.support.groups.share_groups import alter, heartbeat, joined
from tests.support.kafka.kafka_wire import KafkaWire, schema
from tests.support.share.share_wire import ShareMember, acquired, states, values

ACCEPT, RELEASE, REJECT, RENEW = 1, 2, 3, 4
NUMBERS = count()


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with start_daemon(
        tmp_path_factory.mktemp("share"),
        "initial.features=share.version=1",
        "share.coordinator.state.topic.num.partitions=2",
        "group.share.min.record.lock.duration.ms=1000",
        "group.share.min.partition.max.record.locks=100",
    ) as daemon:
        yield daemon


@pytest.fixture
def wire(daemon: Daemon) -> Iterator[KafkaWire]:
    with KafkaWire(daemon.host, daemon.port) as wire:
        yield wire


def batch(*payloads: str) -> bytes:
    builder = RecordBatchBuilder(max_bytes=1 << 20)
    for each in payloads:
        assert builder.append(1_700_000_000_000, None, each.encode())
    return bytes(builder.build())


class Queue:
    """A topic with one partition, and a group that begins at its first record."""

    def __init__(self, wire: KafkaWire, *, group: str | None = None) -> None:
        number = next(NUMBERS)
        self.wire = wire
        self.topic = f"t{number}"
        self.group = group or f"g{number}"
        self.topic_id = wire.topic_id(self.topic).bytes
        self.begin(0)

    def begin(self, start_offset: int, state_epoch: int = 0) -> None:
        (row,) = states(
            self.wire,
            "initialize_share_group_state",
            0,
            self.group,
            self.topic_id,
            {"partition": 0, "state_epoch": state_epoch, "start_offset": start_offset},
        )
        assert row.error_code == 0, row

    def produce(self, *payloads: str) -> None:
        assert self.wire.produce(9, self.topic, batch(*payloads)).error_code == 0

    def member(self, wire: KafkaWire, name: str = "m1", version: int = 2) -> ShareMember:
        return ShareMember(wire, self.group, name, self.topic_id, version=version)

    def _summary(self) -> Any:
        (row,) = states(
            self.wire,
            "read_share_group_state_summary",
            1,
            self.group,
            self.topic_id,
            {"partition": 0, "leader_epoch": -1},
        )
        return None if row.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else row

    def done(self) -> int:
        """Number of records that need no further delivery. The stored start offset is that before the last change."""
        row = eventually(self._summary, what="the share coordinator has loaded its state")
        assert row.error_code == 0
        assert row.start_offset >= 0
        return int(row.start_offset + row.delivery_complete_count)


@pytest.mark.parametrize("version", [1, 2])
def test_a_member_gets_each_record_once_and_its_acknowledgements_move_the_start_offset(
    wire: KafkaWire, version: int
) -> None:
    queue = Queue(wire)
    queue.produce("a", "b", "c")
    member = queue.member(wire, version=version)

    answer = member.fetch(0)
    assert acquired(answer) == [(0, 2, 1)]
    assert values(answer) == [b"a", b"b", b"c"]
    assert acquired(member.fetch()) == []
    assert member.acknowledge({0: [(0, 0, [ACCEPT]), (1, 2, [RELEASE, REJECT])]}).error_code == 0

    assert queue.done() == 2
    assert acquired(member.fetch()) == [(1, 1, 2)]
    answer = member.fetch(acks={0: [(1, 1, [ACCEPT])]})
    assert answer.responses[0].partitions[0].acknowledge_error_code == 0
    assert queue.done() == 3


def test_a_waiting_fetch_is_answered_by_an_append(daemon: Daemon, wire: KafkaWire) -> None:
    queue = Queue(wire)
    with KafkaWire(daemon.host, daemon.port) as other:
        member = queue.member(other)
        member.fetch(0)
        member.begin_fetch(max_wait_ms=60_000)
        queue.produce("late")
        assert values(member.receive_fetch()) == [b"late"]


def test_a_lock_that_runs_out_gives_the_record_to_another_member_with_a_higher_count(
    daemon: Daemon, wire: KafkaWire
) -> None:
    queue = Queue(wire)
    queue.produce("a")
    set_config(wire, queue.group, "share.record.lock.duration.ms", "1000")
    slow = queue.member(wire, "slow")
    assert acquired(slow.fetch(0)) == [(0, 0, 1)]
    set_config(wire, queue.group, "share.record.lock.duration.ms", "60000")
    with KafkaWire(daemon.host, daemon.port) as other:
        waiting = queue.member(other, "waiting")
        assert acquired(waiting.fetch(0, max_wait_ms=60_000)) == [(0, 0, 2)]
        answer = slow.acknowledge({0: [(0, 0, [ACCEPT])]})
        assert answer.responses[0].partitions[0].error_code == ErrorCode.INVALID_RECORD_STATE
        assert waiting.acknowledge({0: [(0, 0, [ACCEPT])]}).responses[0].partitions[0].error_code == 0
    assert queue.done() == 1


def test_a_closed_connection_releases_what_its_member_had(daemon: Daemon, wire: KafkaWire) -> None:
    queue = Queue(wire)
    queue.produce("a")
    other = queue.member(wire, "other")
    assert acquired(other.fetch(0, max_records=0)) == []
    with KafkaWire(daemon.host, daemon.port) as dying:
        assert acquired(queue.member(dying, "dying").fetch(0)) == [(0, 0, 1)]
    assert acquired(other.fetch(max_wait_ms=60_000)) == [(0, 0, 2)]


def test_sessions_have_kafkas_errors(wire: KafkaWire) -> None:
    queue = Queue(wire)
    member = queue.member(wire)
    member.epoch = 1
    assert member.fetch(0).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    member.epoch = 0
    assert member.fetch(0, acks={0: [(0, 0, [ACCEPT])]}).error_code == ErrorCode.INVALID_REQUEST
    assert member.acknowledge({}).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert member.fetch(0).error_code == 0
    member.epoch = 5
    assert member.fetch().error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    member.epoch = -1
    assert member.fetch().error_code == 0
    member.epoch = 1
    assert member.fetch().error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    member.member = "x" * 37
    assert member.fetch(0).error_code == ErrorCode.INVALID_REQUEST


def test_a_renewal_needs_a_request_without_records(wire: KafkaWire) -> None:
    queue = Queue(wire)
    queue.produce("a")
    member = queue.member(wire)
    assert acquired(member.fetch(0)) == [(0, 0, 1)]
    assert member.fetch(acks={0: [(0, 0, [RENEW])]}, renew=True).error_code == ErrorCode.INVALID_REQUEST
    answer = member.fetch(
        acks={0: [(0, 0, [RENEW])]}, renew=True, max_records=0, max_bytes=0, min_bytes=0, max_wait_ms=0
    )
    assert answer.responses[0].partitions[0].acknowledge_error_code == 0
    answer = member.acknowledge({0: [(0, 0, [RENEW])]})
    assert answer.responses[0].partitions[0].error_code == ErrorCode.INVALID_REQUEST, "the request says it is none"
    assert member.acknowledge({0: [(0, 0, [RENEW])]}, renew=True).responses[0].partitions[0].error_code == 0
    assert member.acknowledge({0: [(0, 0, [ACCEPT])]}).responses[0].partitions[0].error_code == 0


def test_acknowledgements_that_share_an_offset_are_refused(wire: KafkaWire) -> None:
    queue = Queue(wire)
    queue.produce("a", "b")
    member = queue.member(wire)
    assert acquired(member.fetch(0)) == [(0, 1, 1)]
    for batches in ([(0, 0, [RENEW])] * 2, [(0, 1, [RENEW]), (1, 1, [RENEW])]):
        answer = member.acknowledge({0: batches}, renew=True)
        assert answer.responses[0].partitions[0].error_code == ErrorCode.INVALID_REQUEST
    answer = member.acknowledge({0: [(0, 0, [ACCEPT]), (1, 1, [ACCEPT])]})
    assert answer.responses[0].partitions[0].error_code == 0


def test_record_limit_acquires_no_more_than_was_asked_for(wire: KafkaWire) -> None:
    queue = Queue(wire)
    queue.produce("a", "b", "c")
    queue.produce("d")
    member = queue.member(wire)
    assert acquired(member.fetch(0, max_records=2, mode=1)) == [(0, 1, 1)]
    assert acquired(member.fetch(max_records=2, mode=1)) == [(2, 2, 1), (3, 3, 1)]


def set_config(wire: KafkaWire, group: str, name: str, value: str) -> None:
    kio = schema("incremental_alter_configs", 1, "request")
    config = kio.AlterableConfig(name=name, config_operation=0, value=value)
    resource = kio.AlterConfigsResource(resource_type=32, resource_name=group, configs=(config,))
    answer = wire.call("incremental_alter_configs", 1, resources=(resource,), validate_only=False)
    assert answer.responses[0].error_code == 0, answer


def test_read_committed_archives_aborted_records_and_waits_for_open_transactions(
    daemon: Daemon, wire: KafkaWire
) -> None:
    queue = Queue(wire)
    set_config(wire, queue.group, "share.isolation.level", "read_committed")
    producer = Producer({"bootstrap.servers": daemon.bootstrap, "transactional.id": queue.topic})
    producer.init_transactions()
    for value, commits in (("aborted", False), ("committed", True)):
        producer.begin_transaction()
        producer.produce(queue.topic, value)
        producer.flush()
        (producer.commit_transaction if commits else producer.abort_transaction)()
    producer.begin_transaction()
    producer.produce(queue.topic, "open")
    producer.flush()

    member = queue.member(wire)
    answer = member.fetch(0)
    assert acquired(answer) == [(1, 3, 1)], "the aborted record is at offset 0, markers at 1 and 3"
    assert values(answer) == [b"committed"]
    assert acquired(member.fetch(acks={0: [(1, 3, [0, ACCEPT, 0])]})) == []
    producer.commit_transaction()
    answer = member.fetch(max_wait_ms=30_000)
    assert values(answer) == [b"open"]
    assert queue.done() == 4


def test_deleted_records_are_not_delivered(wire: KafkaWire) -> None:
    queue = Queue(wire)
    queue.produce("a", "b", "c")
    queue.produce("d", "e")
    kio = schema("delete_records", 2, "request")
    rows = (kio.DeleteRecordsPartition(partition_index=0, offset=4),)
    topics = (kio.DeleteRecordsTopic(name=queue.topic, partitions=rows),)
    deleted = wire.call("delete_records", 2, topics=topics, timeout=timedelta(seconds=5))
    assert deleted.topics[0].partitions[0].error_code == 0
    answer = queue.member(wire).fetch(0)
    assert acquired(answer) == [(4, 4, 1)]
    assert values(answer) == [b"e"]


def test_a_record_that_nobody_accepts_is_archived_after_its_last_delivery(wire: KafkaWire) -> None:
    queue = Queue(wire)
    set_config(wire, queue.group, "share.delivery.count.limit", "2")
    queue.produce("poison")
    member = queue.member(wire)
    assert acquired(member.fetch(0)) == [(0, 0, 1)]
    assert acquired(member.fetch(acks={0: [(0, 0, [RELEASE])]})) == [(0, 0, 2)]
    assert acquired(member.fetch(acks={0: [(0, 0, [RELEASE])]})) == []
    assert queue.done() == 1


def test_a_restart_keeps_acknowledgements_and_counts_and_delivers_the_others_again(tmp_path: Path) -> None:
    with start_daemon(tmp_path, "initial.features=share.version=1") as daemon:
        with KafkaWire(daemon.host, daemon.port) as wire:
            queue = Queue(wire)
            queue.produce("a", "b", "c", "d")
            member = queue.member(wire)
            assert acquired(member.fetch(0)) == [(0, 3, 1)]
            member.acknowledge({0: [(0, 0, [ACCEPT]), (2, 2, [RELEASE])]})
            daemon.restart(clean=False)  # the end of the connection before it would release the other records
        with KafkaWire(daemon.host, daemon.port) as wire:
            queue.wire = wire
            assert queue.done() == 1
            member = queue.member(wire)
            answer = member.fetch(0, max_wait_ms=30_000)
            assert sorted(acquired(answer)) == [(1, 1, 1), (2, 2, 2), (3, 3, 1)]
            assert values(answer) == [b"b", b"c", b"d"]
            member.acknowledge({0: [(1, 3, [ACCEPT])]})
            assert queue.done() == 4


def test_a_share_partition_whose_state_is_lost_fails_slowly_and_says_how_it_begins_again(
    daemon: Daemon, wire: KafkaWire
) -> None:
    group, member_id = "lost", "m"
    topic_id = wire.topic_id("lost").bytes
    joined(wire, group, member_id, "lost")
    assert wire.produce(9, "lost", batch("a", "b")).error_code == 0
    (row,) = states(wire, "delete_share_group_state", 0, group, topic_id, {"partition": 0})
    assert row.error_code == 0
    member = ShareMember(wire, group, member_id, topic_id)
    errors = [member.fetch(0).responses[0].partitions[0].error_code for _ in range(3)]
    assert errors == [ErrorCode.UNKNOWN_SERVER_ERROR] * 3
    said = "share group lost at lost-0 cannot begin: the share partition has no state in __share_group_state; "
    assert [line for line in daemon.log.splitlines() if said in line and "--reset-offsets" in line] != []
    assert daemon.log.count(said) == 1
    with KafkaWire(daemon.host, daemon.port) as other:
        waiting = ShareMember(other, group, "waiting", topic_id)
        waiting.begin_fetch(0, max_wait_ms=60_000)
        assert member.fetch(0).error_code == 0  # the broker has read the other request, which is not answered yet
        assert not select.select([other.socket], [], [], 0)[0]

    heartbeat(wire, group, member_id, -1)
    assert alter(wire, group, "lost", p0=1).responses[0].partitions[0].error_code == 0
    assert values(ShareMember(wire, group, "next", topic_id).fetch(0)) == [b"b"]


def test_acknowledgements_without_a_state_fail_and_say_so(daemon: Daemon, wire: KafkaWire) -> None:
    queue = Queue(wire, group="lost-later")
    queue.produce("a")
    member = queue.member(wire)
    assert values(member.fetch(0)) == [b"a"]
    states(wire, "delete_share_group_state", 0, queue.group, queue.topic_id, {"partition": 0})
    answer = member.acknowledge({0: [(0, 0, [ACCEPT])]})
    assert answer.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert "share group lost-later at" in daemon.log
    assert "cannot store its acknowledgements: the share partition has no state" in daemon.log


def test_a_fetch_whose_session_was_closed_meanwhile_acquires_nothing(daemon: Daemon, wire: KafkaWire) -> None:
    queue = Queue(wire)
    member = queue.member(wire)
    member.fetch(0)
    member.begin_fetch(max_wait_ms=30_000)
    with KafkaWire(daemon.host, daemon.port) as other:
        closing = queue.member(other)
        closing.epoch = -1
        assert closing.fetch().error_code == 0
        queue.wire = other
        queue.produce("a")
        assert member.receive_fetch().error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
        assert acquired(queue.member(other, "m2").fetch(0, max_wait_ms=10_000)) == [(0, 0, 1)]


def test_a_fetch_waits_while_the_states_are_loaded(tmp_path: Path) -> None:
    """Kafka's consumer stops with an exception at every code of a coordinator."""
    held = tmp_path / "held"
    fault = f"""
import pathlib, time
import barnabas.broker.share.loader as loader
load = loader.load_shard
def held(*arguments):
    while pathlib.Path({str(held)!r}).exists():
        time.sleep(0.01)
    return load(*arguments)
loader.load_shard = held
"""
    with start_daemon(tmp_path, "initial.features=share.version=1", environ=with_fault(tmp_path, fault)) as daemon:
        with KafkaWire(daemon.host, daemon.port) as wire:
            queue = Queue(wire)
            queue.produce("a")
        held.touch()
        daemon.restart()
        with KafkaWire(daemon.host, daemon.port) as wire:
            member = queue.member(wire)
            answer = member.fetch(0, max_wait_ms=1)
            assert [each.error_code for each in answer.responses[0].partitions] == [ErrorCode.NONE]
            member.begin_fetch(0, max_wait_ms=60_000)
            held.unlink()
            assert values(member.receive_fetch()) == [b"a"]


NOTED_SHARE_PARTITIONS = """
import pathlib
from barnabas.broker.share.partitions import SharePartitions

get = SharePartitions.get

def noted(self, *arguments):
    found = get(self, *arguments)
    pathlib.Path({notes!r}).write_text(str(len(self._served)))
    return found

SharePartitions.get = noted
"""


def test_share_partitions_of_deleted_topics_are_let_go_while_the_group_goes_on(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    environ = with_fault(tmp_path, NOTED_SHARE_PARTITIONS.format(notes=str(notes)))
    settings = ("group.share.min.record.lock.duration.ms=1000", "group.share.record.lock.duration.ms=1000")
    with start_daemon(tmp_path, *settings, environ=environ) as daemon, KafkaWire(daemon.host, daemon.port) as wire:
        lasting = Queue(wire)
        member = lasting.member(wire)
        member.fetch(0)
        kio = schema("delete_topics", 6, "request")
        for number in range(3):
            passing = Queue(wire, group=lasting.group)
            passing.produce("a")
            assert acquired(passing.member(wire, f"passing-{number}").fetch(0)) == [(0, 0, 1)]
            entry = kio.DeleteTopicState(name=passing.topic, topic_id=None)
            (deleted,) = wire.call("delete_topics", 6, topics=(entry,), timeout=timedelta(seconds=30)).responses
            assert deleted.error_code == 0

        def served() -> bool:
            assert member.fetch().error_code == 0
            return notes.read_text() == "1"

        eventually(served, what="one share partition", timeout_s=10)
        assert "are not stored" not in daemon.log
