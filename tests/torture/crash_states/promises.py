"""What a workload was promised up to a moment, as docs/durability.md says it, and the check of a started broker.

A workload notes what it is about to do before it does it, and what it was promised after. So the promises at any event
of the recording are those of the notes before it, and what was under way may have happened or not.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.protocol.records.batch import RecordBatch, iter_batches
from barnabas.protocol.records.reader import read_records
from barnabas.protocol.records.record import Record
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.storage.acknowledged import Holding, holding
from tests.support.storage.bench import START_MS, append, batch, read_batches
from tests.support.storage.metadata_store import Opened
from tests.torture.crash_states.outcomes import CoordinatorNote, Outcomes, broken_outcomes
from tests.torture.crash_states.recording import Event, Note
from tests.torture.crash_states.share_outcomes import ShareNote, ShareOutcomes, broken_shares


class Begin(NamedTuple):
    """Power cuts before this moment are another workload's: it starts a broker as they do."""


class LogId(NamedTuple):
    """A log for life: a topic that is created again under its name has another id."""

    topic: str
    partition: int
    topic_id: bytes


class Stored(NamedTuple):
    """What identifies a record at an offset."""

    key: bytes | None
    value: bytes | None
    timestamp: int


class Appending(NamedTuple):
    """Records are about to be appended at these offsets, by a leader of this epoch."""

    log: LogId
    records: dict[int, Stored]
    leader_epoch: int


class Durable(NamedTuple):
    """Records below this offset were acknowledged after a sync."""

    log: LogId
    end_offset: int


class Produced(NamedTuple):
    """What an idempotent producer is about to append at an offset, and would send again without an answer."""

    log: LogId
    producer_id: int
    base_offset: int
    batch: bytes


class Recovered(NamedTuple):
    """A start after a crash has found these records, and nothing else is in the log from now on."""

    log: LogId
    records: dict[int, Stored]


class StartMoving(NamedTuple):
    """Records below this offset may go from now on: by retention or by DeleteRecords."""

    log: LogId
    offset: int


class Compacting(NamedTuple):
    """From now on only the last record of each key must stay."""

    log: LogId


class Pruning(NamedTuple):
    """A coordinator may delete records of its topic below this offset from now on."""

    log: LogId
    offset: int


class Changing(NamedTuple):
    """The metadata is about to change."""


class Changed(NamedTuple):
    """The metadata was changed, and the change answered."""

    holding: Holding


class LogPromises:
    """What is known about one log."""

    def __init__(self) -> None:
        self.records: dict[int, list[Stored]] = {}
        """What may be at each offset. More than one after a crash, when offsets are used again."""
        self.epochs: dict[int, set[int]] = {}
        self.produced: dict[tuple[int, int], bytes] = {}
        """The last batch at an offset, by producer id and offset."""
        self.durable_end = 0
        self.start_at_most = 0
        self.is_compacted = False

    def required(self) -> Iterator[tuple[int, Stored]]:
        """Yield the durable records that must be there, the log start offset permitting."""
        durable = {offset: stored[-1] for offset, stored in self.records.items() if offset < self.durable_end}
        if not self.is_compacted:
            yield from durable.items()
            return
        last_offset = {stored.key: offset for offset, stored in sorted(durable.items())}
        newer = {stored[-1].key for offset, stored in self.records.items() if offset >= self.durable_end}
        for offset, stored in durable.items():
            # A newer record of the key, which may be there, may have replaced this one. A tombstone may go.
            if last_offset[stored.key] == offset and stored.key not in newer and stored.value is not None:
                yield offset, stored


class Promises:
    """The promises after some events of a recording."""

    def __init__(self) -> None:
        self.logs: dict[LogId, LogPromises] = {}
        self.holdings: list[Holding] = []
        """Allowed metadata; empty before the first start was finished, when any is."""
        self.is_changing = False
        self.outcomes = Outcomes()
        self.shares = ShareOutcomes()
        self.pruned: dict[LogId, int] = {}
        """Of coordinators' topics, whose contents are promised by their outcomes."""

    def log(self, log: LogId) -> LogPromises:
        return self.logs.setdefault(log, LogPromises())

    def add(self, said: object) -> None:
        """Take a note into account."""
        match said:
            case Appending(log, records, leader_epoch):
                promises = self.log(log)
                for offset, stored in records.items():
                    promises.records.setdefault(offset, []).append(stored)
                    promises.epochs.setdefault(offset, set()).add(leader_epoch)
            case Durable(log, end_offset):
                self.log(log).durable_end = max(self.log(log).durable_end, end_offset)
            case Produced(log, producer_id, base_offset, data):
                self.log(log).produced[producer_id, base_offset] = data
            case Recovered(log, records):
                self.log(log).records = {offset: [stored] for offset, stored in records.items()}
            case StartMoving(log, offset):
                self.log(log).start_at_most = offset
            case Compacting(log):
                self.log(log).is_compacted = True
            case Pruning(log, offset):
                self.pruned[log] = offset
            case Changing():
                self.is_changing = True
            case Changed(held):
                self.holdings, self.is_changing = [held], False
            case Begin():
                pass
            case _ if isinstance(said, CoordinatorNote):
                self.outcomes.add(said)
            case _ if isinstance(said, ShareNote):
                self.shares.add(said)
            case _:
                raise TypeError(f"unknown note {said!r}")

    def allowed_holdings(self, later: Sequence[Event]) -> list[Holding]:
        """Return the allowed metadata: what was answered last, and the change under way in the `later` events."""
        if not self.is_changing or not self.holdings:
            return self.holdings
        coming = (event.said.holding for event in later if isinstance(event, Note) and isinstance(event.said, Changed))
        return [*self.holdings, *[found for found in [next(coming, None)] if found is not None]]


def stored_records(log: PartitionLog) -> dict[int, Stored]:
    """Return what can be read from a log."""
    return {
        record.offset: Stored(record.key, record.value, record.timestamp)
        for each in read_batches(log)
        for record in _records(each)
        if record.offset >= log.log_start_offset
    }


def log_id(opened: Opened, topic_partition: TopicPartition) -> LogId:
    """Return the identity of a partition's log in the current metadata."""
    return LogId(*topic_partition, opened.store.image.topics[topic_partition.topic].topic_id)


def violations(opened: Opened, promises: Promises, allowed: Sequence[Holding]) -> Iterator[str]:
    """Yield what the started broker does not keep."""
    for directory in opened.log_manager.failures.offline:
        yield f"the log directory {directory} is offline"
    held = holding(opened.store.image)
    if allowed and held not in allowed:
        yield f"the metadata is {held}, allowed are {allowed}"
    yield from broken_outcomes(opened, promises.outcomes)
    yield from broken_shares(opened, promises.shares)
    for pruned, offset in promises.pruned.items():
        log = opened.log_manager.get(TopicPartition(pruned.topic, pruned.partition))
        if log is None or log.log_start_offset > offset:
            yield f"{pruned} was pruned up to {offset}, and is {log and log.log_start_offset}"
    for each, log_promises in promises.logs.items():
        topic = opened.store.image.topics.get(each.topic)
        if topic is None or topic.topic_id != each.topic_id:
            continue  # deleted, which the metadata's check has allowed
        log = opened.log_manager.get(TopicPartition(each.topic, each.partition))
        if log is None:
            yield f"{each} has no log"
        elif log.topic_id != each.topic_id:
            yield f"the log of {each} has topic id {log.topic_id!r}"
        else:
            for found in _log_violations(log, log_promises):
                yield f"{each.topic}-{each.partition}: {found}"


def _log_violations(log: PartitionLog, promises: LogPromises) -> Iterator[str]:
    if log.log_start_offset > promises.start_at_most:
        yield f"the log start offset is {log.log_start_offset}, at most {promises.start_at_most} was asked for"
    next_offset = -1
    for stored in read_batches(log):
        if stored.base_offset < next_offset:
            yield f"a batch begins at {stored.base_offset}, below {next_offset}, where the one before ends"
        next_offset = stored.next_offset
        if stored.base_offset < promises.start_at_most:
            continue  # deleted before, and back after the power cut; its leader epoch is gone for good
        epoch, known = stored.partition_leader_epoch, log.leader_epoch_for(stored.base_offset)
        if epoch not in promises.epochs.get(stored.base_offset, {epoch}):
            yield f"the batch at {stored.base_offset} has leader epoch {epoch}"
        if known != epoch:
            yield f"leader epoch {known} is known for {stored.base_offset}, the batch has {epoch}"
    found = stored_records(log)
    for offset, record in found.items():
        if record not in promises.records.get(offset, ()):
            yield f"offset {offset} has {record}, which was not written there"
    for offset, record in promises.required():
        if offset >= promises.start_at_most and found.get(offset) != record:
            yield f"the durable record at {offset} is lost: {found.get(offset)} instead of {record}"
    yield from _holes(log, found, promises)
    yield from _returned(found, promises)
    for segment, following in itertools.pairwise(log.segments):
        if (end := segment.read_next_offset()) > following.base_offset:
            yield f"the segment at {segment.base_offset} ends at {end}, after the next one's begin"
    yield from _lookup_violations(log, found)
    yield from _repetition_violations(log, promises)
    yield from _use_violations(log)


def _holes(log: PartitionLog, found: dict[int, Stored], promises: LogPromises) -> Iterator[str]:
    """Complain about records that are missing between others, unless a whole sealed segment's end is missing."""
    if promises.is_compacted or not found:
        return
    bases = {segment.base_offset for segment in log.segments}
    first = max(min(found), promises.start_at_most)
    for offset in promises.records:
        if offset >= first and offset not in found and offset + 1 in found and offset + 1 not in bases:
            yield f"records are missing within a segment, up to {offset} (log end {log.log_end_offset})"


def _returned(found: dict[int, Stored], promises: LogPromises) -> Iterator[str]:
    """Complain about values of a compacted log that are back although their tombstone is gone."""
    if not promises.is_compacted:
        return
    tombstones = {
        stored[-1].key: offset
        for offset, stored in promises.records.items()
        if stored[-1].value is None and offset < promises.durable_end
    }
    for offset, record in found.items():
        deleted_at = tombstones.get(record.key, -1)
        if offset < deleted_at and deleted_at not in found:
            yield f"the value at {offset} is there, and its tombstone at {deleted_at} is not"


def _lookup_violations(log: PartitionLog, found: dict[int, Stored]) -> Iterator[str]:
    """Look every record up by its offset and by its timestamp."""
    for offset, record in found.items():
        part = log.read(offset, 1, upper_bound=log.high_watermark, at_least_one_batch=True)
        first = None if part is None else next(iter_batches(part.read()), None)
        if first is None or not first.base_offset <= offset < first.next_offset:
            yield f"a read at {offset} finds {first}"
        hit = log.offset_for_timestamp(record.timestamp)
        expected = min((each for each, other in found.items() if other.timestamp >= record.timestamp), default=None)
        if (None if hit is None else hit.offset) != expected:
            yield f"a lookup of timestamp {record.timestamp} finds {hit}, expected offset {expected}"


def _repetition_violations(log: PartitionLog, promises: LogPromises) -> Iterator[str]:
    """Send the last batch of each producer again: it must not be stored twice."""
    last = {each.producer_id: each.base_offset for each in read_batches(log) if each.producer_id >= 0}
    for producer_id, base_offset in last.items():
        data = promises.produced.get((producer_id, base_offset))
        if data is None:
            continue  # a transactional batch or an end marker
        end = log.log_end_offset
        again = log.append_as_leader(memoryview(bytearray(data)), leader_epoch=max(log.latest_leader_epoch, 0))
        if not again.is_duplicate or again.base_offset != base_offset or log.log_end_offset != end:
            yield f"the batch of producer {producer_id} at {base_offset} was sent again and is stored as {again}"


def _use_violations(log: PartitionLog) -> Iterator[str]:
    """Append to the log, as its next leader does, and read that."""
    expected = log.log_end_offset
    offset = append(log, batch((START_MS, b"later", b"after the crash")), log.latest_leader_epoch + 1)
    log.flush()
    if offset != expected:
        yield f"an append got offset {offset}, expected {expected}"
    last = [record for stored in read_batches(log, offset) for record in _records(stored)]
    if [(record.offset, record.key) for record in last] != [(offset, b"later")]:
        yield f"what was appended at {offset} is read as {last}"


def _records(stored: RecordBatch) -> list[Record]:
    return [] if stored.is_control else list(read_records(stored))
