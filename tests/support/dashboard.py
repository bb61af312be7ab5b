"""The Grafana dashboard in config/grafana, and its queries with variables filled in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.support.daemon import REPOSITORY

FOLDER = REPOSITORY / "config" / "grafana"

_VARIABLES = {"$__rate_interval": "10s", "$topic": ".*", "$group": ".*"}


class Query(NamedTuple):
    """One query of a panel."""

    panel: str
    expression: str


def dashboard() -> dict[str, Any]:
    """Return the dashboard's JSON."""
    found: dict[str, Any] = json.loads((FOLDER / "dashboards" / "barnabas.json").read_text())
    return found


def panels() -> list[dict[str, Any]]:
    """Return all panels except rows."""
    return [panel for panel in dashboard()["panels"] if panel["type"] != "row"]


def queries() -> Iterator[Query]:
    """Return all queries, as Grafana would send them with every topic and group selected."""
    for panel in panels():
        for target in panel["targets"]:
            expression = target["expr"]
            for name, value in _VARIABLES.items():
                expression = expression.replace(name, value)
            assert "$" not in expression, f"{panel['title']}: a variable that nobody fills in: {expression}"
            yield Query(panel["title"], expression)


def metric_names(expression: str) -> set[str]:
    """Return the metrics in a query."""
    return set(re.findall(r"\b(?:barnabas|process)_[a-z_]+", re.sub(r'"[^"]*"', "", expression)))
