"""Java programs of the ecosystem's cases: a Maven project for the dependencies, and sources that are compiled once."""

from __future__ import annotations

from pathlib import Path

from tests.support.building import built, need, run_step

_FETCH_TIMEOUT_S = 900


def jars(what: str, pom: Path) -> Path:
    """Return the folder of the jars that a pom.xml depends on."""
    need("mvn", what)

    def fetch(directory: Path) -> None:
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={directory}", "-DincludeScope=runtime"]
        run_step(["nice", "mvn", "-B", "-q", "-ntp", "-f", str(pom), *goal], timeout_s=_FETCH_TIMEOUT_S)

    return built(f"{what}-jars", [pom], fetch)


def compiled(what: str, project: Path) -> str:
    """Return the classpath of a project: a folder with a pom.xml that names its dependencies, and Java sources."""
    need("javac", what)
    dependencies = f"{jars(what, project / 'pom.xml')}/*"
    sources = sorted(project.glob("*.java"))

    def compile_sources(directory: Path) -> None:
        run_step(["nice", "javac", "-parameters", "-d", str(directory), "-cp", dependencies, *map(str, sources)])

    return f"{built(what, sources, compile_sources)}:{dependencies}"
