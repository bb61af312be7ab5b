"""The anomalies of a history, those that Jepsen's Kafka workload looks for.

    lost write              an acknowledged record, or one of a committed transaction, is not in the final read, and is
                            not below the log start
    duplicate               a value is stored twice
    aborted read            G1a: a read_committed reader got a record of an aborted transaction
    intermediate read       G1b: a reader got a record before the end of its transaction was requested, or a transaction
                            is there in part
    write cycle             G0: transaction A ended before B began, and a partition has B's record before A's
    read cycle              G1c: transactions consumed each other's records in a circle
    reordered               offsets of a session do not follow the order of its sends
    non-monotonic poll      a reader got an offset at or below an earlier one, without a new position
    skipped poll            a reader jumped over a record that is stored
    two values              one offset had different values in different reads or acknowledgements
    two offsets             one value had different offsets
    offset went back        a group's offset was below an earlier acknowledged commit
    deleted group           a group was listed, or had an offset, after its deletion
    not exactly once        an input of consume-transform-produce has not exactly one output
    lost key                the last value of a key of a compacted topic is older than the last acknowledged one
    no end                  a transaction is open after its timeout
    fatal error             an idempotent producer was told that its sequence is broken

Left out: cycles with writes of concurrent transactions. Kafka interleaves those by design, in any order. Pure functions
of the history: nothing here knows a broker.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from tests.torture.soak.history import ABORTED, COMMITTED, Final, History, Place, Poll, Transaction

OUTPUT_PREFIX = b"of:"
"""Consume-transform-produce writes this and the input."""


class Anomaly(NamedTuple):
    """One broken promise."""

    kind: str
    text: str


def find_anomalies(
    history: History,
    final: Final,
    *,
    compacted: Iterable[str] = (),
    trimmed: Iterable[str] = (),
    pipes: Iterable[tuple[str, str]] = (),
) -> list[Anomaly]:
    """Check a round. `compacted` and `trimmed` are topics with gaps, by compaction and by retention.

    `pipes` are input and output topics of consume-transform-produce; all input has been processed.
    """
    gaps = {*compacted, *trimmed}
    return [
        *_lost_writes(history, final, set(compacted)),
        *_lost_transactions(history, final, gaps),
        *_duplicates(final, gaps),
        *_aborted_reads(history, final),
        *_intermediate_reads(history),
        *_write_cycles(history, final),
        *_read_cycles(history),
        *_reordered(history),
        *_polls(history, final, gaps),
        *_places(history, final),
        *_offsets_that_went_back(history, final),
        *_deleted_groups(history, final),
        *_not_exactly_once(final, pipes),
        *_lost_keys(history, final),
        *(Anomaly("no end", f"open after its timeout: {each}") for each in final.open),
        *(Anomaly("fatal error", each) for each in history.fatal),
    ]


def _reads(history: History) -> Iterator[Poll]:
    """Yield what readers got, members of share groups included."""
    yield from history.polls
    for each in history.deliveries:
        yield Poll(each.session, each.place, each.tick, [(each.offset, each.value)])


def _stored(final: Final) -> dict[Place, set[bytes]]:
    return {place: {value for _, _, value in records} for place, records in final.records.items()}


def _lost_writes(history: History, final: Final, compacted: set[str]) -> Iterator[Anomaly]:
    by_offset = {place: {offset: value for offset, _, value in records} for place, records in final.records.items()}
    for write in history.writes:
        if write.place[0] in compacted or write.offset < final.starts.get(write.place, 0):
            continue
        if by_offset.get(write.place, {}).get(write.offset) != write.value:
            yield Anomaly("lost write", f"{write.session}: {write.value!r} at {write.place}, offset {write.offset}")


def _lost_transactions(history: History, final: Final, gaps: set[str]) -> Iterator[Anomaly]:
    stored = _stored(final)
    for transaction in history.transactions:
        writes = [each for each in transaction.writes if each[0][0] not in gaps]
        missing = [(place, value) for place, value in writes if value not in stored.get(place, ())]
        if not missing or transaction.outcome == ABORTED:
            continue
        if transaction.outcome == COMMITTED:
            yield Anomaly("lost write", f"{transaction.name} is committed, and lacks {missing[:3]}")
        elif len(missing) < len(writes):
            yield Anomaly("intermediate read", f"{transaction.name} is there without {missing[:3]}")


def _duplicates(final: Final, gaps: set[str]) -> Iterator[Anomaly]:
    for place, records in final.records.items():
        if place[0] in gaps:
            continue
        for value, count in Counter(value for _, _, value in records).items():
            if count > 1:
                yield Anomaly("duplicate", f"{value!r} is {count} times in {place}")


def _aborted_reads(history: History, final: Final) -> Iterator[Anomaly]:
    aborted = {
        (place, value): each.name
        for each in history.transactions
        if each.outcome == ABORTED
        for place, value in each.writes
    }
    for poll in _reads(history):
        for offset, value in poll.records:
            if (poll.place, value) in aborted:
                yield Anomaly("aborted read", f"{poll.session} got {value!r} at {poll.place}, offset {offset}")
    for place, records in final.records.items():
        for offset, _, value in records:
            if (place, value) in aborted:
                yield Anomaly("aborted read", f"{value!r} is stored at {place}, offset {offset}")


def _intermediate_reads(history: History) -> Iterator[Anomaly]:
    writers = {write: each for each in history.transactions for write in each.writes}
    for poll in _reads(history):
        for offset, value in poll.records:
            writer = writers.get((poll.place, value))
            if (
                writer is not None
                and (writer.ending is None or poll.tick < writer.ending)
                and writer.outcome != ABORTED
            ):
                yield Anomaly("intermediate read", f"{poll.session} got {value!r} ({poll.place}, {offset}) too early")


def _write_cycles(history: History, final: Final) -> Iterator[Anomaly]:
    writers = {write: each for each in history.transactions if each.outcome == COMMITTED for write in each.writes}
    for place, records in final.records.items():
        latest: Transaction | None = None
        for offset, _, value in records:
            writer = writers.get((place, value))
            if writer is None:
                continue
            if latest is not None and writer.ended is not None and writer.ended < latest.began:
                text = f"{writer.name} ended before {latest.name} began, and is after it at {place}, offset {offset}"
                yield Anomaly("write cycle", text)
            if latest is None or writer.began > latest.began:
                latest = writer


def _read_cycles(history: History) -> Iterator[Anomaly]:
    """Follow edges from the writer of a value to its reader; a topological order exists unless there is a cycle."""
    writer_of = {value: each.name for each in history.transactions for _, value in each.writes}
    readers: dict[str, set[str]] = defaultdict(set)
    for transaction in history.transactions:
        for value in transaction.reads if transaction.outcome == COMMITTED else ():
            if value in writer_of:
                readers[writer_of[value]].add(transaction.name)
    incoming = Counter(reader for found in readers.values() for reader in found)
    free = [name for name in readers if not incoming[name]]
    while free:
        for reader in readers.pop(free.pop(), ()):
            incoming[reader] -= 1
            if not incoming[reader]:
                free.append(reader)
    left = sorted(name for name, count in incoming.items() if count and name in readers)
    if left:
        yield Anomaly("read cycle", f"a circle among {left[:10]}")


def _reordered(history: History) -> Iterator[Anomaly]:
    sent: dict[tuple[str, Place], list[tuple[int, int]]] = defaultdict(list)
    for write in history.writes:
        sent[write.session, write.place].append((write.number, write.offset))
    for (session, place), found in sent.items():
        for (number, offset), (_, later) in pairwise(sorted(found)):
            if later <= offset:
                yield Anomaly("reordered", f"{session}, {place}: number {number} has offset {offset}, the next {later}")


def _polls(history: History, final: Final, gaps: set[str]) -> Iterator[Anomaly]:
    last: dict[tuple[str, Place], int] = {}
    stored = {place: [offset for offset, _, _ in records] for place, records in final.records.items()}
    index = {place: {offset: number for number, offset in enumerate(offsets)} for place, offsets in stored.items()}
    for poll in history.polls:
        key = (poll.session, poll.place)
        for offset, _ in poll.records:
            before = last.get(key)
            if before is not None and offset <= before:
                yield Anomaly("non-monotonic poll", f"{poll.session}, {poll.place}: {offset} after {before}")
            elif before is not None and poll.place[0] not in gaps:
                numbers = index.get(poll.place, {})
                if offset in numbers and before in numbers and numbers[offset] != numbers[before] + 1:
                    missed = stored[poll.place][numbers[before] + 1]
                    text = f"{poll.session}, {poll.place}: {offset} after {before}, without {missed}"
                    yield Anomaly("skipped poll", text)
            last[key] = offset


def _places(history: History, final: Final) -> Iterator[Anomaly]:
    values: dict[tuple[Place, int], bytes] = {}
    offsets: dict[tuple[Place, bytes], int] = {}

    def note(place: Place, offset: int, value: bytes, whence: str) -> Iterator[Anomaly]:
        if values.setdefault((place, offset), value) != value:
            yield Anomaly("two values", f"{place}, {offset}: {values[place, offset]!r}, and {value!r} by {whence}")
        if offsets.setdefault((place, value), offset) != offset:
            yield Anomaly("two offsets", f"{value!r} in {place}: {offsets[place, value]}, and {offset} by {whence}")

    for place, records in final.records.items():
        for offset, _, value in records:
            yield from note(place, offset, value, "the final read")
    for write in history.writes:
        yield from note(write.place, write.offset, write.value, write.session)
    for poll in _reads(history):
        for offset, value in poll.records:
            yield from note(poll.place, offset, value, poll.session)


def _offsets_that_went_back(history: History, final: Final) -> Iterator[Anomaly]:
    by_key: dict[tuple[str, Place], list[tuple[int, int, int]]] = defaultdict(list)
    for commit in history.commits:
        by_key[commit.group, commit.place].append((commit.began, commit.offset, 0))
        if not commit.is_read:
            by_key[commit.group, commit.place].append((commit.ended, commit.offset, 1))
    for (group, place), events in by_key.items():
        highest = -1
        for _, offset, is_end in sorted(events):
            if is_end:
                highest = max(highest, offset)
            elif offset < highest:
                yield Anomaly("offset went back", f"{group}, {place}: {offset} after {highest}")
        if final.offsets.get((group, place), -1) < highest:
            text = f"{group}, {place}: {final.offsets.get((group, place))} at the end, after {highest}"
            yield Anomaly("offset went back", text)


def _deleted_groups(history: History, final: Final) -> Iterator[Anomaly]:
    for seen in history.seen:
        if seen.began > history.deleted[seen.group]:
            yield Anomaly("deleted group", f"{seen.group} was listed after its deletion")
    for commit in history.commits:
        if commit.began > history.deleted.get(commit.group, commit.began):
            yield Anomaly("deleted group", f"{commit.group} has offset {commit.offset} of {commit.place} again")
    for (group, place), offset in final.offsets.items():
        if group in history.deleted:
            yield Anomaly("deleted group", f"{group} has offset {offset} of {place} at the end")


def _not_exactly_once(final: Final, pipes: Iterable[tuple[str, str]]) -> Iterator[Anomaly]:
    for source, target in pipes:
        inputs = {value for place, records in final.records.items() if place[0] == source for _, _, value in records}
        outputs = Counter(
            value.removeprefix(OUTPUT_PREFIX)
            for place, records in final.records.items()
            if place[0] == target
            for _, _, value in records
        )
        for value in sorted(inputs | outputs.keys()):
            if outputs[value] != 1 or value not in inputs:
                yield Anomaly("not exactly once", f"{value!r} of {source} is {outputs[value]} times in {target}")


def _lost_keys(history: History, final: Final) -> Iterator[Anomaly]:
    acknowledged: dict[tuple[Place, bytes], int] = {}
    for write in history.keyed:
        if write.is_acknowledged:
            acknowledged[write.place, write.key] = max(write.number, acknowledged.get((write.place, write.key), -1))
    latest = {
        (place, key): value for place, records in final.records.items() for _, key, value in records if key is not None
    }
    for (place, key), number in acknowledged.items():
        value = latest.get((place, key))
        if value is None or int(value.rpartition(b"#")[2]) < number:
            yield Anomaly("lost key", f"{key!r} in {place}: {value!r}, after number {number} was acknowledged")
