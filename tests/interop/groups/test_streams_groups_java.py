"""Kafka Streams with group.protocol=streams (KIP-1071): a word count whose tasks and internal topics the broker makes.

The count groups by word, so that it needs a repartition topic and the changelog topic of its store.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.interop.conftest import Tool
from tests.support.daemon import Daemon, start_daemon
from tests.support.eventually import eventually
from tests.support.kafka.application import Application
from tests.support.kafka.kafka_wire import KafkaWire
from tests.support.storage.committed_records import committed_records

pytestmark = pytest.mark.timeout(300)  # several starts of a JVM

GROUPS = "streams.StreamsGroupCommand"
SETTINGS = (
    "initial.features=transaction.version=2,streams.version=1",
    "group.streams.initial.rebalance.delay.ms=0",
    "group.streams.heartbeat.interval.ms=300",
    "group.streams.session.timeout.ms=3000",
    "group.streams.assignment.interval.ms=0",
)
STREAMS = ("group.protocol=streams", "group.instance.id=", "session.timeout.ms=", "heartbeat.interval.ms=")
PARTITIONS = 2
WORDS = [f"word{number}" for number in range(20)]
SEED = 20
WAIT_S = 90.0


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with start_daemon(tmp_path_factory.mktemp("streams"), *SETTINGS) as running:
        yield running


class Job:
    """A word count of its own topics. Each of its instances is a process with its own state directory."""

    def __init__(self, daemon: Daemon, directory: Path, name: str, *settings: str) -> None:
        self.name = name
        self._daemon = daemon
        self._directory = directory
        self._settings = settings
        self._chance = random.Random(SEED)
        self._words: Counter[str] = Counter()
        for topic in (self._input, self._output):
            daemon.create_topic(topic, partitions=PARTITIONS)

    @property
    def _input(self) -> str:
        return f"{self.name}-lines"

    @property
    def _output(self) -> str:
        return f"{self.name}-counts"

    def instance(self, name: str) -> Application:
        folder = self._directory / f"{self.name}-{name}"
        bootstrap, state = self._daemon.bootstrap, str(folder / "state")
        arguments = [bootstrap, self.name, self._input, self._output, state, *STREAMS, *self._settings]
        return Application(folder, "WordCount", arguments)

    def produce(self, lines: int) -> None:
        producer = Producer({"bootstrap.servers": self._daemon.bootstrap})
        for number in range(lines):
            words = self._chance.choices(WORDS, k=4)
            self._words.update(words)
            producer.produce(self._input, " ".join(words), partition=number % PARTITIONS)
        assert producer.flush(WAIT_S) == 0

    def counts(self) -> list[tuple[str, int]]:
        """Return the committed words and counts of the output."""
        return [
            ((record.key or b"").decode(), int(record.value or b"0"))
            for partition in range(PARTITIONS)
            for record in committed_records(self._daemon.data_directory, self._output, partition)
        ]

    def wait_for_counts(self) -> None:
        """Wait until every produced word was counted."""
        total = self._words.total()
        eventually(lambda: len(self.counts()) >= total or None, what=f"{total} counts", timeout_s=WAIT_S)

    def check_counts(self) -> None:
        """Each occurrence of a word gave its next count: none twice, none missing, in order."""
        found: dict[str, list[int]] = defaultdict(list)
        for word, count in self.counts():
            found[word].append(count)
        assert found == {word: list(range(1, total + 1)) for word, total in self._words.items()}

    def highest_counts(self) -> dict[str, int]:
        return {word: max(count for each, count in self.counts() if each == word) for word in self._words}

    def described(self) -> Any:
        with KafkaWire(self._daemon.host, self._daemon.port) as wire:
            fields = {"group_ids": (self.name,), "include_authorized_operations": False}
            (group,) = wire.call("streams_group_describe", 0, **fields).groups
            return group

    def wait_for_members(self, count: int) -> Any:
        """Return the description once the group is stable with this many members, each of which has tasks."""

        def settled() -> Any:
            group = self.described()
            has_tasks = all(member.assignment.active_tasks for member in group.members)
            return group if (group.group_state, len(group.members), has_tasks) == ("Stable", count, True) else None

        return eventually(settled, what=f"{count} members", timeout_s=WAIT_S)


@pytest.mark.ecosystem(
    "Kafka Streams",
    "4.3.0",
    "word count in a streams group, exactly once, application killed too",
    "`group.protocol=streams`",
)
def test_counts_are_exact_when_the_application_and_the_broker_are_killed(daemon: Daemon, tmp_path: Path) -> None:
    job = Job(daemon, tmp_path, "exact")
    job.produce(300)

    with job.instance("one") as application:
        job.wait_for_counts()
        job.produce(300)
        application.kill()
        job.produce(100)
        application.start()
        job.wait_for_counts()
        job.produce(300)
        daemon.restart(clean=False)
        job.produce(100)
        job.wait_for_counts()

        job.check_counts()
        (member,) = job.wait_for_members(1).members
        tasks = {each.subtopology_id: each.partitions for each in member.assignment.active_tasks}
        assert tasks == {"0": (0, 1), "1": (0, 1)}


def test_two_instances_share_the_tasks_and_one_takes_over_when_the_other_dies(
    daemon: Daemon, tool: Tool, tmp_path: Path
) -> None:
    job = Job(daemon, tmp_path, "shared", "processing.guarantee=at_least_once")
    server = ("--bootstrap-server", daemon.bootstrap)
    chosen = (*server, "--group", job.name)
    job.produce(200)

    with ExitStack() as stack:
        first = stack.enter_context(job.instance("one"))
        job.wait_for_counts()
        second = stack.enter_context(job.instance("two"))
        members = job.wait_for_members(2).members
        shares = [
            {(each.subtopology_id, number) for each in member.assignment.active_tasks for number in each.partitions}
            for member in members
        ]
        assert [len(share) for share in shares] == [2, 2]
        assert shares[0] | shares[1] == {("0", 0), ("0", 1), ("1", 0), ("1", 1)}

        assert [job.name, "Stable"] in rows(tool(GROUPS, *server, "--list", "--state"))
        assert [job.name, "Stable"] in [
            row[:1] + row[-2:-1] for row in rows(tool(GROUPS, *chosen, "--describe", "--state"))
        ]
        printed = rows(tool(GROUPS, *chosen, "--describe", "--members"))
        assert len([row for row in printed if row[:1] == [job.name]]) == 2

        second.kill()
        job.produce(200)
        job.wait_for_members(1)
        job.wait_for_counts()
        assert job.highest_counts() == dict(job._words)
        first.kill()

    eventually(lambda: job.described().group_state == "Empty" or None, what="an empty group", timeout_s=WAIT_S)
    reset = tool(GROUPS, *chosen, "--reset-offsets", "--all-input-topics", "--to-earliest", "--execute")
    assert {tuple(row[1:]) for row in rows(reset) if row[:1] == [job.name]} == {
        (f"{job.name}-lines", str(number), "0") for number in range(PARTITIONS)
    }
    deleted = tool(GROUPS, *chosen, "--delete", "--delete-all-internal-topics")
    assert f"('{job.name}') was successful" in deleted
    assert [job.name] not in rows(tool(GROUPS, *server, "--list"))


def rows(printed: str) -> list[list[str]]:
    """Return the words of each line."""
    return [line.split() for line in printed.splitlines() if line.strip()]
