"""The example of docs/storage-format.md: its commands, run as written, produce the documented bytes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.daemon import start_daemon

REPOSITORY = Path(__file__).resolve().parents[2]
EXAMPLE = (REPOSITORY / "docs" / "storage-format.md").read_text().partition("## An example")[2]


@pytest.fixture(scope="module")
def partition(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory `orders-0` after the commands and a clean shutdown."""
    serve, *commands = re.findall(r"^    (.*)$", EXAMPLE.partition("`orders-0/` then holds")[0], flags=re.MULTILINE)
    assert serve.startswith("barnabas serve")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with start_daemon(tmp_path_factory.mktemp("example")) as daemon:
        environ = {**os.environ, "PATH": path, "BARNABAS_BOOTSTRAP": daemon.bootstrap}
        subprocess.run(["bash", "-euo", "pipefail", "-c", "\n".join(commands)], env=environ, timeout=100, check=True)
        data = daemon.data_directory
    return data / "orders-0"


def test_the_files_have_the_sizes_that_the_page_tells(partition: Path) -> None:
    sentence = " ".join(EXAMPLE.partition("then holds (bytes, name):")[2].partition(".\n\n")[0].split())
    told = {name: int(size) for size, name in re.findall(r"(\d+) `([^`]+)`", sentence)}

    found = {path.name: path.stat().st_size for path in partition.iterdir()}

    assert found == {
        name if not name.startswith(".") else f"{0:020d}{name}": size for name, size in told.items()
    }  # `.log` is the only segment's


def test_the_first_batch_has_the_bytes_that_the_table_explains(partition: Path) -> None:
    rows = re.findall(r"^\| (\d+) \| `([0-9a-f ]+)` \|", EXAMPLE, flags=re.MULTILINE)
    log = (partition / f"{0:020d}.log").read_bytes()

    assert len(rows) == 18
    for position, digits in rows:
        expected = bytes.fromhex(digits)
        assert log[int(position) : int(position) + len(expected)] == expected, position


def test_the_second_batch_is_the_dump_of_the_page(partition: Path) -> None:
    lines = re.findall(r"^    ([0-9a-f]{8}): ((?:[0-9a-f]+ )+)", EXAMPLE, flags=re.MULTILINE)
    log = (partition / f"{0:020d}.log").read_bytes()

    assert len(lines) == 6
    for position, digits in lines:
        expected = bytes.fromhex(digits)
        assert log[int(position, 16) :][: len(expected)] == expected, position
