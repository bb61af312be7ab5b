"""Directories that `barnabas security init` creates."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from barnabas.commands.main import main
from barnabas.config.properties_file import parse_properties


def init(directory: Path, *options: str) -> tuple[int, str]:
    """Run the command; return its exit code and output."""
    result = CliRunner().invoke(main, ["security", "init", str(directory), *options])
    return result.exit_code, result.output


def entries(path: Path) -> dict[str, str]:
    """Return the properties of a file."""
    return {entry.key: entry.value for entry in parse_properties(path.read_text())}


@pytest.fixture(scope="module")
def created(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a new directory for a broker at 127.0.0.1. Import it by name."""
    directory = tmp_path_factory.mktemp("development") / "secure"
    code, output = init(directory, "--host", "127.0.0.1")
    assert code == 0, output
    return directory
