"""The pages of pipeline stats and whatif in a real browser: nothing is cut off, and bars can be told apart."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from barnabas.pipeline.jobs.stats_page import stats_page
from barnabas.pipeline.jobs.whatif_report import whatif_page
from tests.pipeline.jobs.test_report_pages import stats_report, whatif_report
from tests.support.browser.chromium import Browser

WIDTH = 1200
ALIKE = [f"com.example.production.orders-service.events-{number}" for number in range(12)]
WHATIF = replace(whatif_report(*ALIKE, "x" * 249), settings="retention.ms=604800000, cleanup.policy=compact,delete")

WIDER = """
return [...document.querySelectorAll(".scroll")]
  .filter((each) => each.checkVisibility() && each.scrollWidth > each.clientWidth)
  .map((each) => `${each.getAttribute("aria-label")}: ${each.scrollWidth} in ${each.clientWidth}`);
"""


@pytest.mark.parametrize("page", [stats_page(stats_report("x" * 249)), whatif_page(WHATIF)], ids=["stats", "whatif"])
def test_nothing_of_a_page_is_cut_off_at_1200_pixels(browser: Browser, page: str, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(page)
    browser.resize(WIDTH, 900)
    browser.open(file.as_uri())
    browser.wait("document.querySelectorAll('.plot canvas').length >= 2")
    assert browser.run("return document.documentElement.scrollWidth") <= WIDTH
    assert browser.run(WIDER) == []
    assert browser.run("return document.querySelectorAll('dd').length") == 4


def test_labels_that_begin_alike_are_told_apart(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(whatif_page(WHATIF))
    browser.open(file.as_uri())
    labels = browser.run("return shortened(arguments[0])", ALIKE)
    assert labels[11] == "com.exam…rvice.events-11"
    assert len(set(labels)) == len(ALIKE)
    middles = [f"{'a' * 20}{number}{'b' * 20}" for number in range(3)]
    assert browser.run("return shortened(arguments[0])", middles)[2] == f"3: {'a' * 8}…{'b' * 15}"
