"""One connection of a broker with real logs, whose Produce requests are served by the compiled handler or in Python."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from barnabas.broker.handlers.data.produce import ProduceHandler
from barnabas.broker.network.deferred import Deferred
from barnabas.broker.network.dispatch import Dispatcher
from barnabas.broker.partitions.flush_waits import FlushWaits
from barnabas.broker.partitions.partition import Partition
from barnabas.broker.partitions.registry import PartitionRegistry
from barnabas.broker.probes import BrokerProbes
from barnabas.broker.storage.group_commit import FlushCallback
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.kafka.produce_traffic import Sent
from tests.support.manual_loop import ManualExecutor, ManualLoop
from tests.support.piped_connection import Harness
from tests.support.transactions.real_partitions import RealPartitions

IDS = {"a": b"a" * 16, "b": b"b" * 16, "c": b"c" * 16}
PARTITIONS = 3
REFUSED = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.TRANSACTION_ABORTABLE,
    ErrorCode.PRODUCER_FENCED,
)


class Coordinator:
    """Admits most partitions to transactions, some of them later; the same ones with the same seed."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self.calls: list[object] = []
        self.late: list[tuple[Deferred[Any], dict[tuple[str, int], ErrorCode]]] = []

    def admit(
        self, transactional_id: str, producer_id: int, epoch: int, partitions: Sequence[tuple[str, int]], *, adds: bool
    ) -> Any:
        self.calls.append((transactional_id, producer_id, epoch, list(partitions), adds))
        chance = self._chance
        refused = {key: chance.choice(REFUSED) for key in partitions if chance.random() < 0.05}
        if chance.random() < 0.9:
            return refused
        answer: Deferred[Any] = Deferred()
        self.late.append((answer, refused))
        return answer

    def answer_late(self) -> bool:
        """Give the answers that are due; return whether there were any."""
        late, self.late = self.late, []
        for answer, refused in late:
            answer.resolve(refused)
        return bool(late)


class ManualFlushWaits(FlushWaits):
    """Flushes that the test completes."""

    def __init__(self, loop: ManualLoop) -> None:
        super().__init__(loop)
        self.waiting: list[tuple[str, int, FlushCallback]] = []

    def wait(self, partition: Partition, up_to_offset: int, flushed: FlushCallback) -> None:
        self.waiting.append((str(partition.log.topic_partition), up_to_offset, flushed))


class Broker:
    """One connection of a broker whose partitions have real logs."""

    def __init__(self, directory: Path, loop: ManualLoop, *, is_compiled: bool) -> None:
        from barnabas.broker.handlers.data.kernels._produce import ProduceKernel  # optional
        from barnabas.broker.network.kernels._frames import FrameRun

        directory.mkdir()
        names = {(topic, number): IDS[topic] for topic in IDS for number in range(PARTITIONS)}
        self.real = RealPartitions(directory, names, loop)
        self.probes = BrokerProbes()
        self.partitions = PartitionRegistry()
        for key in names:
            log = self.real.all[key].log
            partition = Partition(log, 0, names[key], self.probes.topic(key[0]), loop)
            self.partitions.add(TopicPartition(*key), partition)
        names_by_id = {topic_id: name for name, topic_id in IDS.items()}
        probe = self.probes.api("produce")
        self.coordinator = Coordinator(1)
        self.flushes = ManualFlushWaits(loop)
        self.loop = loop
        self.threads = ManualExecutor()
        handler = ProduceHandler(
            self.partitions, names_by_id.get, self.flushes, self.coordinator, probe, loop, self.threads
        )
        clock = log.core.services.clock
        kernel = ProduceKernel(probe, self.partitions, clock, handler)
        dispatcher = Dispatcher({ApiKey.PRODUCE: handler}, self.probes, loop)
        self.harness = Harness(dispatcher.serve)
        if is_compiled:
            self.harness.connection._frames = FrameRun({0: kernel})

    def forbid_dispatcher(self) -> None:
        """Fail the test at the next request that the kernel does not answer itself."""
        connection = self.harness.connection
        connection._serve = connection._registry.dispatcher.serve = (  # type: ignore[method-assign]
            lambda *_: pytest.fail("the request was not plain")
        )

    def answers(self, requests: Sequence[Sent]) -> bytes:
        pipe = self.harness.pipe
        self.harness.feed(b"".join([sent.frame(IDS) for sent in requests]))
        while self.coordinator.answer_late():
            pass
        written, pipe.written = pipe.written, b""
        return written

    def flush_each(self, messages: int, *, acks_all: bool = False) -> None:
        """Set flush.messages and flush.acks.all of all topics."""
        for topic in IDS:
            for number in range(PARTITIONS):
                log: Any = self.partitions.get(topic, number).writable_log  # type: ignore[union-attr]
                log.update_config(replace(log.core.config, flush_messages=messages, flush_acks_all=acks_all))

    def complete_flushes(self, chance: random.Random) -> list[tuple[str, int]]:
        """Complete the waiting flushes, some of them with an error, in any order; return what they flush up to."""
        waiting, self.flushes.waiting = self.flushes.waiting, []
        chance.shuffle(waiting)
        for _, _, callback in waiting:
            callback(OSError("no space left") if chance.random() < 0.1 else None)
        return [(topic, offset) for topic, offset, _ in waiting]

    def state(self) -> list[object]:
        """Return the counters, and the bytes and the end of each log."""
        found: list[object] = [self.probes.api("produce").errors, sum(self.probes.api("produce").counts)]
        for topic in IDS:
            probe = self.probes.topic(topic)
            found.append((topic, probe.bytes_in, probe.records_in))
            for number in range(PARTITIONS):
                partition = cast("Partition", self.partitions.get(topic, number))
                end = partition.log.core.log_end_offset
                records = partition.read(0, 1 << 30, committed_only=False, at_least_one_batch=True)
                content = b"" if records is None else bytes(cast("Any", records).read())
                found.append((number, end, partition.appended_bytes, content))
        return found
