"""CleanerManager: compaction of one broker's logs, as the log manager and the metrics see it.

It puts the parts together: which partitions are worked on or paused (`CleaningStates`), how far each is clean
(`CleanerCheckpoints`), which cannot be cleaned (`UncleanablePartitions`), which comes next (`FilthiestLogChooser`),
what a thread does with it (`CleaningPass`), the threads, and the throttle of their input and output. Thread-safe.
Source: Kafka LogCleaner, LogCleanerManager.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from barnabas.broker.storage.cleaning.choosing import FilthiestLogChooser
from barnabas.broker.storage.cleaning.cleanable_part import measure_cleanable_part
from barnabas.broker.storage.cleaning.cleaner import Cleaner
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

logger = logging.getLogger(__name__)

NO_CLEAN_OFFSET = -1
NO_DIRTY_RATIO = -1.0


CleanerFactory = Callable[[CleanerConfig, Throttler, Callable[[TopicPartition], None]], LogCleaner]


def make_cleaner(
    config: CleanerConfig, throttler: Throttler, check_done: Callable[[TopicPartition], None]
) -> LogCleaner:
    """A cleaner with a thread's share of the buffers."""
    return Cleaner(
        offset_map_bytes=config.offset_map_bytes,
        load_factor=config.load_factor,
        io_buffer_bytes=config.io_buffer_bytes,
        throttler=throttler,
        check_done=check_done,
    )


class CleaningDescription(NamedTuple):
    """What an operator is told of one log."""

    first_dirty_offset: int = NO_CLEAN_OFFSET
    """The checkpoint: no round has to read below it to know the last record of each key. -1: none was made yet."""
    dirty_ratio: float = NO_DIRTY_RATIO
    """-1.0 where it is not compacted."""
    state: str = ""
    """idle, in progress, aborted, paused, or why it is not cleaned; empty where it is not compacted."""


class CleanerManager:
    """Implements pausing.CleaningControl. Life: made, `start`, `shutdown`."""

    def __init__(
        self,
        config: BrokerConfig,
        services: StorageServices,
        *,
        logs: Callable[[], Iterable[PartitionLog]],
        get: Callable[[TopicPartition], ReadableLog | None],
        make_cleaner: CleanerFactory = make_cleaner,
    ) -> None:
        """`logs` and `get` are the log manager's; `make_cleaner` is injected by tests."""
        self._make_cleaner = make_cleaner
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
        self._pass = CleaningPass(FilthiestLogChooser(logs, context), context)
        self.threads = CleanerThreads(self.run_pass, lambda: self._config.backoff_seconds, self.throttler.wake)

    # -- its life

    def start(self, log_dirs: Iterable[Path]) -> None:
        """Read the directories' checkpoints and start the threads. The logs are loaded."""
        self.checkpoints.open(log_dirs)
        self.threads.resize(self._config.threads)

    def shutdown(self) -> None:
        """Stop running rounds and end the threads; what a round did not finish is done again after the next start."""
        self.threads.stop()

    def reconfigure(self, config: BrokerConfig) -> None:
        """The broker's configuration changed: it holds from the next round on, the throttle at once."""
        new = CleanerConfig.of(config)
        if new != self._config:
            logger.info("the cleaner's configuration changed: before=%s, after=%s", self._config, new)
            old, self._config = self._config, new
            if old.bytes_per_second != new.bytes_per_second:
                self.throttler.set_rate(new.bytes_per_second)
        self.threads.resize(new.threads)

    def wake(self) -> None:
        """A topic's configuration changed: what is due may be another log now."""
        self.threads.wake()

    def directory_failed(self, log_dir: Path) -> None:
        """The directory is offline: its checkpoint is not touched any more."""
        self.checkpoints.forget(log_dir)

    # -- who else works on the logs: pausing.CleaningControl

    def abort(self, topic_partition: TopicPartition) -> None:
        """End a running round of the partition. Returns when the cleaner has let go; at once when there is none."""
        self._states.abort_and_pause(topic_partition)
        self._states.resume((topic_partition,))

    def abort_and_pause(self, topic_partition: TopicPartition) -> None:
        """As `abort`, and no round of the partition starts until `resume` was called as often as this."""
        self._states.abort_and_pause(topic_partition)

    def resume(self, topic_partitions: Iterable[TopicPartition]) -> None:
        """Undo one `abort_and_pause` of each of these."""
        self._states.resume(topic_partitions)

    def maybe_truncate_checkpoint(self, log_dir: Path, topic_partition: TopicPartition, offset: int) -> None:
        """The log now ends at `offset`: lower its clean offset to that if it is above it."""
        self.checkpoints.truncate(log_dir, topic_partition, offset)

    def alter_checkpoint_dir(self, topic_partition: TopicPartition, source: Path, destination: Path) -> None:
        """The log moved from log directory `source` to `destination`: clean offset and mark move along."""
        self.checkpoints.move(topic_partition, source, destination)
        self.uncleanable.move(topic_partition, source, destination)

    def remove_from_checkpoint(self, log_dir: Path, topic_partition: TopicPartition) -> None:
        """The log is gone from `log_dir`: one of the same name that is made next begins anew."""
        self.checkpoints.remove(log_dir, topic_partition)
        self.uncleanable.remove(log_dir, topic_partition)

    def pause_for_retention(self) -> list[PartitionLog]:
        """Keep the cleaner off all logs that are not compacted and that nobody has; which they are.

        The retention task deletes their old segments meanwhile, and resumes them. Otherwise the two could meet when a
        topic's cleanup.policy changes.
        """
        logs = {log.topic_partition: log for log in self._logs() if not log.config.compact}
        return [logs[topic_partition] for topic_partition in self._states.pause_free(logs)]

    # -- what it knows

    def describe(self, log: ReadableLog) -> CleaningDescription:
        """How clean a log is at this moment. May read the disk; what cannot be read has no ratio."""
        if not log.config.compact:
            return CleaningDescription()
        checkpoint = self.checkpoints.get(log.log_dir, log.topic_partition)
        reason = self.uncleanable.reason(log.log_dir, log.topic_partition)
        state = self._states.describe(log.topic_partition) if reason is None else f"uncleanable: {reason}"
        try:
            ratio = measure_cleanable_part(log, checkpoint, self._clock.wall_ms()).dirty_ratio
        except (OSError, StorageError) as error:
            logger.warning("cannot tell how dirty %s is: %s", log.topic_partition, error)
            ratio = NO_DIRTY_RATIO
        return CleaningDescription(NO_CLEAN_OFFSET if checkpoint is None else checkpoint, ratio, state)

    @property
    def seconds_since_last_run(self) -> float:
        """Since a thread last looked for a log to clean, by the wall clock; since the start before the first look."""
        return max(self._clock.wall_ms() - self.statistics.last_run_ms, 0) / 1000

    def run_pass(self, sign: StopSign | None = None) -> bool:
        """Clean the filthiest log and delete old segments; whether a round was begun. What each thread repeats."""
        sign = sign or StopSign()
        config = self._config

        def check_done(topic_partition: TopicPartition) -> None:
            sign.check()
            self._states.ensure_not_aborted(topic_partition)

        def make_cleaner() -> LogCleaner:
            return self._make_cleaner(config, self.throttler, check_done)

        has_more = self._pass.run(make_cleaner, config.backoff_seconds, lambda: sign.is_set)
        self.uncleanable.keep_only(self._is_in)
        return has_more

    def _is_in(self, log_dir: Path, topic_partition: TopicPartition) -> bool:
        log = self._get(topic_partition)
        return log is not None and log.log_dir == log_dir
