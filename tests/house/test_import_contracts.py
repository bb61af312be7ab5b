"""Imports between our modules: the contract `MayImport` on hand-written graphs, and no circles."""

from __future__ import annotations

import pytest
from grimp import ImportGraph

from tools.house_row import circles
from tools.import_contracts import MayImport

MODULES = ("ours", "ours.log", "ours.log.segment", "ours.logger", "ours.log.tools", "ours.bytes", "ours.daemon")


@pytest.fixture
def graph() -> ImportGraph:
    graph = ImportGraph()
    for module in MODULES:
        graph.add_module(module)
    graph.add_module("foreign", is_squashed=True)
    return graph


def findings(graph: ImportGraph, apart: list[str] | None = None) -> list[tuple[str, str]]:
    options: dict[str, object] = {"package": "ours.log", "allowed": ["ours.bytes"]}
    if apart is not None:
        options["apart"] = apart
    contract = MayImport(
        name="a row of the table",
        session_options={"root_packages": ["ours"]},
        contract_options=options,
    )
    found = contract.check(graph=graph, verbose=False)
    assert found.kept is (not found.metadata["findings"])
    return [(importer, imported) for importer, imported, _line in found.metadata["findings"]]


def add(graph: ImportGraph, importer: str, imported: str, statement: str | None = None) -> None:
    line = statement or f"import {imported}"
    graph.add_import(importer=importer, imported=imported, line_number=7, line_contents=line)


def test_a_package_may_import_itself_what_its_row_allows_and_other_peoples_packages(graph: ImportGraph) -> None:
    for imported in ("ours.log", "ours.bytes", "foreign"):
        add(graph, "ours.log.segment", imported)

    assert findings(graph) == []


def test_any_other_module_of_ours_is_a_finding_also_one_that_only_begins_with_an_allowed_name(
    graph: ImportGraph,
) -> None:
    add(graph, "ours.log.segment", "ours.daemon")
    add(graph, "ours.log", "ours.logger")
    add(graph, "ours.daemon", "ours.logger")

    assert findings(graph) == [("ours.log", "ours.logger"), ("ours.log.segment", "ours.daemon")]


def test_a_package_apart_has_its_own_row(graph: ImportGraph) -> None:
    add(graph, "ours.log.segment", "ours.daemon")
    add(graph, "ours.log.tools", "ours.daemon")

    assert findings(graph, apart=["ours.log.tools"]) == [("ours.log.segment", "ours.daemon")]


@pytest.mark.parametrize("statement", ["from ours.log._kernel import (", "from ours import __version__"])
def test_a_compiled_module_in_the_package_and_the_version_are_allowed_though_booked_on_the_root(
    graph: ImportGraph, statement: str
) -> None:
    add(graph, "ours.log.segment", "ours", statement)

    assert findings(graph) == []


@pytest.mark.parametrize(
    ("statement", "imported"),
    [
        ("from ours.daemon._fast import (", "ours.daemon._fast"),
        ("from ours import __version__, Daemon", "ours.Daemon"),
        ("import ours", "ours"),
    ],
)
def test_anything_else_that_is_booked_on_the_root_is_a_finding_by_the_name_in_its_text(
    graph: ImportGraph, statement: str, imported: str
) -> None:
    add(graph, "ours.log.segment", "ours", statement)

    assert findings(graph) == [("ours.log.segment", imported)]


def test_no_modules_import_each_other_not_even_late() -> None:
    assert circles() == []
