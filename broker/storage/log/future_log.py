"""FutureLog: the copy of a log in another log directory of the same broker, which then replaces the log.

Directory `<topic>-<partition>.<32 hex>-future`. The copy is fed with stored batches as they are: offsets, leader
epochs, timestamps and producer fields stay; segments roll and are indexed by the rules of an append. It begins where
the log begins, has the log's holes, and is recovered like any log, so a move continues after a crash.

Taking over happens under the log's lock, in an order in which every crash leaves a state that the next start
understands, of this broker or of Apache Kafka:

    1. the last batches are copied, and are as durable as they were
    2. the metadata log names the new directory (the caller's `assign`)
    3. the old directory becomes `-delete`
    4. `-future` becomes `<topic>-<partition>`
    5. the two logs exchange their files

After 1 the copy is complete, so a start may use either; after 2 Kafka promotes the copy (recoverAbandonedFutureLogs),
and so does this broker after 3. At no moment is the partition in two directories, with which Kafka would refuse to
start. (Kafka renames in the order 4, 3 and does not start after a crash in between.) The PartitionLog object that the
rest of the broker holds stays the same: appends wait for the lock and continue, waiting fetches and flushes do not
notice, and slices that are being sent keep the old files open.

Source: Kafka LogManager.replaceCurrentWithFutureLog, ReplicaAlterLogDirsThread.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from barnabas.broker.storage.files.partition_directory import delete_directory_name, directory_name
from barnabas.broker.storage.log.appending.follower import FollowerAppender
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.broker.storage.log.retention import RetentionRule
from barnabas.broker.storage.log.state import LogState
from barnabas.broker.storage.segment.old_format_slice import OldFormatSlice
from barnabas.broker.storage.services.log_dir_failure import is_shortage
from barnabas.protocol.topic_partition import TopicPartition

logger = logging.getLogger(__name__)


class FutureLog:
    """The copy. One thread feeds it; maintenance may flush `log` meanwhile.

    It begins where its log begins, and no retention rule may be applied to it: if its start were ahead, a reader would
    wait forever at an offset between the two once the copy has taken over.
    """

    def __init__(self, log: PartitionLog) -> None:
        self.log = log
        """The copy as a log of its own: for flushes, checkpoints, metrics, and for serving once it is promoted."""
        self._core = log.core
        self._follower = FollowerAppender(log.core, log.roller)

    @property
    def topic_partition(self) -> TopicPartition:
        """The partition."""
        return self._core.topic_partition

    def catch_up(self, current: PartitionLog, max_bytes: int) -> int:
        """Copy the next batches of `current`: about `max_bytes`, at least one batch. Returns 0 once all are copied.

        Raises BrokerError KAFKA_STORAGE_ERROR of either log, CorruptFileError when stored batches are damaged.
        """
        self._follow_start(current.log_start_offset)
        end = current.log_end_offset
        offset = max(self._core.log_end_offset, current.log_start_offset)
        if offset >= end:
            self._follower.skip_to(end)
            return 0
        found = current.read(offset, max_bytes, upper_bound=end, at_least_one_batch=True)
        if isinstance(found, OldFormatSlice):
            found = found.records  # as stored, not as a client gets them
        if found is None:
            self._follower.skip_to(end)  # the log's end is after a hole: there are no batches in between
            return 0
        return self.append_as_follower(memoryview(found.read()))

    def append_as_follower(self, records: memoryview) -> int:
        """Append stored batches; see FollowerAppender."""
        return self._follower.append_as_follower(records)

    def bytes_behind(self, current: PartitionLog) -> int:
        """Return the bytes of `current` that are not copied yet. Raises OSError, CorruptRecordError.

        The sizes of the two logs cannot be compared: `current` may have segments below its start offset, never copied.
        """
        offset = max(self._core.log_end_offset, current.log_start_offset)
        end = current.log_end_offset
        if offset >= end:
            return 0
        behind = 0
        for segment in current.segments_view.overlapping(offset, end):
            size = segment.size_bytes
            found = segment.find_batch(offset, size) if segment.base_offset < offset else None
            if segment.base_offset >= offset:
                behind += size
            elif found is not None:
                behind += size - found.position
        return behind

    def take_over(self, current: PartitionLog, assign: Callable[[], None], *, max_tail_bytes: int) -> bool:
        """Replace `current`; False when it is more than `max_tail_bytes` ahead: catch up, and try again.

        Appends wait while the tail is copied. Afterwards `current` has this log's files and directory, and this log has
        the old ones, in a `-delete` directory. `assign` records durably where the partition is; what it raises leaves
        both as they were. Raises BrokerError, StorageError; OSError after the failed directory was taken offline, or
        after a shortage, which leaves both as they were, too.
        """
        mine, theirs = self._core, current.core
        self.log.flush()
        if mine.epochs.replace_entries(theirs.epochs.entries):
            mine.epochs.write()
        with theirs.lock:
            if current.size_bytes and theirs.log_end_offset > mine.log_end_offset:
                copied = 0
                while copied <= max_tail_bytes and (step := self.catch_up(current, max_tail_bytes)):
                    copied += step
            self.catch_up(current, 1)
            if mine.log_end_offset != theirs.log_end_offset:
                return False
            if theirs.durable_offset > mine.durable_offset:
                self.log.flush()
            if mine.epochs.replace_entries(theirs.epochs.entries):
                mine.epochs.write()
            assign()
            with mine.lock:
                self._rename_both(current)
                theirs.exchange_files(mine)
                mine.state = LogState.OFFLINE  # it now holds the old files, which are only there to be deleted
        return True

    def _follow_start(self, log_start_offset: int) -> None:
        core = self._core
        if log_start_offset > core.log_start_offset:
            with core.lock:
                self.log.retainer.move_log_start(min(log_start_offset, core.log_end_offset))
            # Immediately: nobody reads a copy, and a delayed removal would not find the files after the renames.
            self.log.retainer.delete_by(RetentionRule.START_OFFSET, immediately=True)

    def _rename_both(self, current: PartitionLog) -> None:
        """Steps 3 and 4. Both locks are held.

        Raises OSError: after a shortage both names are as before, and after another error a log is offline.
        """
        mine, theirs = self._core, current.core
        try:
            theirs.rename(delete_directory_name(mine.topic_partition))
        except OSError as error:
            if not is_shortage(error):
                theirs.fail("cannot rename the directory of a log that was moved", error)
            raise
        try:
            mine.rename(directory_name(mine.topic_partition))
        except OSError as error:
            try:
                theirs.rename(directory_name(mine.topic_partition))
            except OSError as second:  # the next start promotes the copy, so the log must take no more records
                theirs.fail("cannot rename the directory of a log back", second)
            if not is_shortage(error):
                mine.fail("cannot rename the directory of a copy", error)
            raise
        logger.info("moved %s to %s, the old directory is %s", mine.topic_partition, mine.directory, theirs.directory)
