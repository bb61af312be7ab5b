"""Records to lines of output (`barnabas consume`), and back through `produce --json`."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from barnabas.clients.records import ConsumerRecord, Headers
from barnabas.commands.records.line_records import InputRecord, JsonLines, PlainLines
from barnabas.commands.records.record_lines import JsonFormat, PlainFormat


def fetched(
    *, key: bytes | None = b"k", value: bytes | None = b"v", headers: Headers = (), timestamp_type: int = 0
) -> ConsumerRecord:
    return ConsumerRecord("t", 1, 2, 3, timestamp_type, key, value, headers)


def _object(line: bytes) -> dict[str, object]:
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    parsed = json.loads(line)
    assert isinstance(parsed, dict)
    return parsed


def test_a_json_line_has_the_seven_fields_that_scripts_rely_on() -> None:
    assert _object(JsonFormat().line(fetched(headers=(("h", b"1"), ("h", None))))) == {
        "topic": "t",
        "partition": 1,
        "offset": 2,
        "timestamp": 3,
        "key": "k",
        "value": "v",
        "headers": [["h", "1"], ["h", None]],
    }


def test_null_keys_and_values_are_json_nulls() -> None:
    entry = _object(JsonFormat().line(fetched(key=None, value=None)))

    assert entry["key"] is None
    assert entry["value"] is None


def test_a_json_line_is_one_line_for_every_program_whatever_the_value_holds() -> None:
    line = JsonFormat().line(fetched(value="a\nb\u2028c\x85d\u2029".encode()))

    assert len(line.decode().splitlines()) == 1
    assert _object(line)["value"] == "a\nb\u2028c\x85d\u2029"


def test_bytes_that_are_not_utf8_are_written_as_base64_and_named_while_the_rest_stays_text() -> None:
    json_format = JsonFormat()

    entry = _object(json_format.line(fetched(value=b"\xff\x00")))

    assert entry["key"] == "k"
    assert entry["value"] == "/wA="
    assert entry["base64"] == ["value"]
    assert json_format.unreadable == 1
    assert _object(json_format.line(fetched(headers=(("h", b"\xff"),))))["base64"] == ["headers"]


def test_base64_covers_key_value_and_headers_on_request() -> None:
    entry = _object(JsonFormat(all_base64=True).line(fetched(key=None, headers=(("h", b"1"),))))

    assert entry["key"] is None
    assert entry["value"] == "dg=="
    assert entry["headers"] == [["h", "MQ=="]]
    assert entry["base64"] == ["headers", "key", "value"]


_BYTES = st.one_of(st.none(), st.binary(max_size=20), st.text(max_size=20).map(lambda text: text.encode()))

_NAMES = st.text(max_size=8) | st.binary(max_size=8).map(lambda name: name.decode("utf-8", "surrogateescape"))
"""As the consumer decodes them."""


@given(
    key=_BYTES,
    value=_BYTES,
    headers=st.lists(st.tuples(_NAMES, _BYTES), max_size=3).map(tuple),
    all_base64=st.booleans(),
)
def test_produce_reads_the_json_of_consume_back_byte_for_byte(
    key: bytes | None, value: bytes | None, headers: tuple[tuple[str, bytes | None], ...], all_base64: bool
) -> None:
    line = JsonFormat(all_base64=all_base64).line(fetched(key=key, value=value, headers=headers))

    assert JsonLines(all_base64).parse(line, 1) == InputRecord(key, value, headers, 3)


def test_header_names_that_are_not_utf8_are_written_as_base64_and_named() -> None:
    headers = (("\udcff", b"x"), ("\udcfe", b"y"))

    some, all_of_it = JsonFormat(), JsonFormat(all_base64=True)
    entry = _object(some.line(fetched(headers=headers)))

    assert entry["headers"] == [["/w==", "x"], ["/g==", "y"]]
    assert entry["base64"] == ["header_names"]
    assert some.unreadable == 1
    entry = _object(all_of_it.line(fetched(headers=headers)))
    assert entry["headers"] == [["/w==", "eA=="], ["/g==", "eQ=="]]
    assert entry["base64"] == ["header_names", "headers", "key", "value"]


def test_a_plain_line_is_the_value_as_it_is() -> None:
    assert PlainFormat().line(fetched(value=b"\xff\t")) == b"\xff\t\n"


def test_a_plain_line_shows_the_parts_asked_for_in_kafkas_order() -> None:
    everything = PlainFormat(
        separator=b"|",
        with_timestamp=True,
        with_partition=True,
        with_offset=True,
        with_headers=True,
        with_key=True,
    )

    assert everything.line(fetched(headers=(("a", b"1"), ("b", None)))) == (
        b"CreateTime:3|Partition:1|Offset:2|a:1,b:null|k|v\n"
    )
    assert (
        everything.line(fetched(key=None, timestamp_type=1))
        == b"LogAppendTime:3|Partition:1|Offset:2|NO_HEADERS|null|v\n"
    )


def test_a_plain_line_has_the_bytes_of_a_header_name() -> None:
    names = PlainFormat(with_headers=True)

    line = names.line(fetched(headers=(("a\udcff", b"1"),)))

    assert line == b"a\xff:1\tv\n"
    assert PlainLines(parse_headers=True).parse(line[:-1], 1).headers == (("a\udcff", b"1"),)


def test_a_tombstone_is_shown_by_the_null_marker() -> None:
    assert PlainFormat(null_marker=b"\\N").line(fetched(value=None)) == b"\\N\n"
