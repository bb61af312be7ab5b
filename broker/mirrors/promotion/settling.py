"""How transactions end that are open in a copy: rules without I/O.

Partitions are copied at different moments, so a transaction may be open in one copy and ended in another. Each open
transaction is decided by the first rule that applies:

1. Another copy has its COMMIT marker: COMMIT. The marker must belong to this transaction and to no other one of the
   same producer. That is certain with transaction.version 2, where each transaction has an epoch of its own and its
   marker has the next one.
2. The source has answered how the transaction ended.
3. No copy has a COMMIT marker that could be its own: ABORT. The transaction is then invisible in all copies, whatever
   the source has decided, as if its producer had timed out.
4. Otherwise nothing decides: UNDECIDED.

Rule 4 concerns producers before transaction.version 2, whose transactions share an epoch. The logs do not order
transactions of one producer that are in different partitions: with COMMIT markers in A and an open transaction in B,
the last marker in A may end that transaction or another one that B does not have. What the logs do show is that a
marker is too old: the source's brokers write the time into markers, and a marker that is older than one which precedes
the open transaction in its own partition ended an earlier transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from barnabas.protocol.topic_partition import TopicPartition

CLOCK_TOLERANCE_MS: Final = 10_000
"""How far the clocks of the source's brokers may differ."""

UNKNOWN_EPOCH: Final = -1
UNKNOWN_TIME: Final = -1


class OpenTransaction(NamedTuple):
    """A transaction without an end marker in a copy.

    `began_after_ms`: timestamp of the last marker before it in the same partition, or UNKNOWN_TIME.
    """

    place: TopicPartition
    producer_id: int
    epoch: int
    first_offset: int
    began_after_ms: int = UNKNOWN_TIME


class Ending(NamedTuple):
    """An end marker in a copy. `data_epoch`: epoch of the records that it ends; UNKNOWN_EPOCH if there are none."""

    place: TopicPartition
    producer_id: int
    data_epoch: int
    marker_epoch: int
    is_commit: bool
    timestamp_ms: int


class Outcome(StrEnum):
    """How an open transaction is settled."""

    COMMIT = "commit"
    ABORT = "abort"
    UNDECIDED = "undecided"


class EndingFinder:
    """Finds the end markers in one copy, which is read in the order of its offsets."""

    def __init__(self, place: TopicPartition) -> None:
        self._place = place
        self._open: dict[int, int] = {}
        self.endings: list[Ending] = []

    def data(self, producer_id: int, epoch: int) -> None:
        """Note a transactional batch."""
        self._open[producer_id] = epoch

    def marker(self, producer_id: int, epoch: int, *, is_commit: bool, timestamp_ms: int) -> None:
        """Note an end marker."""
        data_epoch = self._open.pop(producer_id, UNKNOWN_EPOCH)
        self.endings.append(Ending(self._place, producer_id, data_epoch, epoch, is_commit, timestamp_ms))


def settle(
    transactions: Iterable[OpenTransaction],
    endings: Iterable[Ending],
    answers: Mapping[OpenTransaction, Outcome],
) -> dict[OpenTransaction, Outcome]:
    """Decide about each open transaction. `answers` are the source's, for those that it knows."""
    by_producer: dict[int, list[Ending]] = {}
    for ending in endings:
        by_producer.setdefault(ending.producer_id, []).append(ending)
    return {each: _outcome(each, by_producer.get(each.producer_id, ()), answers.get(each)) for each in transactions}


def _outcome(transaction: OpenTransaction, endings: Iterable[Ending], answer: Outcome | None) -> Outcome:
    epoch = transaction.epoch
    shares_epoch = any(each.data_epoch == each.marker_epoch == epoch for each in endings)
    commits = [each for each in endings if each.is_commit and _may_end(each, transaction)]
    if not shares_epoch and any(each.data_epoch == epoch and each.marker_epoch == epoch + 1 for each in commits):
        return Outcome.COMMIT
    if answer is not None:
        return answer
    return Outcome.UNDECIDED if commits else Outcome.ABORT


def _may_end(ending: Ending, transaction: OpenTransaction) -> bool:
    """Return whether a marker of the same producer may end the transaction in another partition."""
    if ending.place == transaction.place or ending.timestamp_ms < transaction.began_after_ms - CLOCK_TOLERANCE_MS:
        return False
    if ending.data_epoch == UNKNOWN_EPOCH:
        return transaction.epoch <= ending.marker_epoch <= transaction.epoch + 1
    return ending.data_epoch == transaction.epoch
