"""Apache Kafka's jars by Maven coordinates, in a cache outside of the repository.

    ~/.cache/barnabas/kafka/<version>/*.jar        ($XDG_CACHE_HOME in place of ~/.cache)

A version is fetched into a folder beside it and renamed, so a folder that is there is whole and several test runs may
fetch at once. `fetch` says why it failed; whoever needs the jars ends the test by `require_or_skip`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

FETCH_TIMEOUT_S = 600
_LOG4J_VERSION = "2.25.1"
_TAIL_CHARACTERS = 2000

_COORDINATES = (
    ("org.apache.kafka", "kafka_2.13", "{version}"),
    ("org.apache.kafka", "kafka-tools", "{version}"),
    ("org.apache.logging.log4j", "log4j-slf4j-impl", _LOG4J_VERSION),
    ("org.apache.logging.log4j", "log4j-core", _LOG4J_VERSION),
)


class FetchError(Exception):
    """The jars could not be fetched; the message ends with Maven's last words."""


def cache_directory() -> Path:
    """Where fetched versions are kept."""
    root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(root) / "barnabas" / "kafka"


def fetch(version: str) -> Path:
    """The folder with the jars of that version, fetched if it is not there. Raises FetchError."""
    wanted = cache_directory() / version
    if _is_whole(wanted, version):
        return wanted
    wanted.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{version}.", dir=wanted.parent) as scratch:
        jars = Path(scratch) / "jars"
        _copy_dependencies(Path(scratch), jars, version)
        if wanted.exists() and not _is_whole(wanted, version):
            shutil.rmtree(wanted)
        try:
            os.rename(jars, wanted)
        except OSError as error:  # another run was quicker
            if not _is_whole(wanted, version):
                raise FetchError(f"cannot put Kafka {version} into {wanted}: {error}") from error
    return wanted


def _is_whole(directory: Path, version: str) -> bool:
    names = [f"{artifact}-{number.format(version=version)}.jar" for _, artifact, number in _COORDINATES[:2]]
    return all((directory / name).is_file() for name in names)


def _copy_dependencies(scratch: Path, jars: Path, version: str) -> None:
    dependencies = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{number.format(version=version)}</version></dependency>"
        for group, artifact, number in _COORDINATES
    )
    (scratch / "pom.xml").write_text(
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>barnabas</groupId><artifactId>kafka-for-tests</artifactId><version>1</version>"
        f"<dependencies>{dependencies}</dependencies></project>"
    )
    command = ["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={jars}"]
    try:
        done = subprocess.run(
            command, cwd=scratch, capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise FetchError(f"mvn did not fetch Kafka {version}: {error}") from error
    if done.returncode or not _is_whole(jars, version):
        said = (done.stdout + done.stderr)[-_TAIL_CHARACTERS:]
        raise FetchError(f"mvn did not fetch Kafka {version} (exit {done.returncode}): {said}")
