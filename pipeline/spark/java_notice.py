"""The JVM that PySpark starts for a job, without the line that Java writes before any setting of ours can reach it.

Spark asks Java for the module jdk.incubator.vector, and Java says so on standard error at each start, with no switch
against it. Nobody can act on it, and it stands before our own sentence. So the JVM's standard error comes through a
pipe from which this one line is taken; all else goes on as it comes, Spark's progress bar, which ends no line, too.
"""

from __future__ import annotations

import os
import select
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway

NOTICE = b"WARNING: Using incubator modules: jdk.incubator.vector"

_STANDARD_ERROR = 2
_READ_BYTES = 64 * 1024


def start_jvm(properties: Mapping[str, str]) -> None:
    """Start the JVM that the next session of this process uses; nothing where there is one (spark-submit's, say).

    Nothing, too, where standard error is closed. Raises what PySpark raises where no Java is found, once all that was
    written about it has been passed on.
    """
    if SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ or sys.stderr is None:
        return
    reading, writing = os.pipe()
    forwarder = threading.Thread(target=_forward, args=(reading,), name="stderr of the JVM", daemon=True)
    forwarder.start()
    try:
        gateway = _launch(properties, writing)
    except PySparkRuntimeError:  # the JVM has ended; one whose start is interrupted lives, and its pipe does not end
        forwarder.join()
        raise
    SparkContext._ensure_initialized(gateway=gateway)


def _launch(properties: Mapping[str, str], standard_error: int) -> Any:
    try:
        conf = SparkConf().setAll(list(properties.items()))
        return launch_gateway(conf, {"stderr": standard_error})  # type: ignore[no-untyped-call]  # PySpark has no types
    finally:
        os.close(standard_error)


def copy_without_notice(read: Callable[[], bytes], write: Callable[[bytes], object]) -> None:
    """Pass on what `read` gives until it gives nothing; half a line waits only while it may be the notice."""
    held = b""
    while chunk := read():
        *lines, held = (held + chunk).split(b"\n")
        passed = b"".join(line + b"\n" for line in lines if line != NOTICE)
        if not NOTICE.startswith(held):
            passed, held = passed + held, b""
        if passed:
            write(passed)
    if held:
        write(held)


def _forward(reading: int) -> None:
    try:
        copy_without_notice(lambda: os.read(reading, _READ_BYTES), lambda text: write_whole(_STANDARD_ERROR, text))
    except BrokenPipeError:
        pass  # nobody reads it: the JVM is told the same
    finally:
        os.close(reading)


def write_whole(descriptor: int, text: bytes) -> None:
    """Also where the terminal's or the pipe's other users made it non-blocking. Raises OSError."""
    left = memoryview(text)
    while left:
        try:
            left = left[os.write(descriptor, left) :]
        except BlockingIOError:
            select.select([], [descriptor], [])
