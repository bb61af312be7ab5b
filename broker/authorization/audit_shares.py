"""AuditShares: which principal may write a line of the audit log, so that no principal's flood hides the others.

Of `max_per_second` lines, a principal gets at most one share of as many as principals wrote or tried to write in this
second or the last, plus one share that stays free for the next principal: one alone gets a half. A principal's first
line of a second waits for no share, only for the total. Without I/O and clock.
"""

from __future__ import annotations

from heapq import nlargest
from typing import Final

PRINCIPALS_MAX: Final = 1_000
"""Principals that are counted apart in one second; all others share one count."""

NAMED_MAX: Final = 10
"""Principals that are named beside the number of their suppressed lines."""

OTHERS: Final = ""
"""Stands for all further principals; no principal has an empty text."""


class AuditShares:
    """Counts of one second after the other."""

    def __init__(self, max_per_second: int) -> None:
        self._max_per_second = max_per_second
        self._tried: dict[str, int] = {}
        """Lines of this second by principal, written or not."""
        self._written: dict[str, int] = {}
        self._total = 0
        self._tried_before = 0
        """Principals of the last second."""

    def admit(self, principal: str) -> bool:
        """Return whether a principal may write a line now; if not, it is counted as suppressed."""
        if principal not in self._tried and len(self._tried) >= PRINCIPALS_MAX:
            principal = OTHERS
        self._tried[principal] = self._tried.get(principal, 0) + 1
        written = self._written.get(principal, 0)
        share = self._max_per_second // (max(len(self._tried), self._tried_before) + 1)
        if self._total >= self._max_per_second or written >= max(share, 1):
            return False
        self._written[principal] = written + 1
        self._total += 1
        return True

    def end_second(self, *, is_next: bool = True) -> list[tuple[str, int]]:
        """Start a second, the next one or a later one; return the suppressed lines of the last by principal.

        The principals with the most are named, and OTHERS has the sum of the rest.
        """
        suppressed = {
            principal: tried - self._written.get(principal, 0)
            for principal, tried in self._tried.items()
            if tried > self._written.get(principal, 0)
        }
        self._tried_before = len(self._tried) if is_next else 0
        self._tried, self._written, self._total = {}, {}, 0
        rest = suppressed.pop(OTHERS, 0)
        named = nlargest(NAMED_MAX, suppressed.items(), key=lambda each: each[1])
        rest += sum(suppressed.values()) - sum(count for _, count in named)
        return [*named, (OTHERS, rest)] if rest else named
