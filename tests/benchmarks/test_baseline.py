"""Benchmarks of this tree on the baseline and on the tree itself in turn; what single requests cost."""

from __future__ import annotations

import argparse
import json
import re
import shutil
import sys
from pathlib import Path

import pytest

from benchmarks import baseline, costs
from benchmarks.brokers.system import Barnabas
from benchmarks.pipeline import __main__ as pipeline
from benchmarks.runs import result_files
from benchmarks.runs.programs import Programs
from benchmarks.runs.result_files import REPOSITORY
from benchmarks.runs.side_by_side import Round, chosen, in_turn

needs_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="the load generator is written in C: no compiler here"
)


@pytest.fixture
def same_pythons(monkeypatch: pytest.MonkeyPatch) -> None:
    python = Path(sys.executable)
    monkeypatch.setattr(baseline, "PYTHONS", {baseline.BASELINE: python, baseline.TREE: python})


@pytest.mark.usefixtures("same_pythons")
def test_a_benchmark_runs_on_both_programs_and_the_ratios_of_its_columns_are_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(baseline, "HOME", REPOSITORY)
    samples = baseline.compare("recovery", "", 1, ["--gigabytes", "0.004"])
    assert list(samples) == ["baseline: Barnabas", "working tree: Barnabas"]
    table = baseline.render(samples)
    assert all(f"| Barnabas | {column} | " in table for column in ("seconds", "cpu_seconds", "start_seconds"))


@pytest.mark.usefixtures("same_pythons")
def test_a_comparison_of_the_tree_with_itself_is_refused(tmp_path: Path) -> None:
    baseline.lend(tmp_path)
    with pytest.raises(RuntimeError, match=f"imports {REPOSITORY}/barnabas/__init__.py, which is not below"):
        baseline.ensure_own_code(tmp_path)


def test_ratios_are_those_within_the_rounds_and_leave_out_what_one_program_lacks() -> None:
    old = [{"rate": 10.0, "gone": 1.0}, {"rate": 20.0, "gone": 1.0}, {"rate": 40.0, "gone": 1.0}]
    new = [{"rate": 20.0}, {"rate": 20.0}, {"rate": 20.0}]
    table = baseline.render({"baseline: a": old, "working tree: a": new, "baseline: b": old, "working tree: c": new})
    assert table.splitlines()[2:] == ["| a | rate | 20 | 20 | **1.00** (0.50 - 2.00) |"]


def test_every_second_round_begins_with_the_other_one_and_a_whole_name_means_one_line() -> None:
    assert [list(in_turn("ab", number)) for number in range(3)] == [["a", "b"], ["b", "a"], ["a", "b"]]
    assert chosen(["partitions 1", "partitions 10"], "partitions 1") == ["partitions 1"]
    assert chosen(["partitions 1", "partitions 10"], "partitions") == ["partitions 1", "partitions 10"]


@needs_compiler
def test_every_request_whose_cost_is_measured_gets_its_right_answer(
    programs: Programs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(costs, "TOPICS", 20)
    system = Barnabas(costs.SETTINGS, kernel="python")
    with system.start(tmp_path) as running:
        found = costs.Costs(programs, list(costs.REQUESTS), 0.05).measure(Round(system, running, tmp_path, 0.05))
    assert list(found) == list(costs.REQUESTS)
    assert all(columns["p50_us"] > 0 for columns in found.values())


def test_a_result_that_is_kept_has_its_name_date_and_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(result_files, "RESULTS", tmp_path)
    parser = argparse.ArgumentParser()
    result_files.add_json_option(parser, "client")
    options = parser.parse_args(["--keep"])
    result_files.write_result(options.json, "benchmarks.client", options, {"a": [{"rate": 1.0}]})
    (kept,) = tmp_path.iterdir()
    assert re.fullmatch(r"client-\d{4}-\d\d-\d\d-\d+-cores\.json", kept.name)
    assert json.loads(kept.read_text())["options"] == {}


def test_rates_of_the_spark_lines_are_shown_with_the_cpu_of_both_sides() -> None:
    columns = {"rows_per_s": 10.0, "spark_us_per_row": 2.0, "broker_us_per_row": 3.0}
    table = pipeline.table({"parquet": [columns], "write by barnabas": [{**columns, "rows_per_s": 5.0}]})
    assert table.splitlines()[-1] == "| write by barnabas | 5 (5 to 5) | 0.50 | 2.00 | 3.00 |"
