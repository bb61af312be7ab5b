"""The helpers and tests of docs/testing.md in other languages, as they are printed there, each run by its own tools.

A block of code whose first line is a comment with a path is a file of the example of its language. The folders beside
this file have the projects around them, with locked versions.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from tests.support.daemon import REPOSITORY
from tests.support.interop import need_commands, require_or_skip
from tests.support.kafka.jars import cache_directory

# The first run fetches and compiles the clients.
pytestmark = pytest.mark.timeout(900)

HERE = Path(__file__).parent
PAGE = REPOSITORY / "docs" / "testing.md"
STEP_TIMEOUT_S = 800
FOLDERS = {"java": "java", "go": "go", "js": "node", "rust": "rust"}
_FILE = re.compile(r"^```(\w+)\n// (\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_NOT_FETCHED = re.compile(r"Could not (resolve|transfer|find artifact)|PluginResolutionException", re.IGNORECASE)
_TAIL_CHARACTERS = 3000


def printed_files() -> dict[str, dict[Path, str]]:
    """Return the files in docs/testing.md: text by path, by folder of this directory."""
    files: dict[str, dict[Path, str]] = {}
    for language, name, text in _FILE.findall(PAGE.read_text()):
        files.setdefault(FOLDERS[language], {})[Path(name)] = text
    return files


@pytest.fixture
def project(tmp_path: Path) -> Callable[[str], Path]:
    """Return a function that writes the project of a language and returns its folder."""

    def write(folder: str) -> Path:
        directory = Path(shutil.copytree(HERE / folder, tmp_path / folder))
        for name, text in printed_files()[folder].items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return directory

    return write


@pytest.fixture
def started(tmp_path: Path) -> Path:
    """Return a file to which each `barnabas` of `environ` appends its process id."""
    return tmp_path / "started"


@pytest.fixture
def environ(tmp_path: Path, started: Path) -> Mapping[str, str]:
    """Return the environment of the tools: the first `barnabas` on the PATH is the one of this repository."""
    folder = tmp_path / "bin"
    folder.mkdir()
    command = folder / "barnabas"
    command.write_text(
        f'#!/bin/sh\necho $$ >>"{started}"\nexport PYTHONPATH="{REPOSITORY}"\n'
        f'exec "{sys.executable}" -m barnabas "$@"\n'
    )
    command.chmod(0o755)
    return {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def run(command: Sequence[str], directory: Path, environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=directory,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=STEP_TIMEOUT_S,
        check=False,
    )


def fetch(command: Sequence[str], directory: Path, environ: Mapping[str, str]) -> None:
    """Fetch what the project depends on; without it there is no test."""
    done = run(command, directory, environ)
    if done.returncode:
        require_or_skip(f"{' '.join(command)} ended with {done.returncode}: {done.stdout[-_TAIL_CHARACTERS:]}")


def assert_passed(done: subprocess.CompletedProcess[str], expected: str, started: Path) -> None:
    """Assert that the tools ran this test, that it passed, and that its broker has ended."""
    said = done.stdout[-_TAIL_CHARACTERS:]
    assert done.returncode == 0, said
    assert re.search(expected, done.stdout), said
    (pid,) = started.read_text().split()
    assert not Path("/proc", pid).exists(), f"the broker {pid} outlives the test"


def need(command: str) -> None:
    if shutil.which(command) is None:
        pytest.skip(f"not on the PATH: {command}, which this example needs")


def test_the_page_has_a_helper_and_a_test_for_each_language() -> None:
    assert {folder: [str(name) for name in files] for folder, files in printed_files().items()} == {
        "java": ["src/test/java/Barnabas.java", "src/test/java/OrdersTest.java"],
        "go": ["barnabas_test.go", "orders_test.go"],
        "node": ["barnabas.mjs", "orders.test.mjs"],
        "rust": ["tests/barnabas/mod.rs", "tests/orders.rs"],
    }


def test_the_junit_example_passes(project: Callable[[str], Path], environ: Mapping[str, str], started: Path) -> None:
    need_commands("java", "mvn")

    done = run(["mvn", "-B", "-ntp", "test"], project("java"), environ)

    if done.returncode and _NOT_FETCHED.search(done.stdout):
        require_or_skip(f"Maven cannot fetch what the example needs: {done.stdout[-_TAIL_CHARACTERS:]}")
    assert_passed(done, r"Tests run: 1, Failures: 0, Errors: 0, Skipped: 0", started)


def test_the_go_example_passes(project: Callable[[str], Path], environ: Mapping[str, str], started: Path) -> None:
    need("go")
    directory = project("go")
    fetch(["go", "mod", "download"], directory, environ)

    done = run(["go", "test", "-v", "./..."], directory, environ)

    assert_passed(done, r"--- PASS: TestOrdersArrive", started)


def test_the_node_example_passes(project: Callable[[str], Path], environ: Mapping[str, str], started: Path) -> None:
    need("node")
    need("npm")
    directory = project("node")
    fetch(["npm", "ci", "--no-audit", "--no-fund"], directory, environ)

    done = run(["node", "--test", "--test-reporter", "tap"], directory, environ)

    assert_passed(done, r"ok 1 - orders arrive", started)


def test_the_rust_example_passes(project: Callable[[str], Path], environ: Mapping[str, str], started: Path) -> None:
    need("cargo")
    directory = project("rust")
    (directory / "lib.rs").touch()
    cache = cache_directory().parent / "clients"
    # Cargo's lock names the address of an index, so it is kept beside what it locks instead of in the repository.
    locked = cache / "rust-example.lock"
    if locked.exists():
        shutil.copy(locked, directory / "Cargo.lock")
    fetch(["cargo", "fetch", "--quiet"], directory, environ)
    cache.mkdir(parents=True, exist_ok=True)
    shutil.copy(directory / "Cargo.lock", locked)
    compiled = {**environ, "CARGO_TARGET_DIR": str(cache / "rust-example")}

    done = run(["cargo", "test", "--locked", "--offline"], directory, compiled)

    assert_passed(done, r"test orders_arrive \.\.\. ok", started)
