"""A group of client processes that join, leave and are killed, and checks of the records that they read.

    with ExitStack() as stack:
        group = Group(bootstrap, "t", "g", stack)
        first = group.come([sys.executable, "-m", "tests.support.groups.group_member", "confluent"])
        group.produce_and_wait(by=[first])
        first.kill()
    assert_no_commit_went_back(data_directory, "g")

A member is any program with the behavior specified in tests/support/groups/group_member.py.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from confluent_kafka import Producer

from barnabas.protocol.groups.keys import GroupMetadataKey, OffsetCommitKey, decode_key
from barnabas.protocol.groups.values import GroupMetadataValue, OffsetCommitValue
from barnabas.protocol.records.batch import iter_batches
from barnabas.protocol.records.reader import read_records
from barnabas.protocol.topic_name import OFFSETS_TOPIC
from tests.support.daemon import REPOSITORY
from tests.support.eventually import eventually

PARTITIONS = 6
RECORDS_PER_PARTITION = 10
WAIT_S = 60.0


class Member:
    """A consuming process; `got` has the values that it printed."""

    def __init__(self, news: threading.Condition, command: Sequence[str], arguments: Sequence[str]) -> None:
        self.name = " ".join([Path(command[0]).name, *command[-1:]])
        self.got: set[str] = set()
        self._news = news
        self.process = subprocess.Popen(
            [*command, *arguments],
            cwd=REPOSITORY,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def kill(self) -> None:
        """Send SIGKILL, unless the process has ended."""
        self.process.kill()
        self._end()

    def leave(self) -> None:
        """Stop it by SIGTERM, as deployments do."""
        self.process.terminate()
        self._end()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.startswith("got "):
                with self._news:
                    self.got.add(line.removeprefix("got ").strip())
                    self._news.notify_all()

    def _end(self) -> None:
        self.process.wait(WAIT_S)
        self._reading.join(WAIT_S)
        assert self.process.stdout is not None
        self.process.stdout.close()


class Group:
    """Members that read one topic of PARTITIONS partitions, and the produced records. `stack` ends the members."""

    def __init__(
        self, bootstrap: str, topic: str, group_id: str, stack: ExitStack, *, explain: Callable[[], str] = str
    ) -> None:
        """`explain` returns text to append to the message of a failed wait."""
        self.group_id = group_id
        self._bootstrap = bootstrap
        self._topic = topic
        self._stack = stack
        self._explain = explain
        self._news = threading.Condition()
        self._members: list[Member] = []
        self._produced = 0

    def come(self, command: Sequence[str], assignor: str = "range", instance: str | None = None) -> Member:
        """Start another member."""
        options = [assignor, *([] if instance is None else [instance])]
        member = Member(self._news, command, [self._bootstrap, self.group_id, self._topic, *options])
        self._stack.callback(member.kill)
        self._members.append(member)
        return member

    def produce_and_wait(self, *, by: Sequence[Member] = ()) -> None:
        """Produce to all partitions; wait until all records are processed, with a new one by each of `by`."""
        new = self.produce()
        with self._news:
            done = self._news.wait_for(lambda: self._missing() == set() and all(each.got & new for each in by), WAIT_S)
        assert done, self._report(by, new)

    def wait_for_all_to_read(self, members: Sequence[Member]) -> None:
        """Produce until each of `members` has read a new record, which means that each has partitions."""
        before = {id(member): len(member.got) for member in members}
        produced: set[str] = set()
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            produced |= self.produce()
            with self._news:
                if self._news.wait_for(lambda: all(len(each.got) > before[id(each)] for each in members), 1.0):
                    return
        raise AssertionError(self._report(members, produced))

    def wait_for_commits(self, data: Path) -> None:
        """Wait until the log in `data` has a commit for every partition."""
        eventually(
            lambda: len(_committed(data, self.group_id)) == PARTITIONS or None, what="a commit of every partition"
        )

    def produce(self) -> set[str]:
        """Produce some records to each partition, and return their values."""
        producer = Producer({"bootstrap.servers": self._bootstrap, "reconnect.backoff.max.ms": 200})
        first = self._produced
        for _ in range(RECORDS_PER_PARTITION * PARTITIONS):
            producer.produce(self._topic, str(self._produced).encode(), partition=self._produced % PARTITIONS)
            self._produced += 1
        assert producer.flush(WAIT_S) == 0
        return {str(number) for number in range(first, self._produced)}

    def _missing(self) -> set[str]:
        return {str(number) for number in range(self._produced)}.difference(*(each.got for each in self._members))

    def _report(self, by: Sequence[Member], new: set[str]) -> str:
        members = [(each.name, len(each.got), each.process.poll()) for each in self._members]
        idle = [each.name for each in by if not each.got & new]
        return f"missing={sorted(self._missing())[:10]} nothing={idle} members={members}" + self._explain()


def assert_no_commit_went_back(data: Path, group_id: str) -> None:
    """Assert that the group's committed offsets never decrease in the log, and that every partition has one."""
    assert len(_committed(data, group_id)) == PARTITIONS


def generation_of(data: Path, group_id: str) -> int:
    """Return the group's last generation with members in the log."""
    generations = [
        GroupMetadataValue.from_bytes(value).generation
        for key, value in _records(data)
        if isinstance(key, GroupMetadataKey) and key.group == group_id and value is not None
    ]
    return generations[-1]


def _committed(data: Path, group_id: str) -> dict[OffsetCommitKey, int]:
    """Return the group's last commit of each partition. Raises AssertionError if one went back."""
    committed: dict[OffsetCommitKey, int] = {}
    for key, value in _records(data):
        if isinstance(key, OffsetCommitKey) and key.group == group_id and value is not None:
            offset = OffsetCommitValue.from_bytes(value).offset
            assert offset >= committed.get(key, 0), f"{key} went back from {committed[key]} to {offset}"
            committed[key] = offset
    return committed


def _records(data: Path) -> Iterator[tuple[Any, bytes | None]]:
    for log in sorted(data.glob(f"{OFFSETS_TOPIC}-*/*.log")):
        for batch in iter_batches(log.read_bytes()):
            for record in read_records(batch) if not batch.is_control else ():
                if record.key is not None:
                    yield decode_key(record.key), record.value
