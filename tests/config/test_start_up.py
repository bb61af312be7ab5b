"""What importing the configuration must not bring in: a broker starts in 0.2 s, most of it other people's imports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
LAZY = (
    "asyncio",
    "barnabas.config.document",
    "barnabas.config.tables.unserved",
    "cryptography",
    "difflib",
    "socket",
    "ssl",
)


def modules_after(statement: str) -> set[str]:
    printed = subprocess.run(
        [sys.executable, "-c", f"import sys\n{statement}\nprint(*sys.modules)"],
        check=True,
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        timeout=60,
    ).stdout
    return set(printed.split())


def test_only_what_a_start_needs_is_imported() -> None:
    loaded = modules_after(
        "import barnabas.config\n"
        "config = barnabas.config.load(environ={'BARNABAS_NUM_PARTITIONS': '2'}, overrides=['log.dirs=data'])\n"
        "config.log_config.with_overrides({'segment.bytes': '16384'})\n"
    )

    assert loaded.isdisjoint(LAZY)


def test_the_list_of_unserved_names_is_imported_with_the_first_of_them() -> None:
    loaded = modules_after("import barnabas.config\nbarnabas.config.load(overrides=['num.io.threads=8'])")

    assert "barnabas.config.tables.unserved" in loaded
    assert "difflib" not in loaded
