"""Last fetched epochs in Fetch: a client's log that is not a prefix of the broker's learns where it diverges."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from barnabas.broker.handlers.data.fetch import FetchHandler
from barnabas.broker.handlers.data.fetch_contexts import FetchContexts
from barnabas.broker.handlers.data.fetch_session_cache import FetchSessionCache
from barnabas.broker.network.session import Session
from barnabas.broker.partitions.partition import Partition
from barnabas.broker.partitions.registry import PartitionRegistry
from barnabas.broker.probes import BrokerProbes
from barnabas.config.listeners import Listener
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.data.fetch import (
    FetchPartition,
    FetchPartitionResult,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from barnabas.protocol.wire.pieces import NO_RECORDS
from tests.support.daemon import start_daemon
from tests.support.kafka.kafka_wire import KafkaWire
from tests.support.storage.bench import TOPIC_ID, TP, LogBench, append, sized_batch
from tests.support.storage.records import plain

LONG_POLL_MS = 60_000


class Served:
    """A log with two batches in each of the epochs 2, 3 and 7, and the Fetch handler."""

    def __init__(self, log_dir: Path) -> None:
        self.log = LogBench(log_dir).open()
        for epoch in (2, 2, 3, 3, 7, 7):
            append(self.log, sized_batch(100), epoch)
        probes = BrokerProbes()
        registry = PartitionRegistry()
        loop = cast("Any", None)  # a request that waits fails
        registry.add(TP, Partition(self.log, 7, TOPIC_ID, probes.topic(TP.topic), loop))
        cache = FetchSessionCache(10, time.monotonic, probes.fetch_sessions)
        contexts = FetchContexts(cache, registry, lambda _: None, time.monotonic)
        self.handler = FetchHandler(registry, probes, loop, loop, 1 << 20, lambda _: None, 1, contexts)
        self.client = Session(Listener("PLAINTEXT", "127.0.0.1", 0))

    def fetch(self, *positions: tuple[int, int], session: tuple[int, int] = (0, -1), wait_ms: int = 0) -> Any:
        partitions = [
            FetchPartition(partition=0, offset=offset, max_bytes=1 << 20, last_fetched_epoch=epoch)
            for offset, epoch in positions
        ]
        topics = [FetchTopic(name=TP.topic, partitions=partitions)] if partitions else []
        answer = self.handler(
            self.client,
            FetchRequest(
                max_wait_ms=wait_ms,
                min_bytes=1,
                max_bytes=1 << 20,
                isolation=0,
                topics=topics,
                session_id=session[0],
                session_epoch=session[1],
            ),
        )
        assert isinstance(answer, FetchResponse)
        return answer


def told(result: FetchPartitionResult) -> tuple[int, int] | None:
    return None if result.diverging is None else (result.diverging.epoch, result.diverging.end_offset)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    each = Served(tmp_path)
    yield each
    each.log.close()


@pytest.mark.parametrize(
    ("offset", "last_epoch", "diverging"),
    [
        (6, -1, None),
        (6, 7, None),
        (2, 2, None),
        (4, 3, None),
        (1, 3, None),
        (3, 2, (2, 2)),
        (5, 3, (3, 4)),
        (7, 7, (7, 6)),
        (4, 5, (3, 4)),
        (6, 6, (3, 4)),
        (0, 1, None),
        (1, 1, (1, 0)),
    ],
)
def test_the_last_common_epoch_is_named(
    served: Served, offset: int, last_epoch: int, diverging: tuple[int, int] | None
) -> None:
    (result,) = served.fetch((offset, last_epoch), wait_ms=LONG_POLL_MS if diverging else 0).topics[0].partitions
    assert (result.error, told(result)) == (ErrorCode.NONE, diverging)
    assert (result.records is NO_RECORDS) == (diverging is not None or offset == 6)
    assert (result.high_watermark, result.log_start_offset) == (6, 0)


def test_an_epoch_without_a_known_end_and_offsets_below_the_log_start_are_out_of_range(served: Served) -> None:
    served.log.delete_records(3)
    for position in [(6, 8), (2, 2), (1, 7)]:
        (result,) = served.fetch(position).topics[0].partitions
        assert (result.error, result.diverging) == (ErrorCode.OFFSET_OUT_OF_RANGE, None)


def test_a_session_repeats_the_divergence_until_the_client_has_another_position(served: Served) -> None:
    opened = served.fetch((6, 6), session=(0, 0))
    assert told(opened.topics[0].partitions[0]) == (3, 4)
    for epoch in (1, 2):
        repeated = served.fetch(session=(opened.session_id, epoch), wait_ms=LONG_POLL_MS)
        assert told(repeated.topics[0].partitions[0]) == (3, 4)
    found = served.fetch((4, 3), session=(opened.session_id, 3))
    assert found.topics[0].partitions[0].records is not NO_RECORDS
    assert served.fetch((6, 7), session=(opened.session_id, 4)).topics == []


def test_a_long_poll_with_a_diverging_position_is_answered_immediately(tmp_path: Path) -> None:
    with start_daemon(tmp_path) as daemon, KafkaWire(daemon.host, daemon.port) as wire:
        wire.topic_id("t")
        wire.produce(9, "t", plain(5))
        for version in (12, 17):
            result = wire.fetch(version, "t", 9, last_fetched_epoch=0, max_wait_ms=LONG_POLL_MS)
            assert (result.diverging_epoch.epoch, result.diverging_epoch.end_offset) == (0, 5)
            assert not result.records
            assert wire.fetch(version, "t", 5, last_fetched_epoch=0).diverging_epoch.epoch == -1
