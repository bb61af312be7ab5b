"""The generated files: current, complete, and a server.properties that can be used as it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.config import BROKER_PROPERTIES, TOPIC_PROPERTIES, document, load
from barnabas.config.properties_file import parse_properties
from barnabas.config.tables import unserved

REPOSITORY = Path(__file__).parents[2]


def uncommented() -> list[str]:
    """The settings of the shipped file as if somebody had taken away every #."""
    lines = (REPOSITORY / "config" / "server.properties").read_text(encoding="utf-8").splitlines()
    return [line[1:] for line in lines if line.startswith("#") and not line.startswith(("# ", "##")) and "=" in line]


def test_the_written_files_are_current(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)

    assert document.main(["--check"]) == 0


def test_a_stale_or_missing_file_is_named_and_fails_the_check(in_tmp: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (in_tmp / "docs").mkdir()
    (in_tmp / "config").mkdir()
    assert document.main(["--write"]) == 0
    assert document.main(["--check"]) == 0

    (in_tmp / document.PAGE).write_text("stale")
    (in_tmp / document.SERVER_PROPERTIES).unlink()

    assert document.main(["--check"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "docs/configuration.md is not current: run `make docs`",
        "config/server.properties is not current: run `make docs`",
    ]


def test_the_page_is_printed_without_arguments_and_other_arguments_are_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert document.main([]) == 0
    assert capsys.readouterr().out == document.render_page()
    assert document.main(["--nonsense"]) == 2


def test_the_page_has_every_property_served_or_not() -> None:
    page = document.render_page()

    for name in [*BROKER_PROPERTIES, *TOPIC_PROPERTIES]:
        assert f"| `{name}` |" in page
    for name in [*unserved.UNSERVED_PROPERTIES, *unserved.UNSERVED_TOPIC_PROPERTIES]:
        assert f"`{name}`" in page


def test_the_shipped_file_has_every_property_of_the_broker_in_order_and_all_commented_out() -> None:
    names = [entry.key for line in uncommented() for entry in parse_properties(line)]

    assert names == list(BROKER_PROPERTIES)
    assert parse_properties((REPOSITORY / "config" / "server.properties").read_text(encoding="utf-8")) == []


def test_each_line_of_the_shipped_file_has_the_default() -> None:
    for line in uncommented():
        name = line.split("=")[0]
        config = load(overrides=[line])
        default = BROKER_PROPERTIES[name].default
        if default is not None:
            assert config.get(name) == default, name
        assert config.unserved == {}


def test_the_shipped_file_with_everything_uncommented_loads() -> None:
    config = load(overrides=uncommented())

    assert config.node_id == 1
    assert config.retention_ms == 604800000
    assert config.warnings == ()


def test_only_properties_without_a_default_have_examples() -> None:
    assert set(document.EXAMPLES) == {name for name, known in BROKER_PROPERTIES.items() if known.default is None}
