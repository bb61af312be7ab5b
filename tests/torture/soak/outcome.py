"""What one soak has done and found."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from tests.torture.soak.checker import Anomaly
from tests.torture.soak.history import ABORTED, COMMITTED, History
from tests.torture.soak.trends import Trend


@dataclass
class Outcome:
    """Totals of all rounds, and what was wrong."""

    totals: Counter[str] = field(default_factory=Counter)
    anomalies: list[Anomaly] = field(default_factory=list)
    trends: dict[str, list[Trend]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    @property
    def rising(self) -> list[str]:
        """The measures that rise in a life of the broker."""
        return [name for name, found in self.trends.items() if any(each.is_rising for each in found)]

    def add_round(self, history: History, *, commits: int, promoted: int, clients: int) -> None:
        """Count what happened in a round."""
        keyed = sum(each.is_acknowledged for each in history.keyed)
        transactional = sum(len(each.writes) for each in history.transactions if each.outcome == COMMITTED)
        self.totals.update(
            {
                "rounds": 1,
                "clients": clients,
                "acknowledged records": len(history.writes) + keyed + transactional,
                "records read": sum(len(each.records) for each in history.polls),
                "committed transactions": sum(each.outcome == COMMITTED for each in history.transactions),
                "aborted transactions": sum(
                    each.outcome == ABORTED and each.ended is not None for each in history.transactions
                ),
                "transactions timed out": sum(each.is_abandoned for each in history.transactions),
                "offset commits": commits,
                "promoted topics": promoted,
                "deleted groups": len(history.deleted),
                "share deliveries": len(history.deliveries),
                "share acknowledgements": sum(each.ended is not None for each in history.acknowledgements),
                "errors that clients got": len(history.errors),
            }
        )
        self.errors += history.errors
