"""Records the outcome of tests marked with `ecosystem` for docs/ecosystem.md.

    @pytest.mark.ecosystem("kafka-go", "v0.4.51", "produces and reads in a group through two kills of the broker")

BARNABAS_ECOSYSTEM_RESULT names a JSON file; a run replaces the rows of the tests that it ran, so one table may come
from several runs. A test that learns its software's version only when it runs says `record_property("version", ...)`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from barnabas import __version__

RESULT_VARIABLE = "BARNABAS_ECOSYSTEM_RESULT"
MARKER = "ecosystem"
_ROW = "ecosystem"
_REASON_CHARACTERS = 300


class Recorder:
    """A pytest plugin that writes the file when the run ends. With xdist, workers hand their rows to the controller."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows: dict[str, dict[str, str]] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            marker = next((each for each in item.iter_markers(MARKER) if each.args), None)
            if marker is not None:
                software, version, case, *note = marker.args
                row = {"software": software, "version": version, "case": case, "note": "".join(note)}
                item.user_properties.append((_ROW, row))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        properties: dict[str, Any] = dict(report.user_properties)
        if _ROW not in properties or (report.passed and report.when != "call"):
            return
        if self._rows.get(report.nodeid, {}).get("outcome") == "failed":  # a failed tear-down does not hide it
            return
        now = datetime.now(UTC).date().isoformat()
        row = {**properties[_ROW], "outcome": report.outcome, "date": now, "barnabas": __version__}
        if "version" in properties:
            row["version"] = properties["version"]
        if report.skipped:
            row["reason"] = _skip_reason(report)
        self._rows[report.nodeid] = row

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._rows and not hasattr(session.config, "workerinput"):
            write(self._path, self._rows)


def write(path: Path, rows: Mapping[str, Mapping[str, str]]) -> None:
    """Put the rows, by test, into the file in place of earlier ones of the same tests."""
    result = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    ordered = sorted({**result, **rows}.items(), key=lambda each: (each[1]["software"].lower(), each[0]))
    path.write_text(json.dumps(dict(ordered), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _skip_reason(report: pytest.TestReport) -> str:
    said = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return " ".join(said.removeprefix("Skipped: ").split())[:_REASON_CHARACTERS]
