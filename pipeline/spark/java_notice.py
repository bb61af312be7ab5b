"""Starts PySpark's JVM and removes Java's notice about incubator modules from standard error.

Spark requests the module jdk.incubator.vector, and Java prints a warning about it at each start, which no setting
disables. Users cannot act on it, and it precedes a job's own message. So the JVM's standard error passes through a pipe
that drops this one line; everything else is passed on immediately, also the progress bar, which ends no line.
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
    """Start the JVM for the next session of this process, unless one runs already (for example spark-submit's).

    Does nothing when standard error is closed. Without Java, raises PySpark's error after passing on all output.
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
    """Copy until `read` returns nothing; an incomplete line is held back only while it may be the notice."""
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
        pass  # standard error is closed; closing the pipe lets the JVM see that as well
    finally:
        os.close(reading)


def write_whole(descriptor: int, text: bytes) -> None:
    """Write all of `text`, also to a descriptor that another process made non-blocking. Raises OSError."""
    left = memoryview(text)
    while left:
        try:
            left = left[os.write(descriptor, left) :]
        except BlockingIOError:
            select.select([], [descriptor], [])
