"""A Java application on Kafka's jars, such as a Kafka Streams program or a Connect worker, that tests kill."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support.eventually import eventually
from tests.support.interop import need_commands, require_or_skip
from tests.support.kafka import jars as kafka_jars

VERSION = "4.3.0"
_JAVA = ("java", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")
_SOURCES = Path(__file__).parents[2] / "interop" / "java" / "applications"
_COMPILE_TIMEOUT_S = 120
_END_TIMEOUT_S = 30
_TAIL_CHARACTERS = 4000
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


class Application:
    """A process that is started again with the same arguments; as a context manager it runs, and is killed at the end.

    An exception that leaves the context gets the end of the process's output as a note.
    """

    def __init__(self, directory: Path, main_class: str, arguments: Sequence[str]) -> None:
        """`main_class` is one of the jars', or a source file's in tests/interop/java/applications."""
        jars = need_applications()
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._log_path = directory / "output.log"
        self._process: subprocess.Popen[bytes] | None = None
        (directory / "log4j2.properties").write_text(_LOG4J2)
        classes = directory / "classes"
        source = _SOURCES / f"{main_class}.java"
        if source.exists():
            compiler = ["javac", "-nowarn", "-cp", f"{jars}/*", "-d", str(classes), str(source)]
            subprocess.run(compiler, check=True, timeout=_COMPILE_TIMEOUT_S)
        logging = f"-Dlog4j2.configurationFile={directory / 'log4j2.properties'}"
        self._command = [*_JAVA, logging, "-cp", f"{classes}:{jars}/*", main_class, *arguments]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, _type: type[BaseException] | None, error: BaseException | None, _traceback: TracebackType | None
    ) -> None:
        self.kill()
        if error is not None:
            error.add_note(f"--- output\n{self.output[-_TAIL_CHARACTERS:]}")

    @property
    def output(self) -> str:
        """The output of all starts."""
        return self._log_path.read_text(errors="replace") if self._log_path.exists() else ""

    def start(self) -> None:
        """Start the process."""
        environ = {name: value for name, value in os.environ.items() if not name.startswith(("KAFKA_", "JAVA_TOOL"))}
        with self._log_path.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, cwd=self._directory, env=environ, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def kill(self) -> None:
        """Send SIGKILL."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(_END_TIMEOUT_S)

    def wait_for_output(self, text: str) -> None:
        """Wait until the text has been printed. Raises AssertionError if the process ends before."""

        def is_printed() -> bool | None:
            assert self._process is not None
            assert self._process.poll() is None, f"the application ended with {self._process.returncode}"
            return text in self.output or None

        eventually(is_printed, what=f"{text!r} in the application's output")
