"""A partition that a mirror copies: its copier, its log and what `describe` says about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.mirrors.partition_copier import PartitionCopier
from barnabas.broker.mirrors.source import FetchFrom
from barnabas.broker.mirrors.source_epochs import SourceEpochs
from barnabas.broker.mirrors.status import UNKNOWN_OFFSET, PartitionCopyState, PartitionStatus
from barnabas.broker.mirrors.stored_entries import has_gap

if TYPE_CHECKING:
    from barnabas.broker.mirrors.copied_log import CopiedLog
    from barnabas.broker.mirrors.partition_copier import FetchedPartition
    from barnabas.protocol.topic_partition import TopicPartition


class MirroredPartition:
    """Event loop only, except for `log`."""

    def __init__(
        self,
        key: TopicPartition,
        topic_id: bytes | None,
        log: CopiedLog,
        now: float,
        *,
        compares_batches: bool = False,
    ) -> None:
        """`topic_id` is the source's; `now` is the loop's time; `compares_batches` as for PartitionCopier."""
        self._compares_batches = compares_batches
        self.began_at = now
        self.key = key
        self.topic_id = topic_id
        self.log = log
        self.leader_epoch = -1
        """The source's, from its metadata."""
        self.copier = PartitionCopier(compares_batches=compares_batches)
        self.is_begun = False
        """Whether the copy was compared with the present leader."""
        self.epochs = SourceEpochs()
        """Leader epochs that the source has and the copied batches do not show."""
        self.is_current = False
        """Whether the copy has been complete since it was compared with the present leader."""
        self.is_changing = False
        """Whether a thread changes the log now, perhaps for a fetcher that has lost the partition meanwhile."""
        self.resume_at = 0.0
        """When to fetch again after a failure, by the loop's clock."""
        self.state = PartitionCopyState.WAITING
        self.error: str | None = None
        self.source_offset: int | None = None
        """The source's high watermark."""
        self.caught_up_at: float | None = None
        """When the copy was last known to be at the source's end, by the loop's clock."""
        self.bytes_copied = 0
        self.errors = 0
        self.starts_at: str | None = None
        """Where the copy of an empty log begins, as in MirrorDefinition.start; None: at the source's start."""

    def trust_epochs(self) -> None:
        """Compare no more batches: what the copy has now came from this source."""
        self._compares_batches = False

    def begin(self) -> None:
        """Compare the copy with its leader before the next fetch."""
        self.copier = PartitionCopier(compares_batches=self._compares_batches)
        self.is_begun = self.is_current = False
        self.epochs.begin()

    def fetch_from(self, max_bytes: int) -> FetchFrom:
        """Return the next fetch."""
        log = self.log
        return FetchFrom(self.topic_id, log.end, self.leader_epoch, self.copier.last_fetched_epoch(log), max_bytes)

    def note_caught_up_until(self, at: float | None) -> None:
        """Note that the copy may be behind, and the last moment at which the leader had nothing new.

        None: it has not answered.
        """
        if self.state is PartitionCopyState.CAUGHT_UP:
            self.state = PartitionCopyState.COPYING  # so that a later answer, perhaps of another leader, moves it not
            if at is not None:
                self.caught_up_at = at

    def may_lack_tombstones(self, fetched: FetchedPartition, now: float) -> bool:
        """Return whether the source may have deleted tombstones between the copy and what was fetched.

        It deletes them delete.retention.ms after their compaction. The copy keeps the records that they delete.
        """
        config = self.log.partition.log.config
        if not config.needs_keys or self.caught_up_at is None or fetched.log_start_offset < 0:
            return False
        is_late = now - self.caught_up_at > config.delete_retention_ms / 1000
        return is_late and has_gap(fetched.records, self.log.end)

    def note_copied_anew(self, now: float) -> None:
        """Note that the copy has begun again, from the source's first record."""
        self.state = PartitionCopyState.COPYING
        self.began_at, self.caught_up_at = now, None

    def note_source(self, high_watermark: int, now: float) -> None:
        """Note the source's end after what was fetched is appended."""
        self.source_offset = high_watermark
        self.error = None
        if self.log.end >= high_watermark:
            self.state = PartitionCopyState.CAUGHT_UP
            self.is_current = True
            self.caught_up_at = now
        else:
            self.state = PartitionCopyState.COPYING

    def fail(self, reason: str, resume_at: float) -> None:
        """Note why nothing is copied until `resume_at`."""
        self.state = PartitionCopyState.FAILED
        self.error = reason
        self.errors += 1
        self.resume_at = resume_at

    def status(self, now: float) -> PartitionStatus:
        """Return the state at `now`, by the loop's clock."""
        end, source_offset = self.log.end, self.source_offset
        lag = None if source_offset is None else max(0, source_offset - end)
        seconds: float | None = None
        if lag == 0:
            seconds = 0.0
        elif lag is not None:
            seconds = now - (self.began_at if self.caught_up_at is None else self.caught_up_at)
        return PartitionStatus(
            self.key.topic,
            self.key.partition,
            self.state,
            end,
            UNKNOWN_OFFSET if source_offset is None else source_offset,
            lag,
            seconds,
            self.error,
            self.bytes_copied,
            self.errors,
            self._lag_bytes(lag),
        )

    def _lag_bytes(self, lag_records: int | None) -> int | None:
        """Estimate: the source tells sizes only to users who may describe its whole cluster."""
        if not lag_records:
            return lag_records
        mean = self.log.bytes_per_offset
        return None if mean is None else round(mean * lag_records)
