"""The results of soaks: one JSON document each in `results`, and a table of all of them in docs/reliability.md."""

from __future__ import annotations

import datetime
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import confluent_kafka

import barnabas
from tests.support.daemon import REPOSITORY
from tests.torture.soak.outcome import Outcome
from tests.torture.soak.running import Plan

RESULTS = Path(__file__).with_name("results")
PAGE = REPOSITORY / "docs" / "reliability.md"
BEGIN = "<!-- soaks: written by python -m tests.torture.soak --write -->"
END = "<!-- end of soaks -->"
_COLUMNS = (
    "acknowledged records",
    "records read",
    "committed transactions",
    "aborted transactions",
    "offset commits",
    "faults",
)


def as_json(plan: Plan, outcome: Outcome) -> dict[str, Any]:
    """Return the result of one soak."""
    trends = {
        name: {"lives judged": len(found), "largest rise": round(max((each.rise for each in found), default=0), 1)}
        for name, found in outcome.trends.items()
    }
    return {
        "seed": plan.seed,
        "seconds": plan.seconds,
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "versions": {
            "barnabas": barnabas.__version__,
            "librdkafka": confluent_kafka.libversion()[0],
            "aiokafka": version("aiokafka"),
        },
        "totals": dict(sorted(outcome.totals.items())),
        "anomalies": dict(Counter(each.kind for each in outcome.anomalies)),
        "trends": trends,
        "rising": outcome.rising,
    }


def write(result: Mapping[str, Any]) -> None:
    """Keep a result, and write the table anew."""
    RESULTS.mkdir(exist_ok=True)
    name = f"{result['date']}-seed-{result['seed']}-{result['seconds']:.0f}s.json"
    (RESULTS / name).write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{render(stored_results())}{after}", encoding="utf-8")


def stored_results() -> list[dict[str, Any]]:
    """Return all kept results, by file name."""
    return [json.loads(each.read_text(encoding="utf-8")) for each in sorted(RESULTS.glob("*.json"))]


def render(results: Iterable[Mapping[str, Any]]) -> str:
    """Return the table with its markers."""
    head = ("date", "seed", "seconds", "Barnabas", "librdkafka", "aiokafka", *_COLUMNS, "anomalies", "rising")
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    lines += [f"| {' | '.join(_cells(each))} |" for each in results]
    return "\n".join([BEGIN, *lines, END])


def _cells(result: Mapping[str, Any]) -> list[str]:
    totals = dict(result["totals"])
    kinds = {name.removeprefix("faults: "): count for name, count in totals.items() if name.startswith("faults: ")}
    totals["faults"] = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    anomalies = ", ".join(f"{count} {kind}" for kind, count in result["anomalies"].items())
    versions = result["versions"]
    return [
        result["date"],
        str(result["seed"]),
        f"{result['seconds']:.0f}",
        versions["barnabas"],
        versions["librdkafka"],
        versions["aiokafka"],
        *(f"{totals[name]:,}" if isinstance(totals.get(name), int) else str(totals.get(name, 0)) for name in _COLUMNS),
        anomalies or "none",
        ", ".join(result["rising"]) or "none",
    ]
