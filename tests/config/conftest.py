"""What the tests of the configuration share: a file with some lines, and a loader that takes keyword arguments."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

WriteFile = Callable[..., Path]


@pytest.fixture
def in_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory of the test: files are then named without a path of this machine."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def write_file(in_tmp: Path) -> WriteFile:
    """`write_file("a=1", "b=2")` makes server.properties with these lines and answers its relative path."""

    def write(*lines: str) -> Path:
        path = Path("server.properties")
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return path

    return write
