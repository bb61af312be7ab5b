"""Findings of axe-core about the page that a browser shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from tests.support.browser.chromium import Browser

_AXE = Path(__file__).parent / "vendor" / "axe.min.js"
_RUN = """
const done = arguments[arguments.length - 1];
axe.run(document, {resultTypes: ["violations"]})
    .then((found) => done(found.violations), (error) => done(String(error)));
"""


class Finding(NamedTuple):
    """A rule that elements of a page break. `impact`: minor, moderate, serious or critical."""

    impact: str
    rule: str
    elements: tuple[str, ...]


def findings(browser: Browser) -> list[Finding]:
    """Check the page with all rules that axe has on by default."""
    if not browser.run("return typeof axe === 'object'"):
        browser.run(_AXE.read_text())
    found: list[dict[str, Any]] | str = browser.driver.execute_async_script(_RUN)
    assert isinstance(found, list), found
    return [
        Finding(
            each["impact"],
            f"{each['id']}: {each['help']}",
            tuple(f"{node['html']}: {node['failureSummary']}" for node in each["nodes"][:3]),
        )
        for each in found
    ]
