"""Lines of standard input to records (`barnabas produce`)."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from pathlib import Path

import pytest

from barnabas.commands.failures import CommandFailure
from barnabas.commands.records.line_records import InputRecord, JsonLines, PlainLines
from barnabas.commands.records.standard_input import CHUNK_BYTES, read_lines


def test_a_plain_line_is_a_value_without_a_key() -> None:
    assert PlainLines().parse(b"a\tb", 1) == InputRecord(None, b"a\tb")


def test_an_empty_line_is_an_empty_value_not_a_tombstone() -> None:
    assert PlainLines().parse(b"", 1).value == b""


def test_the_first_key_separator_splits_and_later_ones_belong_to_the_value() -> None:
    assert PlainLines(key_separator=b"::").parse(b"k::v::w", 1) == InputRecord(b"k", b"v::w")


def test_bytes_that_are_not_text_pass_unchanged() -> None:
    line = bytes(set(range(256)) - {ord("\n"), ord("|")})
    assert PlainLines(key_separator=b"|").parse(line + b"|" + line, 1) == InputRecord(line, line)


def test_the_null_marker_stands_for_null_keys_values_and_headers() -> None:
    lines = PlainLines(key_separator=b"|", null_marker=b"NULL", parse_headers=True)

    assert lines.parse(b"NULL\tk|NULL", 1) == InputRecord(b"k", None)
    assert lines.parse(b"h:NULL\tNULL|v", 1) == InputRecord(None, b"v", (("h", None),))


def test_without_a_null_marker_only_a_missing_key_is_null() -> None:
    assert PlainLines(key_separator=b"|").parse(b"|", 1) == InputRecord(b"", b"")


def test_headers_are_parsed_as_kafkas_console_producer_does() -> None:
    lines = PlainLines(key_separator=b"\t", parse_headers=True)

    record = lines.parse(b"h1:v1,h2:v:2,h1:\tkey\tvalue\tmore", 1)

    assert record == InputRecord(b"key", b"value\tmore", (("h1", b"v1"), ("h2", b"v:2"), ("h1", b"")))
    assert lines.parse(b"\tkey\tvalue", 1).headers == ()


@pytest.mark.parametrize(
    ("lines", "line", "complaint"),
    [
        (PlainLines(key_separator=b"|"), b"no key here", r"line 7: no key separator '\|' in 'no key here'"),
        (PlainLines(parse_headers=True), b"value", "line 7: no tab after the headers"),
        (PlainLines(parse_headers=True), b"novalue\tv", "line 7: the header 'novalue' is not of the form name:value"),
    ],
)
def test_an_invalid_line_is_refused_with_its_number(lines: PlainLines, line: bytes, complaint: str) -> None:
    with pytest.raises(CommandFailure, match=complaint):
        lines.parse(line, 7)


def test_a_json_line_has_key_value_headers_and_timestamp_and_its_origin_is_ignored() -> None:
    line = json.dumps(
        {
            "topic": "other",
            "partition": 3,
            "offset": 9,
            "timestamp": 12,
            "key": "k",
            "value": "ü",
            "headers": [["h", "1"], ["h", None]],
        }
    ).encode()

    record = JsonLines().parse(line, 1)

    assert record == InputRecord(b"k", "ü".encode(), (("h", b"1"), ("h", None)), 12, None)
    assert JsonLines(keep_partition=True).parse(line, 1).partition == 3


def test_a_json_object_without_fields_is_a_record_without_key_and_value() -> None:
    assert JsonLines().parse(b"{}", 1) == InputRecord(None, None)


def test_json_fields_named_in_base64_are_decoded_and_only_they() -> None:
    record = JsonLines().parse(b'{"key": "AAE=", "value": "AAE=", "base64": ["key"]}', 1)

    assert record == InputRecord(b"\x00\x01", b"AAE=")


def test_all_base64_decodes_every_field() -> None:
    record = JsonLines(all_base64=True).parse(b'{"key": null, "value": "/w==", "headers": [["h", "AQ=="]]}', 1)

    assert record == InputRecord(None, b"\xff", (("h", b"\x01"),))


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b"{", "line 3: not JSON"),
        (b"[" * 100_000, "line 3: not JSON"),
        (b"\xff", "line 3: not JSON"),
        (b'["k"]', "line 3: a JSON object is expected"),
        (b'{"key": 1}', "line 3: key must be a string or null, not int"),
        (b'{"value": "\\ud800"}', "line 3: value is not UTF-8"),
        (b'{"headers": [["\\ud800", "v"]]}', "line 3: a header name is not UTF-8"),
        (b'{"headers": {"\\udcff": "v"}}', "line 3: a header name is not UTF-8"),
        (b'{"value": "?", "base64": ["value"]}', "line 3: value is not base64"),
        (b'{"base64": "value"}', "line 3: base64 must be a list"),
        (b'{"headers": [["h"]]}', "line 3: headers must be"),
        (b'{"headers": "h"}', "line 3: headers must be"),
        (b'{"timestamp": "now"}', "line 3: timestamp must be an integer"),
        (b'{"timestamp": 9223372036854775808}', "line 3: timestamp must be an integer"),
    ],
)
def test_an_invalid_json_line_is_refused_with_its_number(line: bytes, complaint: str) -> None:
    with pytest.raises(CommandFailure, match=complaint):
        JsonLines().parse(line, 3)


async def _lines_of(descriptor: int) -> list[bytes]:
    return [line async for lines in read_lines(descriptor) for line in lines]


def test_lines_of_a_file_are_cut_at_newlines_only_and_the_last_needs_none(tmp_path: Path) -> None:
    wide = b"x" * (3 * CHUNK_BYTES + 17)
    lines = [b"a", b"", b"b\r", b"\x85\x0b\x1c", wide, b"tail"]
    path = tmp_path / "lines"
    path.write_bytes(b"\n".join(lines))

    with path.open("rb") as file:
        assert asyncio.run(_lines_of(file.fileno())) == lines


def test_a_newline_at_the_end_of_the_input_ends_a_line_and_begins_none(tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_bytes(b"a\n\n")

    with path.open("rb") as file:
        assert asyncio.run(_lines_of(file.fileno())) == [b"a", b""]


def test_an_empty_input_has_no_lines() -> None:
    with open(os.devnull, "rb") as file:
        assert asyncio.run(_lines_of(file.fileno())) == []


def test_a_line_from_a_pipe_is_handed_on_before_the_next_one_is_written() -> None:
    read_end, write_end = os.pipe()

    async def converse() -> list[list[bytes]]:
        seen = []
        os.write(write_end, b"one\ntw")
        async for lines in read_lines(read_end):
            seen.append(lines)
            if len(seen) == 1:
                os.write(write_end, b"o\n")
                os.close(write_end)
        return seen

    try:
        assert asyncio.run(asyncio.wait_for(converse(), 30)) == [[b"one"], [b"two"]]
    finally:
        os.close(read_end)


def test_lines_cut_anywhere_between_two_writes_of_a_pipe_come_whole() -> None:
    text = b"alpha\nbeta\n\ngamma"
    read_end, write_end = os.pipe()

    def write_slowly() -> None:
        for byte in text:
            os.write(write_end, bytes([byte]))
        os.close(write_end)

    writer = threading.Thread(target=write_slowly)
    writer.start()
    try:
        assert asyncio.run(asyncio.wait_for(_lines_of(read_end), 30)) == text.split(b"\n")
    finally:
        writer.join()
        os.close(read_end)


def test_a_line_without_an_end_is_refused_before_it_fills_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("barnabas.commands.records.standard_input.MAX_LINE_BYTES", 2 * CHUNK_BYTES)
    path = tmp_path / "lines"
    path.write_bytes(b"short\n" + b"x" * (4 * CHUNK_BYTES))

    with path.open("rb") as file, pytest.raises(CommandFailure, match="longer than"):
        asyncio.run(_lines_of(file.fileno()))
