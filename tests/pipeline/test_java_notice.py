"""The JVM's standard error is passed on immediately, except for one line of Java's."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from barnabas.pipeline.spark.java_notice import NOTICE, copy_without_notice, write_whole
from tests.support.daemon import REPOSITORY

PATIENCE_S = 120


def passed_on(*chunks: bytes) -> list[bytes]:
    coming = iter([*chunks, b""])
    written: list[bytes] = []
    copy_without_notice(lambda: next(coming), written.append)
    return written


@pytest.mark.parametrize("cut", range(1, len(NOTICE) + 1))
def test_the_notice_is_left_out_wherever_a_read_cuts_it(cut: int) -> None:
    text = NOTICE + b"\nJAVA_HOME is not set\n"

    assert b"".join(passed_on(text[:cut], text[cut:])) == b"JAVA_HOME is not set\n"


def test_a_progress_bar_is_not_held_back_until_its_line_ends() -> None:
    assert passed_on(NOTICE + b"\n", b"\r[Stage 0:>  ", b"\r[Stage 0:==>") == [b"\r[Stage 0:>  ", b"\r[Stage 0:==>"]


@pytest.mark.parametrize(
    "text", [b"WARNING: another\n", b"WARN", NOTICE + b", jdk.other\n", b"\n\n", b"", b"x" * 100_000]
)
def test_everything_else_goes_on_byte_for_byte(text: bytes) -> None:
    assert b"".join(passed_on(text[:3], text[3:]) if len(text) > 3 else passed_on(text)) == text


def start_with(spark_submit: str, home: Path) -> subprocess.Popen[bytes]:
    """Start a process that starts a JVM, with this script as `spark-submit`."""
    script = home / "bin" / "spark-submit"
    script.parent.mkdir()
    script.write_text(f"#!/bin/sh\n{spark_submit}\n")
    script.chmod(0o755)
    environ = {key: value for key, value in os.environ.items() if not key.startswith("PYSPARK_")}
    return subprocess.Popen(
        [sys.executable, "-c", "from barnabas.pipeline.spark.java_notice import start_jvm; start_jvm({})"],
        env={**environ, "SPARK_HOME": str(home), "PYTHONPATH": str(REPOSITORY)},
        stderr=subprocess.PIPE,
    )


def test_ctrl_c_ends_a_start_while_the_jvm_still_lives(tmp_path: Path) -> None:
    with start_with("echo starting >&2; exec cat > /dev/null", tmp_path) as process:  # ends with its stdin
        try:
            assert process.stderr is not None
            assert process.stderr.readline() == b"starting\n"
            process.send_signal(signal.SIGINT)
            _, rest = process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()
    assert rest.endswith(b"KeyboardInterrupt\n")


def test_what_is_said_about_a_missing_java_comes_before_the_error(tmp_path: Path) -> None:
    with start_with("echo JAVA_HOME is not set >&2; exit 1", tmp_path) as process:
        _, written = process.communicate(timeout=PATIENCE_S)
    assert written.startswith(b"JAVA_HOME is not set\n")
    assert b"JAVA_GATEWAY_EXITED" in written


def test_nothing_is_lost_where_standard_error_does_not_wait() -> None:
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    text = bytes(range(256)) * 4096  # exceeds a pipe's buffer
    found: list[bytes] = []

    def read() -> None:
        with os.fdopen(reading, "rb") as file:
            found.append(file.read())

    reader = threading.Thread(target=read)
    reader.start()
    write_whole(writing, text)
    os.close(writing)
    reader.join()
    assert found == [text]
