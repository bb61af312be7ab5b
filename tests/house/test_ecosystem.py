"""docs/ecosystem.md matches the outcomes of `make ecosystem`, each of which is that of a test that exists."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.daemon import REPOSITORY
from tests.support.ecosystem.recording import RESULT_VARIABLE, write
from tools.ecosystem import PAGE, RESULT, UNAVAILABLE, main, render

UNUSED_PLUGINS = ("anyio", "asyncio", "barnabas", "cacheprovider", "hypothesispytest", "random_order", "timeout")
"""Plugins whose import would take most of each run's time."""

TESTS = """
import pytest

@pytest.mark.ecosystem("One", "1.2", "a case")
def test_passes():
    pass

@pytest.mark.ecosystem("Two", "3", "a case", "set this")
def test_fails():
    assert False

@pytest.mark.ecosystem("Three", "?", "a case")
def test_is_skipped(record_property):
    record_property("version", "5.6")
    pytest.skip("there is none")

def test_without_a_row():
    pass
"""


def test_the_page_is_what_the_last_result_gives() -> None:
    assert main(["--check"]) == 0
    assert PAGE.read_text() == render(json.loads(RESULT.read_text()))


def test_each_row_is_that_of_a_test_and_each_test_has_a_row() -> None:
    rows = json.loads(RESULT.read_text())
    for test in rows:
        path, _, name = test.partition("::")
        assert re.search(rf"^def {re.escape(name.partition('[')[0])}\(", (REPOSITORY / path).read_text(), re.MULTILINE)
    marked = {
        str(path.relative_to(REPOSITORY))
        for folder in ("ecosystem", "interop")
        for path in (REPOSITORY / "tests" / folder).rglob("test_*.py")
        if "@pytest.mark.ecosystem(" in path.read_text()
    }
    assert marked == {test.partition("::")[0] for test in rows}
    assert UNAVAILABLE.keys().isdisjoint(row["software"] for row in rows.values())


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_run_records_each_marked_test(workers: str, tmp_path: Path) -> None:
    folder = tmp_path / "tests"
    folder.mkdir()
    (folder / "test_rows.py").write_text(TESTS)
    (folder / "conftest.py").write_bytes((REPOSITORY / "tests" / "conftest.py").read_bytes())
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = ecosystem\n")
    result = tmp_path / "result.json"
    write(result, {"tests/test_other.py::test_kept": {"software": "Zero"}})
    environ = {**os.environ, RESULT_VARIABLE: str(result), "PYTHONPATH": str(REPOSITORY)}
    plugins = [word for name in UNUSED_PLUGINS for word in ("-p", f"no:{name}")]
    command = [sys.executable, "-m", "pytest", *plugins, "-n", workers, str(folder)]

    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=100, check=False)

    assert done.returncode == 1, done.stdout
    found = json.loads(result.read_text())
    assert [(row["software"], row.get("outcome")) for row in found.values()] == [
        ("One", "passed"),
        ("Three", "skipped"),
        ("Two", "failed"),
        ("Zero", None),
    ]
    assert found["test_rows.py::test_is_skipped"]["version"] == "5.6"
    assert found["test_rows.py::test_is_skipped"]["reason"] == "there is none"
    assert found["test_rows.py::test_fails"]["note"] == "set this"


def test_failures_stand_out_and_reasons_are_said() -> None:
    row = {"software": "S", "version": "1", "case": "a | b", "note": "set it", "date": "2026-01-01", "barnabas": "2"}

    page = render({"a": {**row, "outcome": "failed"}, "b": {**row, "outcome": "skipped", "reason": "no Go"}})

    assert "| S | 1 | a \\| b | **failed** | 2 | 2026-01-01 | set it |\n" in page
    assert "| S | 1 | a \\| b | **skipped**: no Go | 2 | 2026-01-01 | set it |\n" in page
