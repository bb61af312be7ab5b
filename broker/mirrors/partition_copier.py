"""What an answer of the source means for the copy of one partition: a state machine without I/O.

The copy is a log that is fetched from its own end on, so its state is the log. Each answer becomes a list of actions,
to be carried out in order before the next request:

    Append        whole batches that follow the copy's end
    RaiseStart    the source has deleted its first records
    Restart       the copy has nothing in common with the source: drop all records and begin at an offset
    Truncate      the source has lost the copy's last records, or has others at their offsets
    FindOffsets   ask the source for its first and last offset (ListOffsets)
    FindCommonEnd compare batches with the source's, because no leader epoch tells where the two differ
    FindEpochEnd  ask the source where a leader epoch ends (OffsetForLeaderEpoch)
    FindLeader    another broker leads the partition
    FindTopic     the source has no such topic, or not under this id
    Fail          nothing can be copied; try again later

With each new leader or connection the copy asks where its last epoch ends at the source; if its batches have no epoch,
it compares the last of them with the source's. From version 12 of Fetch on
the source also compares the epoch of the copy's last batch with each request.

Source: Kafka AbstractFetcherThread, ReplicaFetcherThread, Partition.appendRecordsToFollowerOrFutureReplica.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from barnabas.broker.mirrors.stored_entries import iter_entries
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.errors import CorruptRecordError
from barnabas.protocol.records.layout import NO_PARTITION_LEADER_EPOCH

RETRY_SECONDS: Final = 1.0
"""Before a request is repeated that failed for a reason that usually passes."""

REFUSED_RETRY_SECONDS: Final = 30.0
"""Before a request is repeated that the source will refuse until somebody changes something."""

DAMAGED_MAX: Final = 3
"""Times in a row that damaged records are fetched again before the partition fails."""

_LEADER_ERRORS: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
    }
)
_TOPIC_ERRORS: Final = frozenset(
    {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID}
)
_PASSING_ERRORS: Final = frozenset(
    {ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.OFFSET_NOT_AVAILABLE, ErrorCode.UNKNOWN_SERVER_ERROR}
)


class EpochEnd(NamedTuple):
    """A leader epoch and its end offset; both -1 if the source knows neither."""

    epoch: int
    end_offset: int


class Append(NamedTuple):
    """Append whole batches."""

    records: memoryview


class RaiseStart(NamedTuple):
    """Delete the records below `offset`."""

    offset: int


class Restart(NamedTuple):
    """Drop all records and begin at `offset`; `missed` records of the source were never copied.

    `reason` is a clause; empty if the two have no record in common.
    """

    offset: int
    missed: int
    reason: str = ""


class Truncate(NamedTuple):
    """Drop the records from `offset` on, because of `reason`, a clause."""

    offset: int
    reason: str


class FindOffsets(NamedTuple):
    """Ask for the source's first and last offset."""


class FindCommonEnd(NamedTuple):
    """Find the offset up to which the batches of both are the same."""


class FindEpochEnd(NamedTuple):
    """Ask where `epoch` ends."""

    epoch: int


class FindLeader(NamedTuple):
    """Look for the partition's leader."""


class FindTopic(NamedTuple):
    """Look for the topic."""


class Fail(NamedTuple):
    """Copy nothing for `retry_seconds`; `reason` is a clause that names the source's answer."""

    reason: str
    retry_seconds: float


Action = (
    Append
    | RaiseStart
    | Restart
    | Truncate
    | FindOffsets
    | FindCommonEnd
    | FindEpochEnd
    | FindLeader
    | FindTopic
    | Fail
)


class LogView(Protocol):
    """The copy as it is now."""

    @property
    def start(self) -> int:
        """Log start offset."""
        ...

    @property
    def end(self) -> int:
        """Log end offset."""
        ...

    @property
    def latest_epoch(self) -> int:
        """Leader epoch of the last batch, or -1."""
        ...

    @property
    def is_compacted(self) -> bool:
        """Whether batches of the copy may have been rewritten."""
        ...

    def end_of_epoch(self, epoch: int) -> EpochEnd:
        """Return the largest epoch of the copy up to `epoch`, and its end."""
        ...


@dataclass(slots=True)
class FetchedPartition:
    """One partition of the source's answer to Fetch; offsets are -1 where the version has none."""

    error: ErrorCode = ErrorCode.NONE
    high_watermark: int = -1
    log_start_offset: int = -1
    diverging: EpochEnd | None = None
    """If the copy is no prefix of the source: the largest epoch up to the copy's that the source knows, and its end."""
    records: memoryview = memoryview(b"")  # noqa: RUF009 - immutable


class PartitionCopier:
    """Decides for one partition."""

    def __init__(self, *, compares_batches: bool = False) -> None:
        """`compares_batches`: equal leader epochs do not show that the copy and its source have the same records."""
        self._compares_batches = compares_batches
        self._damaged = 0
        self._compared_end = -1
        """The copy's end when its batches were compared with the source's; -1: they were not."""

    def last_fetched_epoch(self, log: LogView) -> int:
        """Return the epoch for the source to compare; -1 for none, when the batches have just been compared instead."""
        return NO_PARTITION_LEADER_EPOCH if log.end == self._compared_end else log.latest_epoch

    def begin(self, log: LogView) -> list[Action]:
        """Return what comes before the first Fetch at a leader."""
        if log.start == log.end:
            return []
        if self._compares_batches:
            return [FindCommonEnd()]
        if log.latest_epoch != NO_PARTITION_LEADER_EPOCH:
            return [FindEpochEnd(log.latest_epoch)]
        # Record formats before 2 have no epochs. Compaction rewrites batches on each side, so equal records could
        # look different: of a compacted topic only a source that has become shorter is noticed.
        return [] if log.is_compacted else [FindCommonEnd()]

    def fetched(self, answer: FetchedPartition, log: LogView) -> list[Action]:
        """Return the actions for an answer to a Fetch from the copy's end on."""
        if answer.error is not ErrorCode.NONE:
            return self.refused(answer.error)
        if answer.diverging is not None:
            return self._diverged(answer.diverging, log)
        actions: list[Action] = []
        if answer.log_start_offset > log.start:
            actions.append(RaiseStart(min(answer.log_start_offset, log.end)))
        if answer.records:
            actions += self._records(answer.records, log)
        return actions

    def offsets_found(self, start: int, end: int, log: LogView) -> list[Action]:
        """Return the actions for the source's first and last offset, after OFFSET_OUT_OF_RANGE."""
        if start > log.end:
            return [Restart(start, 0 if log.end == 0 else start - log.end)]
        if end < log.end:
            if end <= log.start:
                return [Restart(start, 0)]
            return [Truncate(end, f"the source ends at offset {end}")]
        if log.start == log.end:
            return []
        return [FindCommonEnd()]

    def common_end_found(self, offset: int, log: LogView) -> list[Action]:
        """Return the actions for the offset up to which the batches are the same; the source has the offset."""
        self._compared_end = offset
        if offset >= log.end:
            return []
        if offset <= log.start:
            return [Restart(max(offset, 0), 0)]
        return [Truncate(offset, f"the source has other batches from offset {offset} on")]

    def epoch_end_found(self, found: EpochEnd, log: LogView) -> list[Action]:
        """Return the actions for the end of the copy's latest epoch at the source."""
        if found.epoch == log.latest_epoch and found.end_offset >= log.end:
            return []
        return self._diverged(found, log)

    def refused(self, error: ErrorCode) -> list[Action]:
        """Return the actions for an error of the source."""
        return [_of_error(error)]

    def damaged(self, reason: str) -> list[Action]:
        """Return the actions for records that cannot be appended: fetch them again, and fail after some times."""
        self._damaged += 1
        wait = RETRY_SECONDS if self._damaged < DAMAGED_MAX else REFUSED_RETRY_SECONDS
        return [Fail(reason, wait)]

    def appended(self) -> None:
        """Note that records were appended."""
        self._damaged = 0

    def _diverged(self, found: EpochEnd, log: LogView) -> list[Action]:
        """Cut the copy to where both are known to agree. The next answer shows whether that was enough."""
        if found.end_offset < 0:
            # The source knows no epoch up to the copy's: its log has none, or begins later.
            return [FindOffsets()]
        mine = log.end_of_epoch(found.epoch)
        offset = min(found.end_offset, log.end)
        if mine.end_offset >= 0:
            offset = min(offset, mine.end_offset)
        if offset >= log.end:
            # Nothing to cut, and yet the epochs differ: the copy's last epoch is one that the source does not know.
            start_of_last = log.end_of_epoch(log.latest_epoch - 1).end_offset
            offset = max(log.start, start_of_last) if start_of_last >= 0 else log.start
        reason = f"the source's leader epoch {found.epoch} ends at offset {found.end_offset}"
        if offset <= log.start:
            return [Restart(max(0, offset), 0)]
        return [Truncate(offset, reason)]

    def _records(self, records: memoryview, log: LogView) -> list[Action]:
        """Leave out entries that the copy has; an answer begins with the one that contains the fetch offset."""
        end = log.end
        try:
            first = next((each for each in iter_entries(records) if each.last_offset >= end), None)
        except CorruptRecordError as error:
            return self.damaged(f"the source's records at offset {end} are damaged: {error}")
        if first is None:
            return []
        following = records[first.position :]
        if first.base_offset >= end:
            return [Append(following)]
        if log.start == end:  # the copy begins in the middle of a batch, as a log does after DeleteRecords
            return [Restart(first.base_offset, 0), Append(following), RaiseStart(end)]
        reason = f"the source has a batch of the offsets {first.base_offset}..{first.last_offset}"
        return [Truncate(max(first.base_offset, log.start), reason)]


def _of_error(error: ErrorCode) -> Action:
    if error is ErrorCode.OFFSET_OUT_OF_RANGE:
        return FindOffsets()
    if error in _LEADER_ERRORS:
        return FindLeader()
    if error in _TOPIC_ERRORS:
        return FindTopic()
    if error is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        return Fail("the source refuses READ on the topic (TOPIC_AUTHORIZATION_FAILED)", REFUSED_RETRY_SECONDS)
    if error in _PASSING_ERRORS:
        return Fail(f"the source answers {error.name}", RETRY_SECONDS)
    return Fail(f"the source answers {error.name}", REFUSED_RETRY_SECONDS)
