"""A copy answers for leader epochs as its source does, also for those that no copied batch shows."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.broker.mirrors.kafka_source import KafkaSource
from barnabas.broker.mirrors.partition_copier import EpochEnd
from barnabas.broker.mirrors.source_epochs import SourceEpochs
from barnabas.broker.storage.files.leader_epoch import EpochEntry, LeaderEpochFile
from barnabas.clients.config import ClientConfig
from barnabas.clients.network.cluster import Cluster
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.daemon import Daemon, start_daemon
from tests.support.kafka.kafka_wire import KafkaWire
from tests.support.mirrors.copies import admin_of, has_copied, until
from tests.support.storage.records import plain

LOG_END = 1000


def source_of(entries: list[EpochEntry], path: Path) -> LeaderEpochFile:
    found = LeaderEpochFile(path)
    found.replace_entries(tuple(entries))
    return found


def ask_all(
    epochs: SourceEpochs, source: LeaderEpochFile, newest: int, latest: int, log_start: int
) -> list[EpochEntry]:
    """Ask until nothing is left; return what was found."""
    found: list[EpochEntry] = []
    while (question := epochs.question(newest, latest)) is not None:
        answer = source.end_offset_for(question, LOG_END)
        end = EpochEnd(-1, -1) if answer is None else EpochEnd(answer.epoch, answer.start_offset)
        found = epochs.answered(end, log_start)
    return found


@pytest.mark.parametrize("seed", range(20))
def test_every_epoch_of_the_source_that_begins_in_the_copy_is_found(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    numbers = sorted(rng.sample(range(60), rng.randint(1, 12)))
    starts = sorted(rng.sample(range(LOG_END), len(numbers)))
    entries = [EpochEntry(*each) for each in zip(numbers, starts, strict=True)]
    source, epochs = source_of(entries, tmp_path), SourceEpochs()
    # Where epoch 0 begins only the copy's own batches tell.
    shown = entries if numbers[0] else entries[1:]
    assert ask_all(epochs, source, numbers[-1], rng.choice(numbers), 0) == shown
    log_start = rng.randrange(LOG_END)
    above = [each for each in shown if each.start_offset > log_start]
    found = ask_all(SourceEpochs(), source, numbers[-1], -1, log_start)
    assert found[len(found) - len(above) :] == above
    assert len(found) <= len(above) + 1


def test_a_later_round_asks_for_new_epochs_only(tmp_path: Path) -> None:
    entries = [EpochEntry(each, 10 * each) for each in range(50)]
    source, epochs = source_of(entries, tmp_path), SourceEpochs()
    assert ask_all(epochs, source, 49, 49, 0) == entries[1:]
    assert epochs.question(49, 49) is None
    source.replace_entries((*entries, EpochEntry(51, 600)))
    epochs.begin()
    assert ask_all(epochs, source, 51, 49, 0) == [entries[-1], EpochEntry(51, 600)]


def test_a_source_that_leads_in_an_epoch_that_its_log_lacks_is_asked_for_the_copys(tmp_path: Path) -> None:
    source = source_of([EpochEntry(2, 0), EpochEntry(4, 7)], tmp_path)
    assert ask_all(SourceEpochs(), source, 9, 4, 0) == [EpochEntry(2, 0), EpochEntry(4, 7)]
    assert ask_all(SourceEpochs(), source_of([], tmp_path), 9, 4, 0) == []
    assert ask_all(SourceEpochs(), source, -1, -1, 0) == []


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Daemon]:
    with start_daemon(tmp_path / "source") as daemon:
        yield daemon


async def epoch_ends(daemon: Daemon) -> list[object]:
    """Return what a consumer is answered about the first leader epochs."""
    key = TopicPartition("t", 0)
    cluster = Cluster(ClientConfig(bootstrap=daemon.bootstrap, client_id="test"))
    try:
        await cluster.load(["t"])
        node = await KafkaSource(cluster).node(*cluster.node_ids)
        return [(await node.epoch_ends({key: epoch}, {}))[key] for epoch in range(6)]
    finally:
        await cluster.close()


async def until_equal(copy: Daemon, expected: list[object]) -> None:
    async with asyncio.timeout(30):
        while await epoch_ends(copy) != expected:
            await asyncio.sleep(0.02)


async def test_a_consumer_is_answered_about_epochs_without_records_as_at_the_source(
    tmp_path: Path, source: Daemon
) -> None:
    source.create_topic("t", partitions=1)
    with KafkaWire(source.host, source.port) as wire:
        assert wire.produce(9, "t", bytes(plain(5))).error_code == 0
    for _ in range(2):  # each unclean stop begins an epoch
        await asyncio.to_thread(source.restart, clean=False)
    with KafkaWire(source.host, source.port) as wire:
        assert wire.produce(9, "t", bytes(plain(5))).error_code == 0
    await asyncio.to_thread(source.restart, clean=False)
    expected = await epoch_ends(source)
    assert expected == [(0, 5), (0, 5), (2, 10), (3, 10), (-1, -1), (-1, -1)]
    with start_daemon(tmp_path / "copy") as copy:
        async with admin_of(copy) as admin:
            await admin.mirrors.create("m", bootstrap=[source.bootstrap], topics=["t"])
        await until(copy, has_copied(10))
        await until_equal(copy, expected)
        await asyncio.to_thread(copy.restart, clean=False)
        await until_equal(copy, expected)
