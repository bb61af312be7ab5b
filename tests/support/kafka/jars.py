"""Apache Kafka's jars by Maven coordinates, in a cache outside of the repository.

    ~/.cache/barnabas/kafka/<version>/*.jar        ($XDG_CACHE_HOME instead of ~/.cache if set)

A version is fetched into a temporary folder and renamed, so an existing folder is complete, and several test runs may
fetch together. `fetch` raises an error with the reason; tests then call `require_or_skip`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
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
_WITH_DEFINITIONS = (
    "kafka-clients",
    "kafka-group-coordinator",
    "kafka-metadata",
    "kafka-raft",
    "kafka-share-coordinator",
    "kafka-storage",
    "kafka-transaction-coordinator",
)
Coordinate = tuple[str, str, str]
"""Group, artifact, version."""

SPARK_VERSION = "4.2.0"
_SPARK_CONNECTOR: tuple[Coordinate, ...] = (
    ("org.apache.spark", "spark-sql-kafka-0-10_2.13", SPARK_VERSION),
    ("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),  # later versions are missing in some mirrors
    ("org.apache.kafka", "kafka-clients", "3.9.2"),
    ("org.apache.commons", "commons-pool2", "2.12.1"),
)


_ALONE = "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"


class FetchError(Exception):
    """The jars could not be fetched; the message ends with Maven's output."""


def cache_directory() -> Path:
    """Return the folder of fetched versions."""
    root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(root) / "barnabas" / "kafka"


def fetch(version: str) -> Path:
    """Return the folder with a version's jars, fetched if necessary. Raises FetchError."""
    coordinates = [(group, artifact, number.format(version=version)) for group, artifact, number in _COORDINATES]
    return _fetch(version, coordinates, whole_with=coordinates[:2], with_theirs=True)


def fetch_shell(version: str) -> Path:
    """As `fetch`, for kafka-metadata-shell, in a separate folder because of another jline version.

    Raises FetchError.
    """
    coordinates = [("org.apache.kafka", "kafka-shell", version), *_COORDINATES[2:]]
    return _fetch(f"{version}-shell", coordinates, whole_with=coordinates[:1], with_theirs=True)


def fetch_applications(version: str) -> Path:
    """Return the folder with the jars of Kafka Streams and of a Connect worker with file connectors.

    Raises FetchError.
    """
    coordinates = [
        ("org.apache.kafka", "kafka-streams", version),
        ("org.apache.kafka", "connect-runtime", version),
        ("org.apache.kafka", "connect-file", version),
        *_COORDINATES[2:],
    ]
    return _fetch(f"{version}-applications", coordinates, whole_with=coordinates[:3], with_theirs=True)


def fetch_mirror_maker(version: str) -> Path:
    """Return the folder with the jars of MirrorMaker 2. Raises FetchError."""
    coordinates = [
        ("org.apache.kafka", "connect-mirror", version),
        ("org.apache.kafka", "connect-runtime", version),
        *_COORDINATES[2:],
    ]
    return _fetch(f"{version}-mirror-maker", coordinates, whole_with=coordinates[:2], with_theirs=True)


def fetch_definitions(version: str) -> Path:
    """Return the folder with the jars that contain the JSON definitions of a version. Raises FetchError."""
    coordinates = [("org.apache.kafka", artifact, version) for artifact in _WITH_DEFINITIONS]
    return _fetch(f"{version}-definitions", coordinates, whole_with=coordinates, with_theirs=False)


def fetch_spark_connector() -> list[Path]:
    """Return the jars of Spark's Kafka connector, without those that Spark includes. Raises FetchError."""
    name = f"spark-{SPARK_VERSION}"
    folder = _fetch(name, _SPARK_CONNECTOR, whole_with=_SPARK_CONNECTOR, with_theirs=False)
    return [folder / _jar_name(artifact, number) for _, artifact, number in _SPARK_CONNECTOR]


def _fetch(
    name: str, coordinates: Sequence[Coordinate], *, whole_with: Sequence[Coordinate], with_theirs: bool
) -> Path:
    """Return the cache's folder `name`; `with_theirs` includes the dependencies of the artifacts."""
    wanted = cache_directory() / name
    if _is_whole(wanted, whole_with):
        return wanted
    wanted.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{name}.", dir=wanted.parent) as scratch:
        jars = Path(scratch) / "jars"
        _copy_dependencies(Path(scratch), jars, coordinates, with_theirs=with_theirs)
        if not _is_whole(jars, whole_with):
            raise FetchError(f"mvn did not fetch all jars of {name}: {sorted(path.name for path in jars.iterdir())}")
        if wanted.exists() and not _is_whole(wanted, whole_with):
            shutil.rmtree(wanted)
        try:
            os.rename(jars, wanted)
        except OSError as error:  # another run was faster
            if not _is_whole(wanted, whole_with):
                raise FetchError(f"cannot put {name} into {wanted}: {error}") from error
    return wanted


def _jar_name(artifact: str, number: str) -> str:
    return f"{artifact}-{number}.jar"


def _is_whole(directory: Path, coordinates: Sequence[Coordinate]) -> bool:
    return all((directory / _jar_name(artifact, number)).is_file() for _, artifact, number in coordinates)


def _copy_dependencies(scratch: Path, jars: Path, coordinates: Sequence[Coordinate], *, with_theirs: bool) -> None:
    dependencies = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
        f"<version>{number}</version>{'' if with_theirs else _ALONE}</dependency>"
        for group, artifact, number in coordinates
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
        raise FetchError(f"mvn did not fetch {coordinates[0][1]}: {error}") from error
    if done.returncode or not jars.is_dir():
        said = (done.stdout + done.stderr)[-_TAIL_CHARACTERS:]
        raise FetchError(f"mvn did not fetch {coordinates[0][1]} (exit {done.returncode}): {said}")
