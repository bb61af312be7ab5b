"""`__consumer_offsets` under faults: during its creation, its load, and the sync of a commit.

`with_fault` injects the faults into a real daemon.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

from click.testing import CliRunner

from barnabas.broker.coordinator_log.topic import partition_of
from barnabas.broker.storage.files.failpoints import VARIABLE as FAILPOINTS
from barnabas.commands.main import main
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.topic_name import OFFSETS_TOPIC
from tests.support.daemon import start_daemon, with_fault
from tests.support.eventually import eventually
from tests.support.groups.committed import commit, create_topic, fetch, until_loaded
from tests.support.kafka.kafka_wire import KafkaWire, metadata_request, schema
from tests.support.kafka.wire_producer import WireProducer, await_complete, coordinator_error, transaction_state

DURABLE = "log.flush.interval.messages=1"
ONE_PARTITION = "offsets.topic.num.partitions=1"

BUG_IN_PARTITION = """
import barnabas.broker.groups.offsets.loader as loader
load = loader.load_offsets_partition
def load_or_fail(partition_log, *arguments):
    if partition_log.topic_partition.partition == {partition}:
        raise LookupError("a bug of the loader")
    return load(partition_log, *arguments)
loader.load_offsets_partition = load_or_fail
"""

HELD_LOAD_AND_NO_RETRIES = """
import barnabas.broker.groups.offsets.loader as loader
import barnabas.broker.transactions.completion as completion
completion.FIRST_RETRY_S = 10**6
load = loader.load_offsets_partition
def held(*arguments):
    open({fifo!r}).read()
    return load(*arguments)
loader.load_offsets_partition = held
"""

BUG_IN_THE_FIRST_CREATION = """
from barnabas.broker.metadata_changes import MetadataChanges
create = MetadataChanges.create_in_steps
failed = []
async def create_or_fail(self, topic, steps):
    if not failed:
        failed.append(True)
        raise LookupError("a bug of the creation")
    return await create(self, topic, steps)
MetadataChanges.create_in_steps = create_or_fail
"""

BUG_IN_THE_FIRST_APPEND = """
from barnabas.broker.coordinator_log.log import CoordinatorLog
append = CoordinatorLog._append
failed = []
def append_or_fail(self, *arguments, **options):
    if not failed:
        failed.append(True)
        raise LookupError("a bug of the append")
    return append(self, *arguments, **options)
CoordinatorLog._append = append_or_fail
"""

NOTED_SYNCS = """
import os
sync = os.fdatasync
def noted(descriptor):
    sync(descriptor)
    path = os.readlink(f"/proc/self/fd/{{descriptor}}")
    with open({notes!r}, "a") as notes:
        notes.write(path + "\\n")
os.fdatasync = noted
"""

FAILING_SYNCS = """
import os
sync = os.fdatasync
def failing(descriptor):
    if {topic!r} in os.readlink(f"/proc/self/fd/{{descriptor}}"):
        raise OSError(5, "the disk is broken")
    sync(descriptor)
os.fdatasync = failing
"""

HELD_DIRECTORIES = """
import os, threading
mkdir = os.mkdir
go = threading.Thread(target=lambda: open({fifo!r}).read(), daemon=True)
go.start()
def held(path, *arguments, **named):
    name = os.path.basename(os.fspath(path))
    if name.startswith({topic!r}) and name != {free!r}:
        go.join()
    mkdir(path, *arguments, **named)
os.mkdir = held
"""


LONG_PAUSES = """
import barnabas.broker.partitions.creation_steps as partition_steps
partition_steps.PAUSE_FACTOR = 10**9
"""


def test_the_first_group_of_a_broker_waits_only_for_its_own_partition(tmp_path: Path) -> None:
    own = partition_of("first", 50)
    assert own != partition_of("second", 50)
    fifo = tmp_path / "go"
    os.mkfifo(fifo)
    code = HELD_DIRECTORIES.format(fifo=str(fifo), topic=OFFSETS_TOPIC, free=f"{OFFSETS_TOPIC}-{own}")
    with start_daemon(tmp_path, environ=with_fault(tmp_path, code)) as daemon:
        with KafkaWire(daemon.host, daemon.port) as first, KafkaWire(daemon.host, daemon.port) as second:
            create_topic(first, "t")
            for number in range(3):
                assert commit(first, "first", "t", {0: number}) == [0]
                assert fetch(first, "first", "t") == {0: (number, 0, "")}
            assert not (tmp_path / "data" / f"{OFFSETS_TOPIC}-{partition_of('second', 50)}").exists()
            with ThreadPoolExecutor(1) as thread:
                waiting = thread.submit(commit, second, "second", "t", {0: 7})
                fifo.write_text("go")
                assert waiting.result(30) == [0]
            assert fetch(second, "second", "t") == {0: (7, 0, "")}
        daemon.restart()
        with KafkaWire(daemon.host, daemon.port) as kafka:
            until_loaded(kafka)
            assert [fetch(kafka, group, "t")[0][0] for group in ("first", "second")] == [2, 7]


def test_groups_wait_for_a_topic_that_another_client_creates(tmp_path: Path) -> None:
    """The first join would rebalance 1,000 times until the group's log exists. As in Kafka, there is no coordinator."""
    fifo = tmp_path / "go"
    os.mkfifo(fifo)
    code = HELD_DIRECTORIES.format(fifo=str(fifo), topic=OFFSETS_TOPIC, free="")
    with (
        start_daemon(tmp_path, environ=with_fault(tmp_path, code)) as daemon,
        KafkaWire(daemon.host, daemon.port) as creator,
        KafkaWire(daemon.host, daemon.port) as wire,
    ):
        create_topic(wire, "t")
        creator.send(metadata_request(12, OFFSETS_TOPIC))
        unavailable = ErrorCode.COORDINATOR_NOT_AVAILABLE
        eventually(lambda: coordinator_error(wire, "g", is_group=True) == unavailable, what="the topic is known")
        assert commit(wire, "g", "t", {0: 1}) == [unavailable]
        fifo.write_text("go")
        creator.receive("metadata", 12)
        assert coordinator_error(wire, "g", is_group=True) == ErrorCode.NONE
        assert commit(wire, "g", "t", {0: 1}) == [ErrorCode.NONE]


def test_partitions_without_waiting_groups_are_created_after_the_others(tmp_path: Path) -> None:
    """With endless pauses only the requested partitions exist; other topics are created and deleted meanwhile."""
    groups = ("first", "second", "third")
    own = {partition_of(group, 50) for group in groups}
    assert len(own) == 3
    with start_daemon(tmp_path, environ=with_fault(tmp_path, LONG_PAUSES)) as daemon:
        with KafkaWire(daemon.host, daemon.port) as kafka:
            create_topic(kafka, "t")
            for group in groups[:2]:
                assert commit(kafka, group, "t", {0: 1}) == [0]
            create_topic(kafka, "other")
            assert commit(kafka, "third", "t", {0: 3}) == [0]
            assert directories(tmp_path) == own
        daemon.kill()
        daemon.start()
        assert len(directories(tmp_path)) == 50
        with KafkaWire(daemon.host, daemon.port) as kafka:
            until_loaded(kafka)
            assert [fetch(kafka, group, "t")[0][0] for group in groups] == [1, 1, 3]


def test_commands_about_all_transactions_pass_over_partitions_whose_logs_are_being_created(tmp_path: Path) -> None:
    with start_daemon(tmp_path, environ=with_fault(tmp_path, LONG_PAUSES)) as daemon:
        with KafkaWire(daemon.host, daemon.port) as kafka:
            create_topic(kafka, "t")
            assert commit(kafka, "first", "t", {0: 1}) == [0]
        for command in ("transaction find-hanging", f"transaction find-hanging {OFFSETS_TOPIC}", "explain transaction"):
            result = CliRunner().invoke(main, [*command.split(), "--bootstrap", daemon.bootstrap])
            assert result.exit_code == 0, result.output
        (made,) = directories(tmp_path)
        missing = f"{OFFSETS_TOPIC}-{0 if made else 1}"
        for command in (f"explain transaction --partition {missing}", f"explain partition {missing}"):
            result = CliRunner().invoke(main, [*command.split(), "--bootstrap", daemon.bootstrap])
            assert result.exit_code == 1
            assert f"the log of {missing} is being created: try again in a moment" in result.output


def test_a_clean_stop_creates_the_rest_and_a_deletion_does_not_wait_for_it(tmp_path: Path) -> None:
    with start_daemon(tmp_path, environ=with_fault(tmp_path, LONG_PAUSES)) as daemon:
        with KafkaWire(daemon.host, daemon.port) as kafka:
            create_topic(kafka, "t")
            assert commit(kafka, "first", "t", {0: 1}) == [0]
            state = schema("delete_topics", 6, "request").DeleteTopicState(name=OFFSETS_TOPIC, topic_id=None)
            deleted = kafka.call("delete_topics", 6, topics=(state,), timeout=timedelta(seconds=30))
            assert [each.error_code for each in deleted.responses] == [0]
            assert directories(tmp_path) == set()
            while commit(kafka, "first", "t", {0: 2}) == [15]:  # until the interrupted creation has ended
                pass
            assert fetch(kafka, "first", "t") == {0: (2, 0, "")}
            assert directories(tmp_path) == {partition_of("first", 50)}
        daemon.stop()
        assert len(directories(tmp_path)) == 50


def test_the_creation_of_fifty_logs_is_one_line_of_the_broker_log(tmp_path: Path) -> None:
    with start_daemon(tmp_path) as daemon:
        with KafkaWire(daemon.host, daemon.port) as kafka:
            create_topic(kafka, "t")
            assert commit(kafka, "first", "t", {0: 1}) == [0]
        daemon.stop()
    said = [line for line in (tmp_path / "daemon.log").read_text().splitlines() if OFFSETS_TOPIC in line]
    assert len(said) == 1
    assert said[0].endswith(f"{OFFSETS_TOPIC} is created, partitions=50")


def test_when_a_disk_fails_in_the_middle_the_rest_is_created_on_the_other_one(tmp_path: Path) -> None:
    """Only the partition whose creation failed is refused until the next start, like those on the failed disk."""
    one, other = tmp_path / "one", tmp_path / "other"
    groups = [f"group-{number}" for number in range(30)]
    with start_daemon(tmp_path, f"log.dirs={one},{other}", environ=with_fault(tmp_path, LONG_PAUSES)) as daemon:
        with KafkaWire(daemon.host, daemon.port) as kafka:
            create_topic(kafka, "t")
            assert commit(kafka, "first", "t", {0: 1}) == [0]
            other.rename(tmp_path / "unplugged")
            codes = {group: commit(kafka, group, "t", {0: 5})[0] for group in groups}
            refused = [group for group in groups if codes[group] != 0]
            assert {codes[group] for group in refused} == {15}
            assert len({partition_of(group, 50) for group in refused} - {partition_of("first", 50)}) == 1
        daemon.kill()
        (tmp_path / "unplugged").rename(other)
        daemon.start()
        with KafkaWire(daemon.host, daemon.port) as kafka:
            until_loaded(kafka)
            served = [group for group in groups if group not in refused]
            assert {fetch(kafka, group, "t")[0][0] for group in served} == {5}
            assert {commit(kafka, group, "t", {0: 6})[0] for group in groups} == {0}


def directories(tmp_path: Path) -> set[int]:
    """Return the topic's partitions that have a directory."""
    found = (tmp_path / "data").glob(f"{OFFSETS_TOPIC}-*")
    return {int(number) for path in found if (number := path.name.removeprefix(f"{OFFSETS_TOPIC}-")).isdigit()}


def test_a_bug_in_the_creation_of_the_topic_is_answered_and_the_next_group_tries_again(tmp_path: Path) -> None:
    environ = with_fault(tmp_path, BUG_IN_THE_FIRST_CREATION)
    with start_daemon(tmp_path, ONE_PARTITION, environ=environ) as daemon, KafkaWire(daemon.host, daemon.port) as kafka:
        create_topic(kafka, "t")
        assert commit(kafka, "g", "t", {0: 1}) == [15]
        assert commit(kafka, "g", "t", {0: 2}) == [0]
        assert fetch(kafka, "g", "t") == {0: (2, 0, "")}
        assert "LookupError: a bug of the creation" in daemon.log


def test_a_bug_in_a_waiting_group_does_not_stop_the_creation_of_the_topic(tmp_path: Path) -> None:
    assert partition_of("bad", 50) != partition_of("sound", 50)
    environ = with_fault(tmp_path, BUG_IN_THE_FIRST_APPEND)
    with (
        ThreadPoolExecutor(1) as thread,
        start_daemon(tmp_path, environ=environ) as daemon,
        KafkaWire(daemon.host, daemon.port) as bad,
        KafkaWire(daemon.host, daemon.port) as sound,
    ):
        create_topic(sound, "t")
        unanswered = thread.submit(commit, bad, "bad", "t", {0: 1})
        while "LookupError: a bug of the append" not in daemon.log:
            pass
        assert commit(sound, "sound", "t", {0: 1}) == [0]
        daemon.kill()
        assert unanswered.exception(30) is not None


def test_a_bug_while_one_partition_is_loaded_refuses_its_groups_and_serves_the_others(tmp_path: Path) -> None:
    broken = partition_of("broken", 50)
    assert broken != partition_of("sound", 50)
    with start_daemon(tmp_path) as daemon, KafkaWire(daemon.host, daemon.port) as kafka:
        create_topic(kafka, "t")
        for group in ("broken", "sound"):
            assert commit(kafka, group, "t", {0: 1}) == [0]
        daemon.stop()
    environ = with_fault(tmp_path, BUG_IN_PARTITION.format(partition=broken))
    with start_daemon(tmp_path, environ=environ) as daemon, KafkaWire(daemon.host, daemon.port) as kafka:
        until_loaded(kafka)
        assert fetch(kafka, "sound", "t") == {0: (1, 0, "")}
        assert fetch(kafka, "broken", "t") == {0: (-1, 15, "")}
        assert commit(kafka, "broken", "t", {0: 2}) == [15]
        assert [each.group_id for each in kafka.call("list_groups", 2).groups] == ["sound"]
        assert "LookupError: a bug of the loader" in daemon.log
        assert f"{OFFSETS_TOPIC} is loaded" in daemon.log


def test_a_commit_is_answered_once_it_is_synced_if_the_flush_settings_demand_it(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    environ = with_fault(tmp_path, NOTED_SYNCS.format(notes=str(notes)))
    settings = (DURABLE, ONE_PARTITION)
    with start_daemon(tmp_path, *settings, environ=environ) as daemon, KafkaWire(daemon.host, daemon.port) as kafka:
        create_topic(kafka, "t")
        assert commit(kafka, "g", "t", {0: 1}) == [0]
        before = syncs_of_offsets(notes)
        for number in range(2, 12):
            assert commit(kafka, "g", "t", {0: number}) == [0]
            assert syncs_of_offsets(notes) == before + number - 1


def test_a_commit_whose_sync_fails_is_not_acknowledged(tmp_path: Path) -> None:
    environ = with_fault(tmp_path, FAILING_SYNCS.format(topic=OFFSETS_TOPIC))
    other = tmp_path / "other"
    settings = (
        DURABLE,
        ONE_PARTITION,
        f"log.dirs={tmp_path / 'data'},{other}",
        f"metadata.log.dir={tmp_path / 'metadata'}",
    )
    with start_daemon(tmp_path, *settings, environ=environ) as daemon, KafkaWire(daemon.host, daemon.port) as kafka:
        create_topic(kafka, "t", 2)
        assert commit(kafka, "g", "t", {0: 1}) == [15]
        assert commit(kafka, "g", "t", {0: 2}) == [15]
        assert "the disk is broken" in daemon.log


def syncs_of_offsets(notes: Path) -> int:
    """Return how often the log of the only partition was synced."""
    return sum(line.endswith(".log") and OFFSETS_TOPIC in line for line in notes.read_text().splitlines())


def test_a_decided_transaction_is_completed_as_soon_as_its_group_is_loaded(tmp_path: Path) -> None:
    few = (ONE_PARTITION, "transaction.state.log.num.partitions=1")
    dies = start_daemon(tmp_path, *few, environ={**os.environ, FAILPOINTS: "transaction.prepared=kill"})
    with KafkaWire(dies.host, dies.port) as kafka:
        create_topic(kafka, "t")
        producer = WireProducer(kafka, "x")
        assert producer.init() == 0
        assert producer.commit_offsets("g", "t", {0: 5}) == 0
        with suppress(ConnectionError):
            producer.end(is_commit=True)
    dies.kill()
    fifo = tmp_path / "go"
    os.mkfifo(fifo)
    code = HELD_LOAD_AND_NO_RETRIES.format(fifo=str(fifo))
    with (
        start_daemon(tmp_path, *few, environ=with_fault(tmp_path, code)) as daemon,
        KafkaWire(daemon.host, daemon.port) as kafka,
    ):
        while kafka.call("list_transactions", 0, state_filters=(), producer_id_filters=()).error_code == 14:
            pass  # every iteration waits for a response
        assert transaction_state(kafka, "x") == "PrepareCommit"
        assert fetch(kafka, "g", "t", require_stable=True) == {0: (-1, 14, "")}
        fifo.write_text("go")
        until_loaded(kafka)
        assert await_complete(kafka, "x") == "CompleteCommit"
        assert fetch(kafka, "g", "t", require_stable=True) == {0: (5, 0, "")}
