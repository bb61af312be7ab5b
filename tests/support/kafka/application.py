"""A Java application on Kafka's jars, such as a Kafka Streams program or a Connect worker, that tests kill."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.support.interop import need_commands, require_or_skip
from tests.support.kafka import jars as kafka_jars
from tests.support.program import Program

VERSION = "4.3.0"
_JAVA = ("java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
_SOURCES = Path(__file__).parents[2] / "interop" / "java" / "applications"
_COMPILE_TIMEOUT_S = 120
_LOG4J2 = """rootLogger.level=warn
rootLogger.appenderRef.out.ref=out
appender.out.type=Console
appender.out.name=out
appender.out.layout.type=PatternLayout
appender.out.layout.pattern=[%d] %p %m (%c)%n
"""


def need_applications() -> Path:
    """Return the folder of the jars; without java, mvn or a registry end the test by `require_or_skip`."""
    __tracebackhide__ = True
    need_commands("java", "javac", "mvn")
    try:
        return kafka_jars.fetch_applications(VERSION)
    except kafka_jars.FetchError as error:
        require_or_skip(str(error))


class Application(Program):
    """A Program on Kafka's jars."""

    def __init__(self, directory: Path, main_class: str, arguments: Sequence[str]) -> None:
        """`main_class` is one of the jars', or a source file's in tests/interop/java/applications."""
        jars = need_applications()
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "log4j2.properties").write_text(_LOG4J2)
        classes = directory / "classes"
        source = _SOURCES / f"{main_class}.java"
        if source.exists():
            compiler = ["javac", "-nowarn", "-cp", f"{jars}/*", "-d", str(classes), str(source)]
            subprocess.run(compiler, check=True, timeout=_COMPILE_TIMEOUT_S)
        logging = f"-Dlog4j2.configurationFile={directory / 'log4j2.properties'}"
        super().__init__(directory, [*_JAVA, logging, "-cp", f"{classes}:{jars}/*", main_class, *arguments])
