"""Promotion of one mirrored topic, as its record in the metadata log contains it.

`prepared` holds from the moment when the outcome of every open transaction is stored: from then on the promotion needs
nothing but this record and the logs, and repeating it has the same result. What remains after the promotion are the
offsets and leader epochs that a failback needs.

    {"undecided": "cut", "leader_epoch": 16777216,
     "commits": {"0": [4711]},                 producer ids whose open transaction is committed; all others are aborted
     "partitions": {"0": [copied_end, source_epoch, end, committed, aborted, cut]}}     trailing zeros are left out
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple

from barnabas.protocol.mirrors.fields import MAX_TEXT_BYTES, MirrorFormatError, ensure_known, object_text

NOT_PREPARED: Final = -1
"""Leader epoch of a promotion that has not been prepared."""

_FIELDS: Final = ("undecided", "leader_epoch", "commits", "partitions")
_COLUMNS: Final = 6
_ROOM_BYTES: Final = 1024
"""For the other fields of the topic's record."""


class Undecided(StrEnum):
    """What happens to a partition with an open transaction that nothing decides."""

    CUT = "cut"
    """The partition ends where the transaction begins, which is its last stable offset."""
    ABORT = "abort"
    """The transaction is aborted; all other records stay."""


class PartitionPromotion(NamedTuple):
    """One partition.

    `copied_end`: below it are copied records only, the same as at the source. `source_epoch`: leader epoch of the last
    of them, -1 without records. `end`: end offset after the markers of settled transactions. `committed` and `aborted`
    count settled transactions, `cut` the offsets that were dropped.
    """

    copied_end: int
    source_epoch: int
    end: int
    committed: int = 0
    aborted: int = 0
    cut: int = 0


@dataclass(frozen=True, slots=True)
class TopicPromotion:
    """The promotion of a topic. `leader_epoch` begins at each partition's `copied_end`."""

    undecided: Undecided = Undecided.CUT
    leader_epoch: int = NOT_PREPARED
    commits: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """Producer ids by partition."""
    partitions: Mapping[int, PartitionPromotion] = field(default_factory=dict)
    """Partitions whose log could be used."""

    @property
    def is_prepared(self) -> bool:
        """Whether the outcome of every open transaction is stored."""
        return self.leader_epoch != NOT_PREPARED

    def fields(self) -> dict[str, Any]:
        """Return the stored object. Rows of partitions are left out, the last first, if it were too long."""
        found: dict[str, Any] = {"undecided": self.undecided.value}
        if self.is_prepared:
            found["leader_epoch"] = self.leader_epoch
        if self.commits:
            found["commits"] = {str(number): list(each) for number, each in sorted(self.commits.items())}
        rows = {str(number): _row(each) for number, each in sorted(self.partitions.items())}
        if rows:
            room = MAX_TEXT_BYTES - _ROOM_BYTES - len(object_text(found).encode())
            while len(object_text(rows, limited=False)) > room:
                rows = dict(list(rows.items())[: len(rows) * 9 // 10])
            found["partitions"] = rows
        return found


def parse_promotion(fields: Mapping[str, Any]) -> TopicPromotion:
    """Parse the stored object. Raises MirrorFormatError."""
    ensure_known(fields, _FIELDS)
    undecided = fields.get("undecided", Undecided.CUT)
    if undecided not in [each.value for each in Undecided]:
        raise MirrorFormatError(f"undecided is not one of {', '.join(Undecided)}")
    epoch = fields.get("leader_epoch", NOT_PREPARED)
    if type(epoch) is not int:
        raise MirrorFormatError("leader_epoch is not a number")
    return TopicPromotion(
        Undecided(undecided),
        epoch,
        {number: tuple(each) for number, each in _numbers(fields, "commits")},
        {
            number: PartitionPromotion(*each)
            for number, each in _numbers(fields, "partitions")
            if 3 <= len(each) <= _COLUMNS
        },
    )


def _row(partition: PartitionPromotion) -> list[int]:
    row = list(partition)
    while len(row) > 3 and row[-1] == 0:
        row.pop()
    return row


def _numbers(fields: Mapping[str, Any], name: str) -> list[tuple[int, list[int]]]:
    """Return a map of partitions to lists of integers. Raises MirrorFormatError."""
    value = fields.get(name, {})
    if not isinstance(value, dict) or not all(
        isinstance(row, list) and all(type(each) is int for each in row) and key.isascii() and key.isdigit()
        for key, row in value.items()
    ):
        raise MirrorFormatError(f"{name} is not a map of partitions to lists of numbers")
    return [(int(key), row) for key, row in value.items()]
