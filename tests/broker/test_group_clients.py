"""Groups of clients in processes of their own: members come, leave and are killed, and so is the broker.

Every record is processed at least once, and what is committed never goes back.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Producer

from barnabas.broker.groups.offsets_topic import OFFSETS_TOPIC
from barnabas.protocol.groups.keys import OffsetCommitKey, decode_key
from barnabas.protocol.groups.offsets import decode_offset_commit
from barnabas.protocol.records.batch import iter_batches
from barnabas.protocol.records.reader import read_records
from tests.support.daemon import REPOSITORY, Daemon, start_daemon
from tests.support.group_member import LIBRARIES
from tests.support.metrics import metric, wait_for_metric

PARTITIONS = 6
WAIT_S = 60.0


class Member:
    """A process that consumes; `got` are the values that it printed."""

    def __init__(self, news: threading.Condition, arguments: Sequence[str]) -> None:
        self.got: set[str] = set()
        self._news = news
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.group_member", *arguments],
            cwd=REPOSITORY,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
            stdout=subprocess.PIPE,
            text=True,
        )
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._news:
                self.got.add(line.removeprefix("got ").strip())
                self._news.notify_all()

    def kill(self) -> None:
        self.process.kill()
        self._end()

    def leave(self) -> None:
        self.process.terminate()
        self._end()

    def _end(self) -> None:
        self.process.wait(WAIT_S)
        self._reading.join(WAIT_S)
        assert self.process.stdout is not None
        self.process.stdout.close()


class Group:
    """Members of one library that read one topic, and what was produced to it."""

    def __init__(self, daemon: Daemon, library: str, stack: ExitStack, assignor: str = "range") -> None:
        self.daemon = daemon
        self._library = library
        self._assignor = assignor
        self._stack = stack
        self._news = threading.Condition()
        self._members: list[Member] = []
        self._produced = 0
        daemon.create_topic("t", partitions=PARTITIONS)

    def come(self, instance: str | None = None) -> Member:
        """A member more."""
        options = [self._assignor, *([] if instance is None else [instance])]
        member = Member(self._news, [self._library, self.daemon.bootstrap, "g", "t", *options])
        self._stack.callback(member.kill)
        self._members.append(member)
        return member

    def produce_and_wait(self, *, by: Sequence[Member] = ()) -> None:
        """Records to all partitions; waits until all there ever were are processed, some of these by each of `by`."""
        producer = Producer({"bootstrap.servers": self.daemon.bootstrap})
        first = self._produced
        for _ in range(10 * PARTITIONS):
            producer.produce("t", str(self._produced).encode(), partition=self._produced % PARTITIONS)
            self._produced += 1
        assert producer.flush(WAIT_S) == 0
        new = {str(number) for number in range(first, self._produced)}
        with self._news:
            done = self._news.wait_for(lambda: self._missing() == set() and all(each.got & new for each in by), WAIT_S)
        counts = [len(each.got) for each in self._members]
        assert done, f"missing={sorted(self._missing())[:10]} got={counts}" + self.daemon.log_tail()

    def _missing(self) -> set[str]:
        return {str(number) for number in range(self._produced)}.difference(*(each.got for each in self._members))


@contextmanager
def group_of(directory: Path, library: str, assignor: str = "range") -> Iterator[Group]:
    with ExitStack() as stack:
        daemon = stack.enter_context(start_daemon(directory))
        yield Group(daemon, library, stack, assignor)
    assert_no_commit_went_back(directory / "data")


def assert_no_commit_went_back(data: Path) -> None:
    committed: dict[OffsetCommitKey, int] = {}
    commits = 0
    for log in sorted(data.glob(f"{OFFSETS_TOPIC}-*/*.log")):
        for batch in iter_batches(log.read_bytes()):
            for record in read_records(batch):
                assert record.key is not None
                key = decode_key(record.key)
                if isinstance(key, OffsetCommitKey) and record.value is not None:
                    offset = decode_offset_commit(record.value).offset
                    assert offset >= committed.get(key, 0), f"{key} went back from {committed[key]} to {offset}"
                    committed[key] = offset
                    commits += 1
    assert commits >= PARTITIONS


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("library", LIBRARIES)
def test_members_come_leave_and_crash_and_no_record_is_missed(tmp_path: Path, library: str) -> None:
    with group_of(tmp_path, library) as group:
        first = group.come()
        group.produce_and_wait(by=[first])
        second = group.come()
        wait_for_metric(group.daemon, "barnabas_group_rebalances_total", 2)
        group.produce_and_wait()
        second.kill()
        group.produce_and_wait(by=[first])
        third = group.come()
        group.produce_and_wait()
        first.leave()
        group.produce_and_wait(by=[third])


@pytest.mark.parametrize("clean", [True, False], ids=["restart", "kill -9"])
def test_a_group_outlives_its_broker(tmp_path: Path, clean: bool) -> None:
    with group_of(tmp_path, "confluent") as group:
        members = [group.come(), group.come()]
        group.produce_and_wait()
        group.daemon.restart(clean=clean)
        group.produce_and_wait()
        members[0].leave()
        group.produce_and_wait(by=[members[1]])


def test_static_members_restart_one_after_the_other_without_a_rebalance(tmp_path: Path) -> None:
    with group_of(tmp_path, "confluent") as group:
        members = {instance: group.come(instance) for instance in ("i", "j")}
        group.produce_and_wait(by=list(members.values()))
        rebalances = metric(group.daemon, "barnabas_group_rebalances_total")
        for instance in members:
            members[instance].kill()
            members[instance] = group.come(instance)
            group.produce_and_wait(by=list(members.values()))
        assert metric(group.daemon, "barnabas_group_rebalances_total") == rebalances


def test_cooperative_members_hand_partitions_over(tmp_path: Path) -> None:
    with group_of(tmp_path, "confluent", "cooperative-sticky") as group:
        first = group.come()
        group.produce_and_wait(by=[first])
        second = group.come()
        third = group.come()
        group.produce_and_wait()
        second.kill()
        group.produce_and_wait()
        third.leave()
        group.produce_and_wait(by=[first])
