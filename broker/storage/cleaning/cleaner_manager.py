"""CleanerManager: compaction of one broker's logs, for the log manager and the metrics.

It assembles the parts: the partitions in progress or paused (`CleaningStates`), the clean offsets
(`CleanerCheckpoints`), the partitions that cannot be cleaned (`UncleanablePartitions`), the choice of the next log
(`FilthiestLogChooser`), the work of a thread on it (`CleaningPass`), the threads, and the throttle of their I/O.
Thread-safe. Source: Kafka LogCleaner, LogCleanerManager.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from barnabas.broker.storage.cleaning.choosing import FilthiestLogChooser
from barnabas.broker.storage.cleaning.cleanable_part import measure_cleanable_part
from barnabas.broker.storage.cleaning.cleaner_checkpoints import CleanerCheckpoints
from barnabas.broker.storage.cleaning.cleaner_config import CleanerConfig
from barnabas.broker.storage.cleaning.cleaner_threads import CleanerThreads, StopSign
from barnabas.broker.storage.cleaning.cleaning_context import CleaningContext
from barnabas.broker.storage.cleaning.cleaning_pass import CleaningPass, LogCleaner
from barnabas.broker.storage.cleaning.cleaning_states import CleaningStates
from barnabas.broker.storage.cleaning.cleaning_statistics import CleaningStatistics
from barnabas.broker.storage.cleaning.throttler import Throttler
from barnabas.broker.storage.cleaning.uncleanable import UncleanablePartitions
from barnabas.broker.storage.files.errors import StorageError
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.broker.storage.log.readable_log import ReadableLog
from barnabas.broker.storage.services.services import StorageServices
from barnabas.config.broker_config import BrokerConfig
from barnabas.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from barnabas.broker.storage.cleaning.cleaner_facts import CleanerFacts

logger = logging.getLogger(__name__)

NO_CLEAN_OFFSET = -1
NO_DIRTY_RATIO = -1.0


CleanerFactory = Callable[[CleanerConfig, Throttler, Callable[[TopicPartition], None]], LogCleaner]


def create_cleaner(
    config: CleanerConfig, throttler: Throttler, check_done: Callable[[TopicPartition], None]
) -> LogCleaner:
    """Create a cleaner with a thread's share of the buffers. Called on a cleaner's thread, which imports the module."""
    from barnabas.broker.storage.cleaning.rewriting.cleaner import Cleaner

    return Cleaner(
        offset_map_bytes=config.offset_map_bytes,
        load_factor=config.load_factor,
        io_buffer_bytes=config.io_buffer_bytes,
        throttler=throttler,
        check_done=check_done,
    )


class CleaningDescription(NamedTuple):
    """State of a log's compaction, for operators."""

    first_dirty_offset: int = NO_CLEAN_OFFSET
    """The log's cleaner checkpoint: below it a key has at most one record. -1 without a checkpoint."""
    dirty_ratio: float = NO_DIRTY_RATIO
    """-1.0 for a log that is not compacted or cannot be read."""
    state: str = ""
    """idle, in progress, aborted, paused, or the reason why it is uncleanable; empty if it is not compacted."""


class CleanerManager:
    """Compaction of all logs of a broker. Implements `pausing.CleaningControl`. Call `start` once, then `shutdown`."""

    def __init__(
        self,
        config: BrokerConfig,
        services: StorageServices,
        *,
        logs: Callable[[], Iterable[PartitionLog]],
        get: Callable[[TopicPartition], ReadableLog | None],
        create_cleaner: CleanerFactory = create_cleaner,
    ) -> None:
        """`logs` and `get` are the log manager's; `create_cleaner` is injected by tests."""
        self._create_cleaner = create_cleaner
        self._config = CleanerConfig.of(config)
        self._get = get
        self._logs = logs
        self._clock = services.clock
        self.throttler = Throttler(self._config.bytes_per_second, services.clock)
        self.statistics = CleaningStatistics(services.clock.wall_ms())
        self.uncleanable = UncleanablePartitions()
        self.checkpoints = CleanerCheckpoints(services.failures, lambda each: get(each) is not None)
        self._states = CleaningStates(on_abort=self.throttler.wake)
        context = CleaningContext(
            self._states, self.checkpoints, self.uncleanable, self.statistics, services.failures, services.clock
        )
        self._chooser = FilthiestLogChooser(logs, context)
        self._pass = CleaningPass(self._chooser, context)
        self.threads = CleanerThreads(self.run_pass, lambda: self._config.backoff_seconds, self.throttler.wake)

    # -- life cycle

    def start(self, log_dirs: Iterable[Path]) -> None:
        """Read the directories' checkpoints and start the threads, after the logs are loaded."""
        self.checkpoints.open(log_dirs)
        self.threads.resize(self._config.threads)

    def shutdown(self) -> None:
        """Abort running rounds and end the threads; unfinished work is repeated after the next start."""
        self.threads.stop()

    def reconfigure(self, config: BrokerConfig) -> None:
        """Apply a changed broker configuration: the rate limit immediately, the rest from the next round on."""
        new = CleanerConfig.of(config)
        if new != self._config:
            logger.info("the cleaner's configuration changed: before=%s, after=%s", self._config, new)
            old, self._config = self._config, new
            if old.bytes_per_second != new.bytes_per_second:
                self.throttler.set_rate(new.bytes_per_second)
        self.threads.resize(new.threads)

    def wake(self) -> None:
        """Let idle threads look for work: a changed topic configuration may make another log due."""
        self.threads.wake()

    def directory_failed(self, log_dir: Path) -> None:
        """Stop reading and writing the checkpoint of an offline directory."""
        self.checkpoints.forget(log_dir)

    # -- pausing.CleaningControl

    def abort(self, topic_partition: TopicPartition) -> None:
        """End a running round of the partition; return when its thread has released the partition."""
        self._states.abort_and_pause(topic_partition)
        self._states.resume((topic_partition,))

    def abort_and_pause(self, topic_partition: TopicPartition) -> None:
        """Do `abort`, and prevent rounds of the partition until `resume` was called as often as this."""
        self._states.abort_and_pause(topic_partition)

    def resume(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Undo one `abort_and_pause` of each of these."""
        self._states.resume(topic_partitions)

    def maybe_truncate_checkpoint(self, log_dir: Path, topic_partition: TopicPartition, offset: int) -> None:
        """Lower the clean offset of a truncated log, which now ends at `offset`, to that offset."""
        self.checkpoints.truncate(log_dir, topic_partition, offset)

    def alter_checkpoint_dir(self, topic_partition: TopicPartition, source: Path, destination: Path) -> None:
        """Move the clean offset and an uncleanable mark along with a log from `source` to `destination`."""
        self.checkpoints.move(topic_partition, source, destination)
        self.uncleanable.move(topic_partition, source, destination)

    def remove_from_checkpoint(self, log_dir: Path, topic_partition: TopicPartition) -> None:
        """Forget a log that has gone from `log_dir`: a new one of the same name must not inherit its clean offset."""
        self.checkpoints.remove(log_dir, topic_partition)
        self.uncleanable.remove(log_dir, topic_partition)

    def pause_for_retention(self) -> list[PartitionLog]:
        """Pause all logs that are not compacted and are free; return them, for the caller to resume.

        The retention task deletes their old segments meanwhile. Without the pause, it and the cleaner could work on the
        same log when a topic's cleanup.policy changes.
        """
        logs = {log.topic_partition: log for log in self._logs() if not log.config.compact}
        return [logs[topic_partition] for topic_partition in self._states.pause_free(logs)]

    # -- state for operators and metrics

    def describe(self, log: ReadableLog) -> CleaningDescription:
        """Describe a log's compaction now. May read the disk; an unreadable log has no dirty ratio."""
        if not log.config.compact:
            return CleaningDescription()
        checkpoint = self.checkpoints.get(log.log_dir, log.topic_partition)
        reason = self.uncleanable.reason(log.log_dir, log.topic_partition)
        state = self._states.describe(log.topic_partition) if reason is None else f"uncleanable: {reason}"
        try:
            ratio = measure_cleanable_part(log, checkpoint, self._clock.wall_ms()).dirty_ratio
        except (OSError, StorageError) as error:
            logger.warning("cannot measure the dirty ratio of %s: %s", log.topic_partition, error)
            ratio = NO_DIRTY_RATIO
        return CleaningDescription(NO_CLEAN_OFFSET if checkpoint is None else checkpoint, ratio, state)

    def facts(self, log: ReadableLog) -> CleanerFacts:
        """Return what explains when a compacted log is cleaned."""
        from barnabas.broker.storage.cleaning.cleaner_facts import CleanerFacts  # here: a start should be quick

        key, statistics = log.topic_partition, self.statistics
        own = statistics.measured.get(key)
        filthier = 0
        for other, part in statistics.measured.items():
            found = self._get(other)
            if other == key or own is None or found is None or self.uncleanable.reason(found.log_dir, other):
                continue
            is_due = part.is_due(found.config.min_cleanable_dirty_ratio)
            filthier += is_due and part.dirty_ratio > own.dirty_ratio
        rounds = statistics.rounds > 0 and statistics.seconds_total > 0 and statistics.bytes_read > 0
        return CleanerFacts(
            is_enabled=True,
            checkpoint=self.checkpoints.get(log.log_dir, key),
            state=self._states.describe(key),
            error=self.uncleanable.reason(log.log_dir, key),
            filthier_logs=filthier,
            bytes_per_second=statistics.bytes_read / statistics.seconds_total if rounds else None,
            kept_share=statistics.bytes_kept / statistics.bytes_read if rounds else None,
            is_throttled=self.throttler.threads_throttled > 0,
            is_postponed=self._chooser.is_postponed(key),
        )

    @property
    def seconds_since_last_run(self) -> float:
        """Seconds since a thread last looked for a log to clean, or since the start, by the wall clock."""
        return max(self._clock.wall_ms() - self.statistics.last_run_ms, 0) / 1000

    def run_pass(self, sign: StopSign | None = None) -> bool:
        """Clean the filthiest log and delete old segments, as each thread does repeatedly.

        Returns whether a log was cleaned, so that there may be more to do.
        """
        sign = sign or StopSign()
        config = self._config

        def check_done(topic_partition: TopicPartition) -> None:
            sign.check()
            self._states.ensure_not_aborted(topic_partition)

        def create_cleaner() -> LogCleaner:
            return self._create_cleaner(config, self.throttler, check_done)

        has_more = self._pass.run(create_cleaner, config.backoff_seconds, lambda: sign.is_set)
        self.uncleanable.keep_only(self._is_in)
        return has_more

    def _is_in(self, log_dir: Path, topic_partition: TopicPartition) -> bool:
        log = self._get(topic_partition)
        return log is not None and log.log_dir == log_dir
