"""LogRetainer: deletes old segments by the retention rules, moves the log start offset, expires producers.

The rules themselves are in retention.py. Source: Kafka UnifiedLog.deleteOldSegments, maybeIncrementLogStartOffset.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path

from barnabas.broker.storage.log.core import STRETCH_SEGMENTS, LogCore
from barnabas.broker.storage.log.retention import RetentionRule, deletable_segments, rules_of
from barnabas.broker.storage.log.roller import LogRoller
from barnabas.broker.storage.log.state import LogState
from barnabas.broker.storage.segment.deletion import delete_later, remove_now
from barnabas.broker.storage.segment.log_segment import LogSegment
from barnabas.broker.storage.services.log_dir_failure import is_shortage
from barnabas.protocol.errors import BrokerError, ErrorCode

logger = logging.getLogger(__name__)

EPOCH_FLUSH_TASK = "leader-epoch-cache-flush"


class LogRetainer:
    """Deletes from the beginning of one log."""

    __slots__ = ("_core", "_roller")

    def __init__(self, core: LogCore, roller: LogRoller) -> None:
        self._core = core
        self._roller = roller

    def delete_old_segments(self) -> int:
        """Apply the retention rules; return the number of deleted segments. Raises BrokerError KAFKA_STORAGE_ERROR."""
        return sum(self.delete_by(rule) for rule in rules_of(self._core.config))

    def delete_records(self, offset: int) -> int:
        """Move the log start offset up to `offset` (-1: the high watermark); return the new one.

        Whole segments below it are deleted by the next retention run. Raises BrokerError OFFSET_OUT_OF_RANGE above the
        high watermark.
        """
        core = self._core
        with core.lock:
            core.ensure_online()
            high_watermark = core.high_watermark
            if offset == -1:
                offset = high_watermark
            if offset < 0 or offset > high_watermark:
                raise BrokerError(
                    ErrorCode.OFFSET_OUT_OF_RANGE,
                    f"{core.topic_partition}: log start cannot go to {offset}, high watermark {high_watermark}",
                )
            self.move_log_start(offset)
            return core.log_start_offset

    def remove_expired_producers(self) -> int:
        """Forget producers that have been silent for producer.id.expiration.ms; return how many."""
        core = self._core
        with core.lock:
            return core.producers.remove_expired(core.wall_ms())

    def move_log_start(self, offset: int) -> None:
        """Raise the log start offset to `offset` unless it is there already. The lock is held."""
        core = self._core
        if offset <= core.log_start_offset:
            return
        core.log_start_offset = offset
        core.recovery_point = max(core.recovery_point, offset)
        core.durable_offset = max(core.durable_offset, offset)
        core.producers.on_log_start_moved(offset)
        if core.epochs.truncate_from_start(offset):
            core.services.scheduler.schedule(EPOCH_FLUSH_TASK, self._write_epochs)

    def delete_by(self, rule: RetentionRule, *, immediately: bool = False) -> int:
        """Apply one rule; return the number of deleted segments. Raises BrokerError KAFKA_STORAGE_ERROR.

        The files are removed after file.delete.delay.ms, or immediately. Appends wait for a stretch at most: after
        each, the rule is applied to what the log has then. A crash in between leaves what later stretches delete.
        """
        core = self._core
        deleted = 0
        try:
            is_complete = False
            while not is_complete:
                count = self._delete_stretch(rule, immediately=immediately)
                deleted += count
                is_complete = count < STRETCH_SEGMENTS
        except FileNotFoundError as error:
            logger.warning(
                "retention of %s finds a file missing, nothing more is deleted: %s", core.topic_partition, error
            )
        except OSError as error:
            if not is_shortage(error):
                core.fail("cannot delete old segments", error)
                raise BrokerError(ErrorCode.KAFKA_STORAGE_ERROR, f"{core.topic_partition}: {error}") from error
            logger.warning("retention of %s waits: %s", core.topic_partition, error)
        if deleted:
            logger.info(
                "deleting %s segments of %s by %s: log_start_offset=%s, delay_ms=%s",
                deleted,
                core.topic_partition,
                rule.value,
                core.log_start_offset,
                core.config.file_delete_delay_ms,
            )
        return deleted

    def _delete_stretch(self, rule: RetentionRule, *, immediately: bool) -> int:
        """Delete the oldest of the segments that the rule deletes; return how many. Raises OSError."""
        core = self._core
        while True:
            view = core.segments.view
            end = core.end
            doomed = deletable_segments(
                rule,
                view,
                core.config,
                log_start_offset=core.log_start_offset,
                high_watermark=core.high_watermark,
                log_end_offset=end.offset,
                now_ms=core.wall_ms(),
                most=STRETCH_SEGMENTS,
            )
            if not doomed:
                return 0
            with core.lock:
                core.ensure_online()
                drops_active = len(doomed) == len(view.segments)
                if core.segments.view is not view or (drops_active and core.end is not end):
                    continue  # rolled or appended meanwhile: decide again
                snapshots = self._drop(doomed, drops_active=drops_active)
            if immediately:
                remove_now(doomed, snapshots)
            else:
                delete_later(doomed, snapshots, core.log_dir, core.services, core.config.file_delete_delay_ms)
            return len(doomed)

    def _drop(self, doomed: Sequence[LogSegment], *, drops_active: bool) -> list[Path]:
        """Take the first segments out of the map; return their snapshots. The lock is held. Raises OSError."""
        core = self._core
        if drops_active:
            self._roller.roll_at(core.log_end_offset)
        self.move_log_start(core.segments.view.segments[len(doomed)].base_offset)
        core.segments.remove_first(len(doomed))
        gone = set(doomed)
        core.unsynced_sealed = [segment for segment in core.unsynced_sealed if segment not in gone]
        return core.mark_snapshots_deleted(doomed)

    def _write_epochs(self) -> None:
        core = self._core
        if core.state is not LogState.ONLINE:
            return
        try:
            core.epochs.write()
        except FileNotFoundError:
            logger.debug("the directory of %s was renamed meanwhile", core.topic_partition)
        except OSError as error:
            if not is_shortage(error):
                core.fail("cannot write the leader epochs", error)
