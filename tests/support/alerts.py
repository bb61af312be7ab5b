"""The alert rules in config/alerts.yml."""

from __future__ import annotations

import re
from typing import NamedTuple

from tests.support.daemon import REPOSITORY

RULES = REPOSITORY / "config" / "alerts.yml"
TESTS = REPOSITORY / "config" / "alerts_test.yml"


class Alert(NamedTuple):
    """One rule. `text` has its annotations."""

    name: str
    expression: str
    severity: str
    text: str


def alerts() -> list[Alert]:
    """Return all rules, which the file has in one layout."""
    found = []
    for block in re.split(r"^      - alert: ", RULES.read_text(), flags=re.MULTILINE)[1:]:
        name, rest = block.split("\n", 1)
        head, text = rest.split("        annotations:\n")
        parts = re.fullmatch(
            r"        expr: >-\n          (.+)\n(?:        for: \d+m\n)?        labels:\n          severity: (\w+)\n",
            head,
        )
        assert parts is not None, f"{name} is not laid out as the others"
        found.append(Alert(name, parts[1], parts[2], " ".join(text.split())))
    return found
