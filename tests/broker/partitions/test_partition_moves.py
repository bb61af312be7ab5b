"""Moves of partitions between the log directories of a running broker, while a producer writes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.cluster.configs import (
    BROKER_RESOURCE,
    OP_SET,
    AlterConfigOp,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from barnabas.protocol.messages.topics.log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsTopic,
    LogDirPartition,
)
from barnabas.protocol.records.batch import iter_batches
from tests.broker.conftest import Batch
from tests.support.daemon import Daemon, start_daemon
from tests.support.metrics import metric, wait_for_metric
from tests.support.wire import WireClient, fetch_request

RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
RUNNING = "barnabas_partition_moves_running"
COMPLETED = "barnabas_partition_moves_total"


class TwoDisks:
    """A broker with log.dirs `a` and `b`, topic t with its partition in a, and moves halted at first."""

    def __init__(self, root: Path) -> None:
        self.a, self.b = root / "a", root / "b"
        self.daemon: Daemon = start_daemon(root, f"log.dirs={self.a},{self.b}", f"{RATE}=0")
        with self.client() as client:
            client.create_topic("t", segment_bytes="65536", retention_ms="-1")
        assert (self.a / "t-0").exists()

    def client(self) -> WireClient:
        return WireClient(self.daemon.host, self.daemon.port)

    def let_them_run(self, bytes_per_second: int = 1 << 40) -> None:
        operations = [AlterConfigOp(name=RATE, operation=OP_SET, value=str(bytes_per_second))]
        request = IncrementalAlterConfigsRequest(
            resources=[AlterConfigsResource(type=BROKER_RESOURCE, name="1", operations=operations)]
        )
        with self.client() as client:
            assert client.call(request).results[0].error == ErrorCode.NONE

    def where(self, topic: str = "t") -> dict[str, LogDirPartition]:
        """Return the logs of partition 0 by directory."""
        with self.client() as client:
            answer = client.call(
                DescribeLogDirsRequest(topics=[DescribeLogDirsTopic(name=topic, partitions=[0])]),
            )
        return {result.path: entry for result in answer.results for each in result.topics for entry in each.partitions}


def alter(
    client: WireClient, path: Path | str, topic: str = "t", partition: int = 0
) -> AlterReplicaLogDirsPartitionResult:
    request = AlterReplicaLogDirsRequest(
        dirs=[AlterReplicaLogDir(path=str(path), topics=[AlterReplicaLogDirsTopic(name=topic, partitions=[partition])])]
    )
    result: AlterReplicaLogDirsPartitionResult = client.call(request).topics[0].partitions[0]
    return result


@pytest.fixture
def disks(tmp_path: Path) -> Iterator[TwoDisks]:
    two = TwoDisks(tmp_path)
    with two.daemon:
        yield two


def values(client: WireClient) -> list[int]:
    """Read t-0 fetch by fetch; return all offsets."""
    offsets: list[int] = []
    end = client.end_offset("t")
    while len(offsets) < end:
        result = client.fetch("t", len(offsets))
        assert result.error == ErrorCode.NONE
        for batch in iter_batches(result.data):
            batch.ensure_valid()
            offsets += range(batch.base_offset, batch.next_offset)
    return offsets


class Writing:
    """A producer that writes until stopped; `acknowledged` are the offsets in the responses."""

    def __init__(self, disks: TwoDisks, batch: Batch) -> None:
        self.acknowledged: list[int] = []
        self.failures: list[object] = []
        self._disks = disks
        self._batch = batch
        self._stop = threading.Event()
        self._progress = threading.Condition()
        self._thread = threading.Thread(target=self._work)

    def _work(self) -> None:
        try:
            with self._disks.client() as client:
                while not self._stop.is_set():
                    result = client.produce("t", self._batch(b"x" * 2000))
                    if result.error != ErrorCode.NONE:
                        self.failures.append(result)
                        return
                    with self._progress:
                        self.acknowledged.append(result.base_offset)
                        self._progress.notify_all()
        except (OSError, AssertionError) as error:
            self.failures.append(error)
        finally:
            with self._progress:
                self._stop.set()
                self._progress.notify_all()

    def wait_for(self, more: int) -> None:
        with self._progress:
            target = len(self.acknowledged) + more
            assert self._progress.wait_for(lambda: len(self.acknowledged) >= target or self._stop.is_set(), 30)

    def __enter__(self) -> Writing:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)


def test_a_producer_goes_on_writing_while_its_partition_moves_there_and_back(disks: TwoDisks, batch: Batch) -> None:
    disks.let_them_run()
    with disks.client() as client, Writing(disks, batch) as writing:
        for number, target in enumerate((disks.b, disks.a, disks.b), start=1):
            writing.wait_for(50)
            assert alter(client, target).error == ErrorCode.NONE
            wait_for_metric(disks.daemon, COMPLETED, number, wait_s=30)
            writing.wait_for(20)
    assert writing.failures == []
    assert writing.acknowledged == list(range(len(writing.acknowledged)))
    with disks.client() as client:
        assert values(client) == writing.acknowledged
    assert list(disks.where()) == [str(disks.b)]
    assert not (disks.a / "t-0").exists()
    assert disks.daemon.stop() == 0
    disks.daemon.start()
    with disks.client() as client:
        assert values(client) == writing.acknowledged
    assert list(disks.where()) == [str(disks.b)]
    assert "ERROR" not in disks.daemon.log


def test_kill_9_in_the_middle_of_a_move_loses_nothing_and_the_move_goes_on(disks: TwoDisks, batch: Batch) -> None:
    with disks.client() as client, Writing(disks, batch) as writing:
        writing.wait_for(150)
        alter(client, disks.b)
        disks.let_them_run(100_000)
        copied = f'barnabas_log_dir_size_bytes{{log_dir="{disks.b}"}}'
        deadline = time.monotonic() + 30
        while not (metric(disks.daemon, copied) or 0) > 0:
            assert time.monotonic() < deadline
        disks.daemon.kill()
    acknowledged = list(writing.acknowledged)
    assert len(acknowledged) >= 150
    disks.daemon.start()
    with disks.client() as client:
        found = values(client)
        assert found[: len(acknowledged)] == acknowledged
        disks.let_them_run()
        wait_for_metric(disks.daemon, COMPLETED, 1, wait_s=30)
        assert list(disks.where()) == [str(disks.b)]
        assert values(client) == found
        assert client.produce("t", batch(b"x")).base_offset == len(found)


def test_a_fetch_that_waits_is_answered_by_an_append_after_the_move(disks: TwoDisks, batch: Batch) -> None:
    disks.let_them_run()
    with disks.client() as client, disks.client() as reader:
        client.produce("t", batch(b"x"))
        reader.send(fetch_request("t", 1, max_wait_ms=20_000))
        wait_for_metric(disks.daemon, "barnabas_fetches_waiting", 1)
        alter(client, disks.b)
        wait_for_metric(disks.daemon, COMPLETED, 1)
        client.produce("t", batch(b"y"))
        answer = reader.receive().topics[0].partitions[0]
        assert (answer.error, answer.high_watermark) == (ErrorCode.NONE, 2)


def test_the_copy_is_described_with_its_lag_while_it_is_filled(disks: TwoDisks, batch: Batch) -> None:
    with disks.client() as client:
        for _ in range(3):
            client.produce("t", batch(b"x"))
        assert alter(client, disks.b).error == ErrorCode.NONE
        found = disks.where()
        assert (found[str(disks.a)].is_future, found[str(disks.a)].offset_lag) == (False, 0)
        assert (found[str(disks.b)].is_future, found[str(disks.b)].offset_lag) == (True, 3)
        assert metric(disks.daemon, RUNNING) == 1
        assert (metric(disks.daemon, "barnabas_partition_moves_remaining_bytes") or 0) > 0
        assert alter(client, disks.a).error == ErrorCode.NONE
        assert list(disks.where()) == [str(disks.a)]
        assert metric(disks.daemon, RUNNING) == 0


def test_every_directory_is_described_with_the_room_of_its_disk(disks: TwoDisks) -> None:
    with disks.client() as client:
        answer = client.call(DescribeLogDirsRequest())
    assert [result.path for result in answer.results] == [str(disks.a), str(disks.b)]
    for result in answer.results:
        assert result.error == ErrorCode.NONE
        assert 0 < result.usable_bytes <= result.total_bytes


def test_each_refusal_has_kafkas_code(disks: TwoDisks, batch: Batch) -> None:
    with disks.client() as client:
        assert alter(client, "/nowhere").error == ErrorCode.LOG_DIR_NOT_FOUND
        assert alter(client, "").error == ErrorCode.LOG_DIR_NOT_FOUND
        assert alter(client, disks.b, "nowhere").error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert alter(client, disks.b, partition=7).error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        long = "x" * 249
        client.create_topic(long)
        assert alter(client, disks.b, long).error == ErrorCode.INVALID_TOPIC_EXCEPTION
        here = alter(client, f"{disks.a}/")
        assert (here.error, here.message) == (ErrorCode.NONE, None)
        assert list(disks.where()) == [str(disks.a)]


def test_an_offline_directory_is_described_and_refused(disks: TwoDisks) -> None:
    disks.daemon.stop()
    disks.b.rename(disks.b.with_name("unplugged"))
    disks.b.write_text("no directory")
    disks.daemon.start()
    with disks.client() as client:
        answer = client.call(DescribeLogDirsRequest())
        assert [(result.path, result.error) for result in answer.results] == [
            (str(disks.a), ErrorCode.NONE),
            (str(disks.b), ErrorCode.KAFKA_STORAGE_ERROR),
        ]
        assert alter(client, disks.b).error == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_topic_that_is_deleted_in_the_middle_takes_its_copy_along(disks: TwoDisks, batch: Batch) -> None:
    with disks.client() as client:
        client.produce("t", batch(b"x"))
        alter(client, disks.b)
        assert client.delete_topic("t").error == ErrorCode.NONE
        assert disks.where() == {}
        assert metric(disks.daemon, RUNNING) == 0
        client.create_topic("t")
        assert client.produce("t", batch(b"x")).base_offset == 0
    assert disks.daemon.stop() == 0
    assert "ERROR" not in disks.daemon.log
