"""The .properties syntax, first by hand, then against java.util.Properties itself where there is a Java."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from barnabas.config import properties_file
from barnabas.config.properties_file import BadLineError, Entry, decode, parse_properties
from tests.support.interop import need_commands

ORACLE = Path(__file__).parent / "JavaProperties.java"
# Pieces that meet in every way a reader can get wrong.
PIECES = (
    *("a", "b.c", "log.dirs", "x y", "=", ":", " ", "\t", "\f", "#", "!", "\\", "\\\\", "\n", "\r", "\r\n"),
    *("\\\n", "\\\r\n", "\\ ", "\\=", "\\:", "\\#", "\\t", "\\n", "\\q", "\\u0041", "\\u00e9", "\\u12", "\x0b", "\x1c"),
)


@pytest.mark.parametrize(
    "line", ["key=value", "key:value", "key value", "key\tvalue", "  key = value", "key  :  value"]
)
def test_a_key_ends_at_equals_colon_or_white_space(line: str) -> None:
    assert parse_properties(line) == [Entry("key", "value", 1)]


def test_only_the_first_separator_counts() -> None:
    assert parse_properties("listeners=PLAINTEXT://:9092\nmap A:B=C") == [
        Entry("listeners", "PLAINTEXT://:9092", 1),
        Entry("map", "A:B=C", 2),
    ]


def test_comments_and_blank_lines_are_skipped_and_lines_still_counted() -> None:
    assert parse_properties("# one\n\n  ! two\n \t\nkey=value\n#key=other") == [Entry("key", "value", 5)]


def test_a_hash_after_the_key_is_part_of_the_value() -> None:
    assert parse_properties("key=value # not a comment") == [Entry("key", "value # not a comment", 1)]


def test_a_backslash_at_the_end_continues_the_line_and_drops_the_next_ones_indent() -> None:
    assert parse_properties("log.dirs=/a,\\\n    /b,\\\n\t/c\nnext=1") == [
        Entry("log.dirs", "/a,/b,/c", 1),
        Entry("next", "1", 4),
    ]


def test_two_backslashes_at_the_end_are_one_and_no_continuation() -> None:
    assert parse_properties("path=c:\\\\\nnext=1") == [Entry("path", "c:\\", 1), Entry("next", "1", 2)]


def test_a_comment_is_not_continued_and_a_continuation_is_not_a_comment() -> None:
    assert parse_properties("# comment\\\nkey=value\\\n#more") == [Entry("key", "value#more", 2)]


def test_an_empty_continuation_is_ignored() -> None:
    assert parse_properties("\\\n\nkey=value\n\\") == [Entry("key", "value", 3)]
    assert parse_properties("\\\n#comment\\\nkey=value\n\\\n! comment") == [Entry("key", "value", 3)]


def test_a_value_of_many_lines_is_looked_at_line_by_line(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = 2_000
    examined: list[int] = []
    real = properties_file._goes_on

    def counted(text: str) -> bool:
        examined.append(len(text))
        return real(text)

    monkeypatch.setattr(properties_file, "_goes_on", counted)
    text = "key=" + "value,\\\n" * lines
    assert parse_properties(text) == [Entry("key", "value," * lines, 1)]
    assert sum(examined) <= 2 * len(text), "the work of a value must not grow with the square of its lines"


def test_escapes_stand_for_their_characters() -> None:
    assert parse_properties(r"a\ key\=\:=\ttab\nline\u0041\q") == [Entry("a key=:", "\ttab\nlineAq", 1)]


def test_a_bad_unicode_escape_names_its_line() -> None:
    with pytest.raises(BadLineError) as caught:
        parse_properties("good=1\nbad=\\u12x4\n")

    assert caught.value.line == 2


def test_repeated_keys_are_all_there_in_order() -> None:
    assert parse_properties("a=1\nb=2\na=3") == [Entry("a", "1", 1), Entry("b", "2", 2), Entry("a", "3", 3)]


def test_a_key_alone_has_an_empty_value() -> None:
    assert parse_properties("alone\nempty=") == [Entry("alone", "", 1), Entry("empty", "", 2)]


def test_only_line_feeds_and_carriage_returns_end_a_line() -> None:
    assert parse_properties("a=1\x0bb\x1cc\u2028d") == [Entry("a", "1\x0bb\x1cc\u2028d", 1)]


def test_a_file_is_utf_8_else_latin_1_and_a_byte_order_mark_is_dropped() -> None:
    assert decode("\ufefflog.dir=/Grüße".encode()) == "log.dir=/Grüße"
    assert decode("log.dir=/Grüße".encode("latin-1")) == "log.dir=/Grüße"


def test_javas_own_reader_agrees_on_six_hundred_random_files(tmp_path: Path) -> None:
    need_commands("java")
    seed = random.randrange(2**32)
    texts = random_files(seed, 600)
    for number, text in enumerate(texts):
        # Bytes that are ASCII mean the same in Java's Latin-1 and in our UTF-8.
        (tmp_path / f"{number}.properties").write_bytes(text.encode("ascii"))

    java = subprocess.run(
        ["java", "-XX:TieredStopAtLevel=1", str(ORACLE), str(tmp_path), str(len(texts))],
        check=False,
        capture_output=True,
        text=True,
        timeout=100,
    )
    printed = java.stdout.splitlines()

    assert java.returncode == 0, f"seed={seed} file={texts[len(printed)]!r} {java.stderr}"
    assert len(printed) == len(texts)
    for text, line in zip(texts, printed, strict=True):
        assert without_empty_keys(as_java_prints(text)) == without_empty_keys(line), f"seed={seed} file={text!r}"


def random_files(seed: int, count: int) -> list[str]:
    chooser = random.Random(seed)
    return ["".join(chooser.choices(PIECES, k=chooser.randint(1, 24))) for _ in range(count)]


def as_java_prints(text: str) -> str:
    try:
        entries = {entry.key: entry.value for entry in parse_properties(decode(text.encode("ascii")))}
    except BadLineError:
        return "refused"
    return ",".join(sorted(f"{utf_16_hex(key)}={utf_16_hex(value)}" for key, value in entries.items()))


def utf_16_hex(text: str) -> str:
    return text.encode("utf-16-be").hex()


def without_empty_keys(line: str) -> str:
    """Java makes an entry with an empty key of a lone backslash at the end of a file, or none, by how the line ends."""
    return ",".join(entry for entry in line.split(",") if not entry.startswith("="))
