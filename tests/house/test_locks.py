"""requirements/*.txt: the requirements of pyproject.toml, pinned with hashes, without index addresses."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

REPOSITORY = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
WANTED = {
    "run": PROJECT["project"]["dependencies"],
    "build": PROJECT["build-system"]["requires"],
    "dev": PROJECT["project"]["dependencies"] + PROJECT["project"]["optional-dependencies"]["dev"],
}


def entries(lock: str) -> list[str]:
    """Return one text per locked package, with its continuation lines joined."""
    text = (REPOSITORY / "requirements" / f"{lock}.txt").read_text()
    return text.replace("\\\n", " ").splitlines()


def versions(lock: str) -> dict[str, Version]:
    pins = (re.match(r"([A-Za-z0-9._-]+)==([^ ;]+)", entry) for entry in entries(lock))
    return {canonicalize_name(pin[1]): Version(pin[2]) for pin in pins if pin}


@pytest.mark.parametrize("lock", WANTED)
def test_every_dependency_is_locked_inside_its_range(lock: str) -> None:
    locked = versions(lock)

    for requirement in map(Requirement, WANTED[lock]):
        assert locked[canonicalize_name(requirement.name)] in requirement.specifier, f"{requirement}: run `make lock`"


@pytest.mark.parametrize("lock", WANTED)
def test_every_entry_is_an_exact_version_with_hashes_and_nothing_else(lock: str) -> None:
    for entry in entries(lock):
        assert re.fullmatch(r"[a-z0-9._-]+==[^ ;]+( *;[^-]+)?( +--hash=sha256:[0-9a-f]{64})+ *", entry), entry[:80]


@pytest.mark.parametrize("lock", ["run", "build"])
def test_the_image_gets_the_versions_that_the_tests_ran_with(lock: str) -> None:
    assert versions(lock).items() <= versions("dev").items()
