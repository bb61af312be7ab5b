"""Result of the client matrix as JSON, from which docs/compatibility.md is generated."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from tests.interop.clients.all_features import ALL_FEATURES
from tests.interop.clients.driver import Unsupported
from tests.interop.clients.features import Feature
from tests.interop.clients.programs import KNOWN_GAPS
from tests.interop.clients.target import Target

RESULT_VARIABLE = "BARNABAS_COMPATIBILITY_RESULT"
YES = "yes"
NO = "no"


class Matrix:
    """Client versions, and for each client and feature "yes", "no", or the reason why the client lacks the feature."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._clients: dict[str, str] = {}
        self._outcomes: dict[str, dict[str, str]] = {}

    def add_client(self, name: str, version: str) -> None:
        """Add a tested client."""
        self._clients[name] = version
        self._outcomes.setdefault(name, {})

    @contextmanager
    def outcome_of(self, client: str, feature: Feature) -> Iterator[None]:
        """Record whether the block succeeds."""
        gap = KNOWN_GAPS.get((client, feature.name))
        self._outcomes[client][feature.name] = NO if gap is None else f"{NO}: {gap}"
        try:
            yield
        except Unsupported as reason:
            self._outcomes[client][feature.name] = f"{reason}"
            raise
        self._outcomes[client][feature.name] = YES

    def write(self, path: Path) -> None:
        """Write the JSON document."""
        result = {
            "date": datetime.now(UTC).date().isoformat(),
            "broker": self._target.name,
            "broker_version": self._target.version,
            "features": {feature.name: feature.title for feature in ALL_FEATURES},
            "clients": self._clients,
            "outcomes": self._outcomes,
        }
        path.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def add_tools(path: Path, version: str, outcomes: Mapping[str, str]) -> None:
    """Add the results of Kafka's tools to a file with those of the clients."""
    result = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    result["tools_version"] = version
    result.setdefault("tools", {}).update(outcomes)
    path.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
