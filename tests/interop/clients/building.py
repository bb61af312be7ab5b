"""Builds drivers in other languages once, from locked versions: see `tests.support.building`.

Java is required where `make interop` requires it; without Go, Node or kcat their tests are skipped with a reason.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from tests.support.building import built, need, run_step
from tests.support.interop import need_commands
from tests.support.kafka.apache_kafka import need_kafka

HERE = Path(__file__).parent
_SMALL_JVM = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


def kcat() -> list[str]:
    """Return the command of the Python program that runs kcat for each request."""
    need("kcat", "kcat")
    return [sys.executable, "-m", "tests.interop.clients.python.kcat"]


def kcat_secure() -> list[str]:
    """Return the command of the Python program that runs kcat with a login."""
    need("kcat", "kcat")
    return [sys.executable, "-m", "tests.interop.clients.python.kcat_secure"]


def kcat_member() -> list[str]:
    """Return the command of a group member on kcat."""
    need("kcat", "kcat")
    return [sys.executable, "-m", "tests.support.groups.group_member", "kcat"]


def java(version: str, program: str = "Driver") -> list[str]:
    """Return the command of the Java driver, or group member, on this version of Kafka's client."""
    need_commands("java", "javac")
    jars = need_kafka(version)
    sources = sorted((HERE / "java").glob("*.java"))

    def build(directory: Path) -> None:
        run_step(["javac", "-nowarn", "-cp", f"{jars}/*", "-d", str(directory), *map(str, sources)])

    classes = built(f"java-{version}", sources, build)
    return ["java", *_SMALL_JVM, "-cp", f"{classes}:{jars}/*", program]


def go(client: str) -> list[str]:
    """Return the command of a Go driver."""
    need("go", client)
    sources = sorted((HERE / "go").rglob("*.*"))

    def build(directory: Path) -> None:
        run_step(["go", "build", "-o", str(directory / client), f"./{client}"], HERE / "go")

    return [str(built(f"go-{client}", sources, build) / client)]


def node(program: str = "driver") -> list[str]:
    """Return the command of the kafkajs driver, or group member."""
    need("node", "kafkajs")
    need("npm", "kafkajs")
    sources = [
        HERE / "node" / name
        for name in ("driver.js", "transactions.js", "member.js", "secure.js", "package.json", "package-lock.json")
    ]

    def build(directory: Path) -> None:
        for source in sources:
            shutil.copy(source, directory)
        run_step(["npm", "ci", "--no-audit", "--no-fund"], directory)

    return ["node", str(built("node", sources, build) / f"{program}.js")]
