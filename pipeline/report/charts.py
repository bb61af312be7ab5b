"""Charts of the pages of stats and whatif: their data, and how numbers are written. `static/report.js` draws them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

Series = Mapping[str, Sequence[float | None]]
"""Name -> one value per label."""

Unit = Literal["bytes", "count"]


@dataclass(frozen=True, slots=True)
class Chart:
    """Bars, or with `is_line` lines, one per series. `is_stacked`: the bars of a label stand on each other.

    `note`: what each bar is, which is of no interest where a sentence replaces the chart.
    """

    title: str
    labels: Sequence[str]
    series: Series
    unit: Unit = "count"
    is_stacked: bool = False
    is_line: bool = False
    note: str = ""

    @property
    def caption(self) -> str:
        """The title with the note."""
        return f"{self.title} ({self.note})" if self.note else self.title

    def text(self, value: float | None) -> str:
        """Format one of its values."""
        return "-" if value is None else _TEXTS[self.unit](value)

    def sentence(self) -> str | None:
        """What to say instead of a chart that has at most one bar or point; None for one that is worth drawing."""
        if not self.labels:
            return f"{self.title}: nothing to show."
        if len(self.labels) > 1:
            return None
        told = ", ".join(f"{name} {self.text(values[0])}" for name, values in self.series.items())
        return f"{self.title}: {told}, all at {self.labels[0]}."

    def script_data(self) -> str:
        """Its data as JSON that can stand in a script element, whatever topics are called."""
        data = {
            "labels": list(self.labels),
            "series": [{"name": name, "values": list(values)} for name, values in self.series.items()],
            "unit": self.unit,
            "stacked": self.is_stacked,
            "line": self.is_line,
        }
        text = json.dumps(data)
        for character in "<>&":
            text = text.replace(character, f"\\u{ord(character):04x}")
        return text


def bytes_text(value: float) -> str:
    """Format a size: `1.5 MiB`."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(value) < 1024 or unit == "TiB":
            return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    raise AssertionError(value)


def count_text(value: float) -> str:
    """Format a count: `12,000`."""
    return f"{value:,.0f}"


_TEXTS: Final = {"bytes": bytes_text, "count": count_text}
