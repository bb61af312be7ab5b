"""Summary printed at the end of a job: records, bytes, files, seconds, and details."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Summary:
    """Figures of a finished job.

    `records` were read or written (each job's command says which), `size_bytes` is their size at the target, `files`
    were written, `seconds` is the job's own time without the start of Spark. `details` are further values by name, in
    the order in which they are printed.
    """

    job: str
    records: int
    size_bytes: int
    files: int
    seconds: float
    details: Mapping[str, int | float | str] = field(default_factory=dict)

    def lines(self) -> list[str]:
        """Format as text: one line, and one for each detail."""
        rate = f" ({self.records / self.seconds:,.0f} records/s)" if self.seconds > 0 and self.records else ""
        did = f"{_counted(self.records, 'record')}, {_counted(self.size_bytes, 'byte')}, {_counted(self.files, 'file')}"
        head = f"{self.job}: {did} in {self.seconds:.1f} s{rate}"
        return [head, *(f"  {name}: {_number_text(value)}" for name, value in self.details.items())]

    def as_json(self) -> dict[str, object]:
        """Return the summary for JSON."""
        return {
            "job": self.job,
            "records": self.records,
            "bytes": self.size_bytes,
            "files": self.files,
            "seconds": round(self.seconds, 3),
            **self.details,
        }


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _number_text(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:,.3f}"
