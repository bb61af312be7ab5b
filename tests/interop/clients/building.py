"""Builds drivers in other languages once, into a cache outside of the repository, from locked versions.

    ~/.cache/barnabas/clients/<what>-<hash of its sources>/        ($XDG_CACHE_HOME instead of ~/.cache if set)

Java is required where `make interop` requires it; without Go, Node or kcat their tests are skipped with a reason.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.support.interop import need_commands, require_or_skip
from tests.support.kafka.apache_kafka import need_kafka
from tests.support.kafka.jars import cache_directory

BUILD_TIMEOUT_S = 300
HERE = Path(__file__).parent
_TAIL_CHARACTERS = 2000
_SMALL_JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


def kcat() -> list[str]:
    """Return the command of the Python program that runs kcat for each request."""
    _need("kcat", "kcat")
    return [sys.executable, "-m", "tests.interop.clients.python.kcat"]


def kcat_secure() -> list[str]:
    """Return the command of the Python program that runs kcat with a login."""
    _need("kcat", "kcat")
    return [sys.executable, "-m", "tests.interop.clients.python.kcat_secure"]


def kcat_member() -> list[str]:
    """Return the command of a group member on kcat."""
    _need("kcat", "kcat")
    return [sys.executable, "-m", "tests.support.groups.group_member", "kcat"]


def java(version: str, program: str = "Driver") -> list[str]:
    """Return the command of the Java driver, or group member, on this version of Kafka's client."""
    need_commands("java", "javac")
    jars = need_kafka(version)
    sources = sorted((HERE / "java").glob("*.java"))

    def build(directory: Path) -> None:
        _run(["javac", "-nowarn", "-cp", f"{jars}/*", "-d", str(directory), *map(str, sources)])

    classes = _built(f"java-{version}", sources, build)
    return ["java", *_SMALL_JVM, "-cp", f"{classes}:{jars}/*", program]


def go(client: str) -> list[str]:
    """Return the command of a Go driver."""
    _need("go", client)
    sources = sorted((HERE / "go").rglob("*.*"))

    def build(directory: Path) -> None:
        _run(["go", "build", "-o", str(directory / client), f"./{client}"], HERE / "go")

    return [str(_built(f"go-{client}", sources, build) / client)]


def node(program: str = "driver") -> list[str]:
    """Return the command of the kafkajs driver, or group member."""
    _need("node", "kafkajs")
    _need("npm", "kafkajs")
    sources = [
        HERE / "node" / name
        for name in ("driver.js", "transactions.js", "member.js", "secure.js", "package.json", "package-lock.json")
    ]

    def build(directory: Path) -> None:
        for source in sources:
            shutil.copy(source, directory)
        _run(["npm", "ci", "--no-audit", "--no-fund"], directory)

    return ["node", str(_built("node", sources, build) / f"{program}.js")]


def _need(command: str, client: str) -> None:
    if shutil.which(command) is None:
        pytest.skip(f"not on the PATH: {command}, which the tests of {client} need")


def _built(what: str, sources: Sequence[Path], build: Callable[[Path], None]) -> Path:
    """Return the folder of the program built from these sources.

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


def _run(command: Sequence[str], directory: Path | None = None) -> None:
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, timeout=BUILD_TIMEOUT_S, check=False)
    if done.returncode:
        said = (done.stdout + done.stderr)[-_TAIL_CHARACTERS:]
        require_or_skip(f"{' '.join(command)} ended with {done.returncode}: {said}")
