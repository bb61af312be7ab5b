"""Writes docs/metrics.md from the collectors' own declarations: `python -m barnabas.broker.metrics.document --write`.

Without an option the page goes to standard output; `--check` exits 1 when the file differs from what would be written.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from prometheus_client.utils import floatToGoString

from barnabas.broker.metrics.family import Family
from barnabas.broker.metrics.registry import COLLECTORS

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"
"""Path in the source tree; an installed package has no docs folder."""

_HEALTHZ: Final = (
    "200 while the broker serves clients, with the number of partitions that it cannot serve because they have no "
    "log, if there are any; 503 and the reason in one line while it starts, loads its logs, drains, or its event loop "
    "is stuck"
)

_HEAD: Final = f"""\
# Metrics

<!-- Written by `python -m barnabas.broker.metrics.document --write` from the collectors' declarations. Do not edit. -->

The broker answers HTTP on the address of the property `metrics.listener` (`127.0.0.1:9404`), from a thread of its own:

| path | answer |
|---|---|
| `/metrics` | everything below, in Prometheus' text format, or OpenMetrics or gzip where the scraper asks for it |
| `/healthz` | {_HEALTHZ} |

The port opens before the logs are loaded, so that the progress of a long recovery can be watched. Up to eight
connections are served at a time, four requests of one host, and eight more of this machine. A connection has five
seconds for its request, and makes room for a new one before it has sent it; a host with several requests makes room for
the others. So strangers that say nothing, or read no responses, keep no scrape and no probe away, unless they come from
eight hosts. A response has 30 seconds. `barnabas health` asks `/healthz` from this machine, for probes. Each scrape
renders `/metrics` from plain counters; a broker with 1,000 partitions needs about 0.05 s of CPU for it, so scrape at
most every 5 seconds. With `metrics.group.lag.enable=true` (default false) it also has the lag of groups: 0.02 s of CPU
for 1,000 partitions with committed offsets, 0.2 s for 10,000, 2.1 s for 100,000. Python runs one thread at a time, so
requests are slowed down: during a rendering of 100,000 an event loop that only echoes reached 15 % of its normal rate,
with p99 7 ms, not 0.5.

Names end in their base unit, and in `_total` where they only grow. A counter starts at 0 with the process.
"""

_TAIL: Final = """\
## The process

From prometheus_client's process collector: `process_cpu_seconds_total`, `process_resident_memory_bytes`,
`process_virtual_memory_bytes`, `process_start_time_seconds`, `process_open_fds`, `process_max_fds`.
"""


def render_page() -> str:
    """Return the page, ending in a newline."""
    sections = [_HEAD]
    for collector in COLLECTORS:
        title = (collector.__doc__ or "").splitlines()[0].rstrip(".")
        rows = [_row(family) for family in collector.families]
        head = [f"## {title}", "", "| metric | type | labels | meaning |", "|---|---|---|---|"]
        sections.append("\n".join([*head, *rows, ""]))
    return "\n".join([*sections, _TAIL])


def _row(family: Family) -> str:
    labels = ", ".join(f"`{label}`" for label in family.labels)
    meaning = family.help
    if family.bounds:
        meaning += f" Buckets: {', '.join(map(floatToGoString, family.bounds))} s."
    return f"| `{family.name}` | {family.kind} | {labels} | {meaning} |"


def main(arguments: list[str]) -> int:
    """Run the command and return its exit code."""
    page = render_page()
    if arguments == ["--write"]:
        PAGE.write_text(page)
        return 0
    if arguments == ["--check"]:
        if PAGE.exists() and PAGE.read_text() == page:
            return 0
        sys.stderr.write(f"{PAGE} is not current: run `python -m barnabas.broker.metrics.document --write`\n")
        return 1
    sys.stdout.write(page)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
