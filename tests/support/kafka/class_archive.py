"""Java's archive of the classes that Kafka's tools load, which halves the CPU of each start.

It is made once for the jars of a version, from a tool that finds no broker, and lies beside them. A JVM with other
jars in front, or of another version than the one that made it, goes without it.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

WORTH_IT = ("4.3.0",)
"""Versions that interop starts often enough: the archive takes as long as five starts."""

_SILENT = ("-Xlog:cds=off", "-Xlog:cds+dynamic=off")
_TIMEOUT_S = 120


@cache
def archive_options(jars: Path, options: Sequence[str]) -> tuple[str, ...]:
    """Return the options with which a JVM that has `options` uses the archive of a folder of jars."""
    if jars.name not in WORTH_IT:
        return ()
    archive = jars / f"classes-{_java_release()}.jsa"
    if not archive.exists():
        _make(archive, jars, options)
    return (f"-XX:SharedArchiveFile={archive}", *_SILENT) if archive.exists() else ()


def _java_release() -> str:
    """Return a name of the installed Java: no other one can read its archive."""
    said = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True, timeout=_TIMEOUT_S).stderr
    return said.split('"')[1]


def _make(archive: Path, jars: Path, options: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory(prefix=".classes.", dir=jars.parent) as scratch:
        made, impatient = Path(scratch, archive.name), Path(scratch, "client.properties")
        impatient.write_text("default.api.timeout.ms=600\nrequest.timeout.ms=500\n")
        tool = ["org.apache.kafka.tools.TopicCommand", "--bootstrap-server", "127.0.0.1:1", "--list"]
        command = ["java", *options, f"-XX:ArchiveClassesAtExit={made}", *_SILENT, "-cp", f"{jars}/*", *tool]
        command += ["--command-config", str(impatient)]
        # It ends with 1, because there is no broker.
        subprocess.run(command, capture_output=True, check=False, timeout=_TIMEOUT_S)
        if made.exists():
            os.replace(made, archive)  # whole, whichever worker is first
