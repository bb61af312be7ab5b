"""Virtual environments of Python software under test, apart from the development environment."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.support.building import built, run_step


def virtual_environment(name: str, requirements: Path) -> Path:
    """Return a virtual environment with these packages, made if necessary."""

    def install(directory: Path) -> None:
        run_step([sys.executable, "-m", "venv", str(directory)])
        pip = ["nice", str(directory / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-deps"]
        run_step([*pip, "--disable-pip-version-check", "--requirement", str(requirements)])

    return built(f"venv-{name}", [requirements], install)
