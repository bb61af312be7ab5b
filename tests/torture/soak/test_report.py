"""docs/reliability.md has the table of the kept results."""

from __future__ import annotations

from tests.torture.soak.report import PAGE, render, stored_results


def test_the_table_is_that_of_the_kept_results() -> None:
    assert render(stored_results()) in PAGE.read_text(encoding="utf-8")
