"""The Fetch handler on five partitions in this process. Only an append or the test ends a wait."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, cast

from barnabas.broker.handlers.data.fetch import FetchHandler
from barnabas.broker.handlers.data.fetch_contexts import FetchContexts
from barnabas.broker.handlers.data.fetch_session import FetchSession
from barnabas.broker.handlers.data.fetch_session_cache import FetchSessionCache
from barnabas.broker.network.deferred import Deferred
from barnabas.broker.network.session import Session
from barnabas.broker.partitions.partition import Partition
from barnabas.broker.partitions.registry import PartitionRegistry
from barnabas.broker.probes import BrokerProbes
from barnabas.config.listeners import Listener
from barnabas.protocol.messages.data.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.protocol.wire.pieces import NO_RECORDS
from tests.support.no_timers import NoTimers
from tests.support.storage.bench import TOPIC_ID, TP, LogBench, sized_batch

PARTITIONS = 5
MAX_WAIT_MS = 60_000


class Served:
    """Five partitions, the client that fetches them, and a handler."""

    def __init__(self, directory: Path, loop: Any = None, sessions: int = 10) -> None:
        self.loop = cast("Any", NoTimers() if loop is None else loop)
        self.probes = BrokerProbes()
        self.registry = PartitionRegistry()
        self.logs = [LogBench(directory / str(number)).open() for number in range(PARTITIONS)]
        self.partitions = [Partition(log, 0, TOPIC_ID, self.probes.topic(TP.topic), self.loop) for log in self.logs]
        for number, partition in enumerate(self.partitions):
            self.registry.add(TopicPartition(TP.topic, number), partition)
        self.cache = FetchSessionCache(sessions, lambda: 0.0, self.probes.fetch_sessions)
        topic_name = {TOPIC_ID: TP.topic}.get
        contexts = FetchContexts(self.cache, self.registry, topic_name, lambda: 0.0)
        self.handler = FetchHandler(
            self.registry, self.probes, self.loop, cast("Any", None), 1 << 20, topic_name, 1, contexts
        )
        self.client = Session(Listener("PLAINTEXT", "127.0.0.1", 0))

    def append(self, *numbers: int) -> None:
        for number in numbers:
            self.partitions[number].append(sized_batch(100))
        if isinstance(self.loop, NoTimers):
            self.loop.run_soon()

    def request(self, offsets: dict[int, int], *, min_bytes: int = 1, **session: Any) -> FetchRequest:
        topics = [
            FetchTopic(
                name=TP.topic,
                partitions=[
                    FetchPartition(partition=number, offset=offset, max_bytes=1 << 20)
                    for number, offset in offsets.items()
                ],
            )
        ]
        return FetchRequest(
            max_wait_ms=MAX_WAIT_MS, min_bytes=min_bytes, max_bytes=1 << 20, isolation=0, topics=topics, **session
        )

    def begin(self, request: FetchRequest) -> Coroutine[Any, Any, Any]:
        work = self.handler(self.client, request)
        assert asyncio.iscoroutine(work)
        return work

    def open_session(self) -> FetchSession:
        """Open a session of all partitions, which are settled then."""
        ends = {number: log.log_end_offset for number, log in enumerate(self.logs)}
        request = self.request(ends, session_epoch=0)
        request.max_wait_ms = 0
        _, opened = run(self.begin(request))
        session = self.cache.get(opened.session_id)
        assert session is not None
        assert session.pending == {}
        return session

    def read_again(
        self, session: FetchSession, offsets: dict[int, int], *, min_bytes: int = 1
    ) -> Coroutine[Any, Any, Any]:
        settings = {"session_id": session.session_id, "session_epoch": session.epoch}
        return self.begin(self.request(offsets, min_bytes=min_bytes, **settings))


def run(work: Coroutine[Any, Any, Any], after: int = 0, then: Callable[[], object] | None = None) -> tuple[int, Any]:
    """Run `work` to its end; call `then` after so many turns. Return the number of turns and the result."""
    for turn in range(10_000):
        if turn == after and then is not None:
            then()
        try:
            work.send(None)
        except StopIteration as end:
            return turn, end.value
    raise AssertionError("it does not end")


def offsets_of(response: FetchResponse) -> dict[int, int]:
    """Return the high watermarks of the partitions that have records."""
    return {
        result.partition: result.high_watermark
        for topic in response.topics
        for result in topic.partitions
        if result.records is not NO_RECORDS
    }


def read_of(waiting: Any) -> FetchResponse:
    """Return what a wait has ended with."""
    assert isinstance(waiting, Deferred)
    _, response = run(cast("Any", waiting.value))
    assert isinstance(response, FetchResponse)
    return response
