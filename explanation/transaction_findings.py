"""What holds the last stable offset of a partition back, and what ends it. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from barnabas.protocol.topic_partition import TopicPartition

NO_TIMEOUT_MS: Final = 2**31 - 1
"""The timeout of a transaction that the coordinator never aborts (two-phase commit)."""


class Verdict(StrEnum):
    """The state of an open transaction, by what ends it."""

    ONGOING = "ongoing"
    """Its producer ends it, or the coordinator at its timeout."""
    OVERDUE = "overdue"
    """Its timeout is over; the coordinator's next check aborts it."""
    NO_TIMEOUT = "no_timeout"
    """Only its producer or an operator ends it: two-phase commit."""
    MISSING_MARKER = "missing_marker"
    """It is decided, and its marker is not written to this partition yet."""
    HANGING = "hanging"
    """No coordinator knows it in this partition: only an operator ends it."""


@dataclass(frozen=True, slots=True)
class OpenInPartition:
    """A producer's open transaction as its partition has it; -1: not known. Times in ms since 1970."""

    producer_id: int
    producer_epoch: int
    start_offset: int
    last_timestamp_ms: int


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """A partition's offsets and its open transactions."""

    topic_partition: TopicPartition
    high_watermark: int
    last_stable_offset: int
    open_transactions: tuple[OpenInPartition, ...]


@dataclass(frozen=True, slots=True)
class KnownTransaction:
    """A transactional id as its coordinator has it. `partitions`: those that still get a marker.

    `start_time_ms` is None if no transaction is open.
    """

    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_time_ms: int | None
    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True)
class Holder:
    """An open transaction of a partition.

    `holds_last_stable_offset`: it is the earliest one, so read_committed consumers stop at its first record.
    `aborted_at_ms`: when the coordinator aborts it, None if it does not.
    """

    transaction: OpenInPartition
    known: KnownTransaction | None
    verdict: Verdict
    holds_last_stable_offset: bool
    aborted_at_ms: int | None


@dataclass(frozen=True, slots=True)
class PartitionFinding:
    """A partition with its open transactions, the earliest first. `held_back`: offsets from the LSO to the end."""

    partition: PartitionFacts
    held_back: int
    holders: tuple[Holder, ...]


def explain_partition(partition: PartitionFacts, known: Iterable[KnownTransaction], *, now_ms: int) -> PartitionFinding:
    """Explain why the last stable offset of a partition is where it is."""
    by_producer = {each.producer_id: each for each in known}
    ordered = sorted(partition.open_transactions, key=lambda each: each.start_offset)
    holders = tuple(
        _holder(each, by_producer.get(each.producer_id), partition.topic_partition, is_first=not index, now_ms=now_ms)
        for index, each in enumerate(ordered)
    )
    return PartitionFinding(partition, max(0, partition.high_watermark - partition.last_stable_offset), holders)


def _holder(
    transaction: OpenInPartition,
    known: KnownTransaction | None,
    topic_partition: TopicPartition,
    *,
    is_first: bool,
    now_ms: int,
) -> Holder:
    if known is None or topic_partition not in known.partitions:
        return Holder(transaction, None, Verdict.HANGING, is_first, None)
    if known.state != "Ongoing" or known.start_time_ms is None:
        return Holder(transaction, known, Verdict.MISSING_MARKER, is_first, None)
    if known.timeout_ms == NO_TIMEOUT_MS:
        return Holder(transaction, known, Verdict.NO_TIMEOUT, is_first, None)
    aborted_at = known.start_time_ms + known.timeout_ms
    verdict = Verdict.OVERDUE if aborted_at < now_ms else Verdict.ONGOING
    return Holder(transaction, known, verdict, is_first, aborted_at)


@dataclass(frozen=True, slots=True)
class ExplainedTransactions:
    """The transactions that were asked about, and the partitions that they are open in, at `now_ms`."""

    now_ms: int
    transactions: tuple[KnownTransaction, ...]
    partitions: tuple[PartitionFinding, ...]
