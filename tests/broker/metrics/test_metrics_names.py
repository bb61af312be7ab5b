"""Metric declarations follow promtool's rules, and the page about them is current."""

from __future__ import annotations

import re

import pytest

from barnabas.broker.metrics import document
from barnabas.broker.metrics.family import LABELS, PREFIX, Family
from barnabas.broker.metrics.registry import COLLECTORS, make_registry
from barnabas.broker.metrics.state import BrokerState
from barnabas.broker.probes import BrokerProbes

FAMILIES = [family for collector in COLLECTORS for family in collector.families]
BUILD_INFO_LABELS = {"version", "kernel"}
ABBREVIATED_UNITS = re.compile(r"_(ms|us|ns|s|sec|msec|millis|milliseconds|minutes|hours|kb|mb|kib|mib|kilobytes)(_|$)")

each_family = pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)


@each_family
def test_names_are_lower_case_and_carry_the_prefix(family: Family) -> None:
    assert re.fullmatch(rf"{PREFIX}[a-z]+(_[a-z]+)*", family.name)


@each_family
def test_counters_end_in_total_and_nothing_else_does(family: Family) -> None:
    assert family.name.endswith("_total") == (family.kind == "counter")


@each_family
def test_units_are_base_units_and_histograms_name_theirs(family: Family) -> None:
    assert not ABBREVIATED_UNITS.search(family.name)
    if family.kind in ("histogram", "summary"):
        assert family.name.endswith("_seconds")
    if family.kind == "histogram":
        assert list(family.bounds) == sorted(set(family.bounds))
    else:
        assert not family.bounds


@each_family
def test_labels_come_from_the_list_in_the_design(family: Family) -> None:
    allowed = BUILD_INFO_LABELS if family.name.endswith("_info") else LABELS
    assert set(family.labels) <= allowed


@each_family
def test_names_do_not_repeat_their_type_or_a_label(family: Family) -> None:
    words = family.name.removeprefix(PREFIX).split("_")
    assert not {"gauge", "counter", "histogram", "summary"} & set(words)


@each_family
def test_help_is_a_sentence(family: Family) -> None:
    assert re.fullmatch(r"[A-Z0-9].{9,}\.", family.help)
    assert "|" not in family.help


def test_no_name_is_declared_twice() -> None:
    names = [family.name for family in FAMILIES]
    assert len(names) == len(set(names))


def test_a_scrape_renders_exactly_what_is_declared() -> None:
    rendered = {
        (metric.name + "_total" * (metric.type == "counter"), metric.type, metric.documentation)
        for metric in make_registry(BrokerProbes(), BrokerState()).collect()
        if not metric.name.startswith("process_")
    }
    assert rendered == {(family.name, family.kind, family.help) for family in FAMILIES}


def test_the_page_about_metrics_is_current() -> None:
    assert document.main(["--check"]) == 0, "run `python -m barnabas.broker.metrics.document --write`"


def test_check_notices_a_page_that_is_not_current(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path_factory.mktemp("docs") / "metrics.md"
    monkeypatch.setattr(document, "PAGE", page)
    assert document.main(["--check"]) == 1
    document.main(["--write"])
    assert document.main(["--check"]) == 0
    page.write_text(page.read_text().replace("barnabas_ready", "barnabas_reday"))
    assert document.main(["--check"]) == 1
    assert "is not current" in capsys.readouterr().err
