"""`.ci/run` tries failed tests of other people's software once more, and names those that passed then."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

FAILS_ONCE = """
from pathlib import Path

def test_fails_once():
    seen = Path(__file__).with_suffix(".seen")
    if not seen.exists():
        seen.touch()
        assert False, "the program was late"
"""
FAILS = "def test_fails(): assert False, 'the program is wrong'\n"
PASSES = "def test_passes(): pass\n"
SKIPPED_THEN = """
from pathlib import Path
import pytest

def test_is_skipped_then():
    seen = Path(__file__).with_suffix(".seen")
    if seen.exists():
        pytest.skip("the program has gone")
    seen.touch()
    assert False
"""


def second_try(directory: Path, *options: str, **files: str) -> subprocess.CompletedProcess[str]:
    """Run the tool on test files of its own, in a directory without the project's settings."""
    (directory / "pytest.ini").write_text("[pytest]\n")
    for name, text in files.items():
        (directory / f"test_{name}.py").write_text(text)
    command = [sys.executable, str(ROOT / "tools/second_try.py"), "kept", *options]
    variables = os.environ | {
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"
    }  # no other plugin is needed, and loading takes time
    return subprocess.run(
        command, cwd=directory, env=variables, capture_output=True, text=True, timeout=60, check=False
    )


def test_a_test_that_passes_alone_is_named_and_its_output_kept(tmp_path: Path) -> None:
    ended = second_try(tmp_path, once=FAILS_ONCE, good=PASSES)
    assert ended.returncode == 0, ended.stdout
    assert "FLAKY (failed, then passed alone): test_once.py::test_fails_once, see kept/test_once.py.txt" in ended.stdout
    assert ended.stdout.endswith("1 passed, 0 failed\n")
    assert "the program was late" in (tmp_path / "kept/test_once.py.txt").read_text()


@pytest.mark.parametrize(
    ("files", "options", "said"),
    [
        pytest.param({"bad": FAILS, "once": FAILS_ONCE}, (), "FAILED TWICE: test_bad.py::test_fails", id="twice"),
        pytest.param({"gone": SKIPPED_THEN}, (), "FAILED TWICE", id="skipped in the second try"),
        pytest.param({str(number): FAILS for number in range(5)}, (), "tests of 5 files failed: no second", id="many"),
        pytest.param({"broken": "import nothing_of_that_name\n"}, (), "1 error", id="cannot be imported"),
        pytest.param({"a": FAILS_ONCE, "b": PASSES}, ("--maxfail=1",), "stopping after 1 failures", id="interrupted"),
    ],
)
def test_what_is_no_accident_fails(files: dict[str, str], options: tuple[str, ...], said: str, tmp_path: Path) -> None:
    ended = second_try(tmp_path, *options, **files)
    assert ended.returncode != 0
    assert said in ended.stdout
