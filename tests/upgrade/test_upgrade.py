"""Every released version's directory opens with this code, with everything that was in it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from barnabas import __version__
from barnabas.broker.metadata.directories.report import BARNABAS
from barnabas.commands.doctor.directory import DirectoryDoctor
from tests.support.daemon import start_daemon
from tests.upgrade.fixtures import DATA, SETTINGS, contents, metadata, unpack

VERSIONS = sorted(path.stem for path in DATA.glob("*.json"))
_MOST_BYTES = 200_000


def _expected(version: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / f"{version}.json").read_text())
    return found


def test_the_directory_of_this_version_is_kept() -> None:
    assert __version__ in VERSIONS, "write it: python -m tests.upgrade.fixtures"
    assert all((DATA / f"{version}.tar.gz").stat().st_size < _MOST_BYTES for version in VERSIONS)


@pytest.mark.parametrize("version", VERSIONS)
async def test_a_directory_of_a_released_version_opens_with_all_that_was_in_it(version: str, tmp_path: Path) -> None:
    expected = _expected(version)
    directory = unpack(version, tmp_path)
    assert not DirectoryDoctor([directory], None).stops(BARNABAS)

    with start_daemon(tmp_path, *(f"{name}={value}" for name, value in SETTINGS.items())) as daemon:
        found = await contents(daemon.bootstrap)

    found |= metadata(directory)
    assert json.loads(json.dumps(found)) == expected
