"""Collector over the log cleaner's plain attributes: no lock of the engine's is taken, no disk is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, ClassVar, Final

from prometheus_client.core import Metric

from barnabas.broker.metrics.family import Family
from barnabas.broker.metrics.state import BrokerState

if TYPE_CHECKING:
    from barnabas.broker.storage.cleaning.cleanable_part import CleanablePart
    from barnabas.broker.storage.cleaning.cleaner_manager import CleanerManager
    from barnabas.protocol.topic_partition import TopicPartition

_PARTITION: Final = ("topic", "partition")
_LOG_DIR: Final = ("log_dir",)


class CleanerCollector:
    """Log compaction: how dirty compacted logs are, and what the cleaner did. Only with log.cleaner.enable."""

    dirty_ratio = Family(
        "barnabas_cleaner_dirty_ratio",
        "gauge",
        "Share of the log that is dirty, as last measured, without records that cannot be compacted yet. Above "
        "min.cleanable.dirty.ratio for long: the cleaner does not keep up.",
        labels=_PARTITION,
    )
    clean_bytes = Family(
        "barnabas_cleaner_clean_bytes", "gauge", "Bytes of the segments below the clean offset.", labels=_PARTITION
    )
    dirty_bytes = Family(
        "barnabas_cleaner_dirty_bytes",
        "gauge",
        "Bytes of the segments that the next round may clean.",
        labels=_PARTITION,
    )
    first_dirty_offset = Family(
        "barnabas_cleaner_first_dirty_offset",
        "gauge",
        "The clean offset: below it a key has at most one record.",
        labels=_PARTITION,
    )
    uncleanable_partitions = Family(
        "barnabas_cleaner_uncleanable_partitions",
        "gauge",
        "Partitions that are no longer compacted or deleted from; the broker's log and `barnabas topic "
        "describe` give the reason.",
        labels=_LOG_DIR,
    )
    uncleanable_bytes = Family(
        "barnabas_cleaner_uncleanable_bytes", "gauge", "Dirty bytes of those partitions.", labels=_LOG_DIR
    )
    delay = Family(
        "barnabas_cleaner_max_delay_seconds",
        "gauge",
        "Time by which the most overdue log exceeds its max.compaction.lag.ms; 0 if none does.",
    )
    since_last_run = Family(
        "barnabas_cleaner_since_last_run_seconds", "gauge", "Time since a thread last searched for a log to clean."
    )
    threads = Family("barnabas_cleaner_threads", "gauge", "Cleaner threads that are running.")
    dead_threads = Family("barnabas_cleaner_dead_threads", "gauge", "Cleaner threads that ended unexpectedly: a bug.")
    failed_passes = Family(
        "barnabas_cleaner_failed_passes_total",
        "counter",
        "Searches for work that failed: each is a bug, and is logged.",
    )
    duration = Family(
        "barnabas_cleaner_round_duration_seconds",
        "summary",
        "Time of completed rounds, throttling included.",
    )
    last_duration = Family(
        "barnabas_cleaner_last_round_duration_seconds", "gauge", "Duration of the last completed round."
    )
    aborted = Family(
        "barnabas_cleaner_aborted_rounds_total",
        "counter",
        "Rounds that were stopped because the log was deleted, moved or truncated, or its policy changed.",
    )
    out_of_room = Family(
        "barnabas_cleaner_out_of_room_rounds_total",
        "counter",
        "Rounds that ended for lack of disk space, descriptors or memory; retried after log.cleaner.backoff.ms.",
    )
    failures = Family(
        "barnabas_cleaner_failed_rounds_total", "counter", "Rounds that left their partition marked as uncleanable."
    )
    records_read = Family("barnabas_cleaner_read_records_total", "counter", "Records that rounds read.")
    records_kept = Family("barnabas_cleaner_kept_records_total", "counter", "Records that they kept.")
    bytes_read = Family("barnabas_cleaner_read_bytes_total", "counter", "Bytes that rounds read, second passes only.")
    bytes_kept = Family("barnabas_cleaner_kept_bytes_total", "counter", "Bytes that they kept.")
    map_bytes_read = Family(
        "barnabas_cleaner_map_read_bytes_total", "counter", "Bytes that first passes read to fill the offset maps."
    )
    without_key = Family(
        "barnabas_cleaner_keyless_records_total", "counter", "Records without a key, which were dropped."
    )
    map_utilization = Family(
        "barnabas_cleaner_map_utilization_ratio",
        "gauge",
        "How full the offset map of the last round was; near log.cleaner.io.buffer.load.factor a round did not "
        "cover the log: raise log.cleaner.dedupe.buffer.size.",
    )
    throttled = Family(
        "barnabas_cleaner_throttled_seconds_total",
        "counter",
        "Time that threads slept to stay within log.cleaner.io.max.bytes.per.second.",
    )
    families: ClassVar = (
        dirty_ratio,
        clean_bytes,
        dirty_bytes,
        first_dirty_offset,
        uncleanable_partitions,
        uncleanable_bytes,
        delay,
        since_last_run,
        threads,
        dead_threads,
        failed_passes,
        duration,
        last_duration,
        aborted,
        out_of_room,
        failures,
        records_read,
        records_kept,
        bytes_read,
        bytes_kept,
        map_bytes_read,
        without_key,
        map_utilization,
        throttled,
    )

    _of_partition: ClassVar[tuple[tuple[Family, Callable[[CleanablePart], float]], ...]] = (
        (dirty_ratio, lambda part: part.dirty_ratio),
        (clean_bytes, lambda part: part.clean_bytes),
        (dirty_bytes, lambda part: part.dirty_bytes),
        (first_dirty_offset, lambda part: part.first_dirty_offset),
    )
    _of_all: ClassVar[tuple[tuple[Family, Callable[[CleanerManager], float]], ...]] = (
        (
            delay,
            lambda cleaner: max((part.delay_ms for part in cleaner.statistics.measured.values()), default=0) / 1000,
        ),
        (since_last_run, lambda cleaner: cleaner.seconds_since_last_run),
        (threads, lambda cleaner: cleaner.threads.alive),
        (dead_threads, lambda cleaner: cleaner.threads.dead),
        (failed_passes, lambda cleaner: cleaner.threads.failed_passes),
        (last_duration, lambda cleaner: cleaner.statistics.last_round_seconds),
        (aborted, lambda cleaner: cleaner.statistics.aborted),
        (out_of_room, lambda cleaner: cleaner.statistics.out_of_room),
        (failures, lambda cleaner: cleaner.statistics.failures),
        (records_read, lambda cleaner: cleaner.statistics.records_read),
        (records_kept, lambda cleaner: cleaner.statistics.records_kept),
        (bytes_read, lambda cleaner: cleaner.statistics.bytes_read),
        (bytes_kept, lambda cleaner: cleaner.statistics.bytes_kept),
        (map_bytes_read, lambda cleaner: cleaner.statistics.map_bytes_read),
        (without_key, lambda cleaner: cleaner.statistics.records_without_key),
        (map_utilization, lambda cleaner: cleaner.statistics.last_map_utilization),
        (throttled, lambda cleaner: cleaner.throttler.seconds_throttled),
    )

    def __init__(self, state: BrokerState) -> None:
        self._state = state

    def collect(self) -> Iterator[Metric]:
        """All families; without samples while there is no cleaner."""
        manager = self._state.log_manager
        cleaner = None if manager is None else manager.cleaner
        measured: dict[TopicPartition, CleanablePart] = {}
        if manager is not None and cleaner is not None:
            # A log may have been deleted since the cleaner looked.
            measured = {each: part for each, part in cleaner.statistics.measured.items() if manager.get(each)}
        for family, value in self._of_partition:
            yield family.render(
                ((topic_partition.topic, str(topic_partition.partition)), value(part))
                for topic_partition, part in sorted(measured.items())
            )
        partitions: Counter[str] = Counter()
        sizes: Counter[str] = Counter()
        if manager is not None and cleaner is not None:
            partitions.update({str(path): 0 for path in manager.live_directories})
            for path, topic_partition in cleaner.uncleanable.all():
                partitions[str(path)] += 1
                sizes[str(path)] += measured[topic_partition].dirty_bytes if topic_partition in measured else 0
        yield self.uncleanable_partitions.render(((path,), count) for path, count in sorted(partitions.items()))
        yield self.uncleanable_bytes.render(((path,), sizes[path]) for path in sorted(partitions))
        for single, number in self._of_all:
            yield single.render([] if cleaner is None else [((), number(cleaner))])
        yield self.duration.render_summary(
            0 if cleaner is None else cleaner.statistics.rounds,
            0.0 if cleaner is None else cleaner.statistics.seconds_total,
        )
