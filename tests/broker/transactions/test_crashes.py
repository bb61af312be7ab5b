"""A broker that is killed at each step of a transaction's end, and its next start."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path

import pytest

from barnabas.broker.storage.files.failpoints import VARIABLE
from barnabas.protocol.records.end_marker import decode_end_marker
from barnabas.protocol.records.reader import read_records
from tests.support.daemon import Daemon, start_daemon
from tests.support.groups.committed import create_topic, fetch, until_loaded
from tests.support.kafka.kafka_wire import KafkaWire, schema
from tests.support.kafka.wire_producer import WireProducer, await_complete, transaction_state
from tests.support.transactions.committed_reads import FetchedPartition, fetch_committed

SETTINGS = ("transaction.state.log.num.partitions=2", "offsets.topic.num.partitions=2")
WAIT_S = 20.0


def connected(daemon: Daemon) -> KafkaWire:
    """Return a connection to the broker once it has loaded its transactional ids."""
    wire = KafkaWire(daemon.host, daemon.port)
    deadline = time.monotonic() + WAIT_S
    while wire.call("list_transactions", 0, state_filters=(), producer_id_filters=()).error_code == 14:
        assert time.monotonic() < deadline
        time.sleep(0.01)  # polling another process with a deadline
    return wire


def markers_of(found: FetchedPartition) -> list[tuple[int, bool]]:
    """Return the epoch and the outcome of each marker."""
    outcomes = []
    for batch in found.markers:
        (record,) = read_records(batch)
        outcomes.append((batch.producer_epoch, decode_end_marker(record.key, record.value).is_commit))
    return outcomes


@pytest.mark.parametrize(
    ("step", "level", "is_commit"),
    [
        ("transaction.prepared", 2, True),
        ("transaction.prepared", 0, False),
        ("transaction.marker", 0, True),
        ("transaction.marker", 2, False),
        ("transaction.marked", 2, True),
        ("transaction.completed", 0, True),
    ],
)
def test_a_decided_transaction_is_completed_at_the_next_start_with_each_marker_once(
    tmp_path: Path, step: str, level: int, is_commit: bool
) -> None:
    dies = start_daemon(tmp_path, *SETTINGS, environ={VARIABLE: f"{step}=kill"})
    with KafkaWire(dies.host, dies.port) as wire:
        create_topic(wire, "t", 3)
        producer = WireProducer(wire, "id", level=level)
        assert producer.init() == 0
        assert producer.write_many({("t", 0): (b"a",), ("t", 1): (b"b",)}) == 0
        assert producer.commit_offsets("g", "t", {0: 5}) == 0
        epoch = producer.epoch
        with pytest.raises(ConnectionError):
            producer.end(is_commit=is_commit)
    dies.kill()
    with start_daemon(tmp_path, *SETTINGS) as daemon, connected(daemon) as wire:
        until_loaded(wire)
        expected = "CompleteCommit" if is_commit else "CompleteAbort"
        assert await_complete(wire, "id") == expected
        marker = (epoch + 1 if level == 2 else epoch, is_commit)
        for partition, value in ((0, b"a"), (1, b"b")):
            found = fetch_committed(wire, "t", partition, 0)
            assert markers_of(found) == [marker]
            assert [each for _, each in found.values] == ([value] if is_commit else [])
        assert fetch(wire, "g", "t").get(0, (-1,))[0] == (5 if is_commit else -1)
        again = WireProducer(wire, "id", level=level)
        assert again.init() == 0
        assert again.write("t", 0, b"next") == 0
        assert again.end(is_commit=True) == 0
        values = [each for _, each in fetch_committed(wire, "t", 0, 0).values]
        assert values == ([b"a", b"next"] if is_commit else [b"next"])


def test_an_open_transaction_goes_on_after_a_kill_and_times_out(tmp_path: Path) -> None:
    settings = (*SETTINGS, "transaction.abort.timed.out.transaction.cleanup.interval.ms=50")
    with start_daemon(tmp_path, *settings) as daemon:
        with KafkaWire(daemon.host, daemon.port) as wire:
            create_topic(wire, "t")
            patient, impatient = WireProducer(wire, "patient"), WireProducer(wire, "impatient", timeout_ms=1)
            for producer in (patient, impatient):
                assert producer.init() == 0
            assert patient.write("t", 0, b"a") == 0
            impatient.write("t", 0, b"b")
        daemon.kill()
        daemon.start()
        with connected(daemon) as wire:
            patient.wire = impatient.wire = wire
            assert await_complete(wire, "impatient") == "CompleteAbort"
            assert impatient.write("t", 0, b"late") == 47
            assert transaction_state(wire, "patient") == "Ongoing"
            assert patient.write("t", 0, b"c") == 0
            assert patient.end(is_commit=True) == 0
            assert [value for _, value in fetch_committed(wire, "t", 0, 0).values] == [b"a", b"c"]
        assert "transactions hang" not in daemon.log


def test_a_deleted_topic_does_not_keep_a_transaction_from_completing(tmp_path: Path) -> None:
    with start_daemon(tmp_path, *SETTINGS) as daemon, KafkaWire(daemon.host, daemon.port) as wire:
        create_topic(wire, "kept")
        create_topic(wire, "gone")
        producer = WireProducer(wire, "id")
        assert producer.init() == 0
        assert producer.write_many({("kept", 0): (b"a",), ("gone", 0): (b"b",)}) == 0
        delete_topic(wire, "gone")
        assert producer.end(is_commit=True) == 0
        assert transaction_state(wire, "id") == "CompleteCommit"
        assert [value for _, value in fetch_committed(wire, "kept", 0, 0).values] == [b"a"]


def test_deleting_the_topic_of_the_states_forgets_all_ids_and_the_next_use_creates_it_again(tmp_path: Path) -> None:
    with start_daemon(tmp_path, *SETTINGS) as daemon, KafkaWire(daemon.host, daemon.port) as wire:
        create_topic(wire, "t")
        producer = WireProducer(wire, "id")
        assert producer.init() == 0
        delete_topic(wire, "__transaction_state")
        deadline = time.monotonic() + WAIT_S
        while transaction_state(wire, "id"):
            assert time.monotonic() < deadline
        assert producer.write("t", 0, b"a") == 49
        again = WireProducer(wire, "id")
        assert again.init() == 0
        assert again.producer_id != producer.producer_id
        assert again.write("t", 0, b"a") == 0
        assert again.end(is_commit=True) == 0


def test_a_start_warns_of_transactions_that_no_transactional_id_has(tmp_path: Path) -> None:
    with start_daemon(tmp_path, *SETTINGS) as daemon:
        with KafkaWire(daemon.host, daemon.port) as wire:
            create_topic(wire, "t", 3)
            producer = WireProducer(wire, "forgotten")
            assert producer.init() == 0
            assert producer.write_many({("t", 0): (b"a",), ("t", 1): (b"b",)}) == 0
            delete_topic(wire, "__transaction_state")
            deadline = time.monotonic() + WAIT_S
            while transaction_state(wire, "forgotten"):
                assert time.monotonic() < deadline
            known = WireProducer(wire, "known")
            assert known.init() == 0
            assert known.write("t", 2, b"c") == 0
        daemon.kill()
        daemon.start()
        with connected(daemon):
            pass  # until all states are loaded
        (line,) = (each for each in daemon.log.splitlines() if "transactions hang" in each)
        assert "transactions hang in 2 partitions" in line
        assert f"producer_id={producer.producer_id} in t-0" in line
        assert "barnabas transaction find-hanging" in line


def delete_topic(wire: KafkaWire, name: str) -> None:
    """Delete a topic."""
    state = schema("delete_topics", 6, "request").DeleteTopicState(name=name, topic_id=None)
    deleted = wire.call("delete_topics", 6, topics=(state,), timeout=timedelta(seconds=30))
    assert [each.error_code for each in deleted.responses] == [0]


def test_a_read_only_broker_shows_open_and_prepared_transactions_and_changes_none(tmp_path: Path) -> None:
    dies = start_daemon(tmp_path, *SETTINGS, environ={VARIABLE: "transaction.prepared=kill"})
    with KafkaWire(dies.host, dies.port) as wire:
        create_topic(wire, "t")
        producers = WireProducer(wire, "open"), WireProducer(wire, "prepared")
        for producer in producers:
            assert producer.init() == 0
            assert producer.write("t", 0, b"a") == 0
        with pytest.raises(ConnectionError):
            producers[1].end(is_commit=True)
    dies.kill()
    with start_daemon(tmp_path, *SETTINGS, "read.only=true") as daemon, connected(daemon) as wire:
        states = {name: transaction_state(wire, name) for name in ("open", "prepared")}
        assert states == {"open": "Ongoing", "prepared": "PrepareCommit"}
        for producer in producers:
            producer.wire = wire
            assert producer.end(is_commit=True) == 44
        assert fetch_committed(wire, "t", 0, 0).values == []
    with start_daemon(tmp_path, *SETTINGS) as daemon, connected(daemon) as wire:
        assert await_complete(wire, "prepared") == "CompleteCommit"
        assert transaction_state(wire, "open") == "Ongoing"
