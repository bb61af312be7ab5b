"""A model of one partition's records: what each isolation level shows while transactions open, commit and abort."""

from __future__ import annotations

from dataclasses import dataclass, field

_OPEN, _COMMITTED, _ABORTED, _PLAIN = "open", "committed", "aborted", "plain"


@dataclass
class PartitionModel:
    """Records in the order of their offsets; markers are None."""

    log: list[tuple[int, bytes | None, bytes] | None] = field(default_factory=list)
    """(transaction, key, value) by offset; transaction 0 is none."""
    outcomes: dict[int, str] = field(default_factory=lambda: {0: _PLAIN})
    firsts: dict[int, int] = field(default_factory=dict)

    def write(self, transaction: int, *values: bytes, key: bytes | None = None) -> None:
        """Append records; transaction 0 for records outside of transactions."""
        if transaction:
            self.outcomes.setdefault(transaction, _OPEN)
            self.firsts.setdefault(transaction, len(self.log))
        self.log += [(transaction, key, value) for value in values]

    def end(self, transaction: int, *, is_commit: bool) -> None:
        """Append the marker of a transaction, if it wrote to this partition."""
        if transaction in self.firsts:
            self.outcomes[transaction] = _COMMITTED if is_commit else _ABORTED
            self.log.append(None)

    @property
    def last_stable_offset(self) -> int:
        """First offset of the oldest open transaction, or the end."""
        return min(
            (self.firsts[each] for each, state in self.outcomes.items() if state == _OPEN), default=self.end_offset
        )

    @property
    def end_offset(self) -> int:
        """Offset of the next record."""
        return len(self.log)

    def everything(self, start: int = 0) -> list[tuple[int, bytes]]:
        """Return offset and value of the records that read_uncommitted shows from `start` on."""
        return [(offset, row[2]) for offset, row in enumerate(self.log) if row is not None and offset >= start]

    def committed(self, start: int = 0) -> list[tuple[int, bytes]]:
        """Return offset and value of the records that read_committed shows from `start` on."""
        return [
            (offset, row[2])
            for offset, row in enumerate(self.log[: self.last_stable_offset])
            if row is not None and offset >= start and self.outcomes[row[0]] in (_COMMITTED, _PLAIN)
        ]
