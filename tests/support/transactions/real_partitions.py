"""Partitions with real logs in a directory, whose appends fail on demand; a restart reopens the files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barnabas.broker.partitions.partition import Partition
from barnabas.broker.partitions.registry import PartitionRegistry
from barnabas.broker.probes import TopicProbe
from barnabas.broker.storage.files.open_files import OpenFiles
from barnabas.broker.storage.log.loading.loader import LoadRequest
from barnabas.broker.storage.log.opening import open_log
from barnabas.broker.storage.producers.expiration import ProducerExpiration
from barnabas.broker.storage.services.log_dir_failure import LogDirFailures
from barnabas.broker.storage.services.services import StorageServices
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.records.batch import RecordBatch, iter_batches
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.manual_loop import ManualLoop
from tests.support.storage.bench import ManualClock, StepScheduler, log_config

if TYPE_CHECKING:
    from barnabas.broker.storage.log.appending.validator import CheckedBatch
from barnabas.broker.storage.log.append import AppendResult

Place = tuple[str, int]


class KilledError(BaseException):
    """The broker was killed here: no code that follows may run."""


class FaultyPartition(Partition):
    """A partition on a disk that is full while `is_full`.

    `fails_in`: number of the append from now on that fails. `kills_in`: number of the append before which the broker is
    killed. `has_bug`: appends raise an error that is no BrokerError.
    """

    __slots__ = ("fails_in", "has_bug", "is_full", "kills_in")

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.is_full = False
        self.has_bug = False
        self.fails_in = 0
        self.kills_in = 0

    def append_internal(self, records: memoryview) -> AppendResult:
        self._check()
        return super().append_internal(records)

    def append_in_transaction(self, records: memoryview, checked: CheckedBatch | None = None) -> AppendResult:
        self._check()
        return super().append_in_transaction(records, checked)

    def append_marker(self, *arguments: Any, **settings: Any) -> AppendResult:
        self._check()
        return super().append_marker(*arguments, **settings)

    def _check(self) -> None:
        self.kills_in -= 1
        if self.kills_in == 0:
            raise KilledError
        self.fails_in -= 1
        if self.has_bug:
            raise ValueError(f"a bug in {self.log.topic_partition}")
        if self.is_full or self.fails_in == 0:
            raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"no space for {self.log.topic_partition}")


class RealPartitions:
    """Logs below a directory, served by a registry."""

    def __init__(self, directory: Path, places: dict[Place, bytes], loop: ManualLoop) -> None:
        """`places` maps each partition to its topic's id."""
        self.registry = PartitionRegistry()
        self.all: dict[Place, FaultyPartition] = {}
        self.full_after_crash: set[Place] = set()
        """Partitions whose disk is full when they are opened again."""
        self._directory = directory
        self._places = places
        self._loop = loop
        self._open(clean=True)

    def add(self, place: Place, topic_id: bytes) -> None:
        """Open a further partition at the next crash."""
        self._places[place] = topic_id

    def crash(self) -> None:
        """Reopen all logs as after a kill. Faults are gone, but for `full_after_crash`."""
        for partition in self.all.values():
            assert partition.writable_log is not None
            partition.writable_log.go_offline()
        self._open(clean=False)

    def close(self) -> None:
        """Close all logs."""
        for partition in self.all.values():
            assert partition.writable_log is not None
            partition.writable_log.close()

    def batches(self, place: Place) -> Iterator[RecordBatch]:
        """Iterate over all stored batches of a partition."""
        log = self.all[place].log
        for segment in log.segments:
            yield from iter_batches(bytes(segment.log.slice(0, segment.size_bytes).read()))

    def _open(self, *, clean: bool) -> None:
        loop = self._loop
        services = StorageServices(
            _LoopClock(loop), StepScheduler(ManualClock()), OpenFiles(64), LogDirFailures(_fail), ProducerExpiration()
        )
        self.registry = PartitionRegistry()
        self.all.clear()
        for (topic, number), topic_id in self._places.items():
            directory = self._directory / f"{topic}-{number}"
            directory.mkdir(parents=True, exist_ok=True)
            place = TopicPartition(topic, number)
            request = LoadRequest(directory, place, log_config(), clean, 0, 0)
            log = open_log(request, services, topic_id=topic_id)
            partition = FaultyPartition(log, 0, topic_id, TopicProbe(), loop)
            partition.is_full = place in self.full_after_crash
            self.registry.add(place, partition)
            self.all[place] = partition


class _LoopClock:
    """The storage's clock, with the loop's time."""

    def __init__(self, loop: ManualLoop) -> None:
        self._loop = loop

    def wall_ms(self) -> int:
        return self._loop.wall_ms()

    def monotonic(self) -> float:
        return self._loop.time()


def _fail(directory: Path) -> None:
    raise AssertionError(f"{directory} failed: these tests only fail appends")
