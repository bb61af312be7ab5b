"""Software that tests build or install once, into a cache outside of the repository.

~/.cache/barnabas/clients/<what>-<hash of its sources>/        ($XDG_CACHE_HOME instead of ~/.cache if set)
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from tests.support.interop import require_or_skip
from tests.support.kafka.jars import cache_directory

BUILD_TIMEOUT_S = 900  # compilers and installers run at low priority, beside whatever else the machine does
_TAIL_CHARACTERS = 2000


def need(command: str, what_for: str) -> None:
    """Skip the test if the command is not on the PATH."""
    if shutil.which(command) is None:
        pytest.skip(f"not on the PATH: {command}, which the tests of {what_for} need")


def build_folder(what: str) -> Path:
    """Return a folder of the cache for what may be left from an earlier build, such as compiled dependencies."""
    folder = cache_directory().parent / "clients" / what
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def built(what: str, sources: Sequence[Path], build: Callable[[Path], None]) -> Path:
    """Return the folder of what was built from these sources.

    It is built in a temporary folder and renamed, so that an existing folder is complete.
    """
    digest = hashlib.sha256(b"\0".join(source.read_bytes() for source in sources)).hexdigest()[:16]
    root = cache_directory().parent / "clients"
    wanted = root / f"{what}-{digest}"
    if wanted.exists():
        return wanted
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{what}.", dir=root) as scratch:
        directory = Path(scratch) / "built"
        directory.mkdir()
        build(directory)
        try:
            os.rename(directory, wanted)
        except OSError:  # another run was faster
            assert wanted.exists()
    return wanted


def run_step(
    command: Sequence[str],
    directory: Path | None = None,
    *,
    timeout_s: float = BUILD_TIMEOUT_S,
    environ: Mapping[str, str] | None = None,
) -> str:
    """Run a step of a build, and return its output; if it fails, end the test by `require_or_skip`."""
    done = subprocess.run(
        command,
        cwd=directory,
        env=None if environ is None else {**os.environ, **environ},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    if done.returncode:
        said = (done.stdout + done.stderr)[-_TAIL_CHARACTERS:]
        require_or_skip(f"{' '.join(command)} ended with {done.returncode}: {said}")
    return done.stdout


def installed_packages(requirements: Path) -> Path:
    """Return a folder for PYTHONPATH with these Python packages, which are not in the development environment."""

    def install(directory: Path) -> None:
        options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--root-user-action", "ignore"]
        run_step(
            [sys.executable, "-m", "pip", "install", *options, "--target", str(directory), "-r", str(requirements)]
        )

    return built(f"python-{requirements.stem}", [requirements], install)
