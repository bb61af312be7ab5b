"""docs/compatibility.md matches the last run of the client matrix."""

from __future__ import annotations

import json

from tests.interop.clients.all_features import ALL_FEATURES
from tests.interop.clients.programs import CLIENTS
from tools.compatibility import PAGE, RESULT, main, render


def test_the_page_is_what_the_last_result_gives() -> None:
    assert main(["--check"]) == 0
    assert PAGE.read_text() == render(json.loads(RESULT.read_text()))


def test_the_last_result_has_every_client_and_every_feature() -> None:
    result = json.loads(RESULT.read_text())

    assert result["broker"] == "Barnabas"
    assert list(result["clients"]) == [client.name for client in CLIENTS]
    assert result["features"] == {feature.name: feature.title for feature in ALL_FEATURES}
    assert {tuple(found) for found in result["outcomes"].values()} == {tuple(result["features"])}


def test_a_failure_stands_out_and_what_a_client_lacks_is_said() -> None:
    page = render(
        {
            "broker": "Barnabas",
            "broker_version": "1",
            "date": "2026-01-01",
            "features": {"a": "produce", "b": "read", "c": "admin", "d": "lz4"},
            "clients": {"one": "1.2"},
            "outcomes": {"one": {"a": "yes", "b": "no", "c": "it has no admin calls", "d": "no: a known gap"}},
        }
    )

    assert "| produce | yes |\n| read | **no** |\n| admin | n/a [1] |\n| lz4 | **no** [2] |\n" in page
    assert "[2] one: a known gap." in page
    assert "[1] one: it has no admin calls." in page
