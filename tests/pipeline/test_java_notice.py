"""What the JVM writes to standard error is passed on as it comes, but for one line of Java's."""

from __future__ import annotations

import pytest

from barnabas.pipeline.java_notice import NOTICE, copy_without_notice


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
