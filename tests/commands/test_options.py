"""Parsing of the values of the commands' options."""

from __future__ import annotations

import click
import pytest
from click.testing import CliRunner

from barnabas.commands.options import (
    PositiveNumber,
    as_dict,
    bootstrap_option,
    parse_escaped,
    parse_key_value,
    parse_separator,
    parse_timestamp,
)
from barnabas.explanation.wording import time_text


@click.command()
@bootstrap_option
def show_bootstrap(bootstrap: str) -> None:
    click.echo(bootstrap)


@pytest.mark.parametrize("text", ["nan", "inf", "1e12", "0", "-1", "x", ""])
def test_a_number_of_seconds_is_one_that_a_clock_can_wait_for(text: str) -> None:
    with pytest.raises(click.BadParameter):
        PositiveNumber().convert(text, None, None)
    assert PositiveNumber().convert("0.5", None, None) == PositiveNumber(0.5).convert("0.5", None, None) == 0.5


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("0", 0),
        ("1372939200000", 1372939200000),
        ("2013-07-04T12:00:00Z", 1372939200000),
        ("2013-07-04T12:00:00", 1372939200000),
        ("2013-07-04T14:00:00.250+02:00", 1372939200250),
        ("2013-07-04", 1372896000000),
    ],
)
def test_a_time_is_milliseconds_or_iso_8601_in_utc(text: str, milliseconds: int) -> None:
    assert parse_timestamp(text) == milliseconds


@pytest.mark.parametrize("text", ["", "noon", "-5", "1969-12-31T23:59:59Z", "12.5", "٣"])
def test_an_invalid_time_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        parse_timestamp(text)


def test_a_key_value_splits_at_the_first_equals_sign() -> None:
    assert parse_key_value("a.b=c=d") == ("a.b", "c=d")
    assert parse_key_value("a=") == ("a", "")


@pytest.mark.parametrize("text", ["", "a", "=b", " =b"])
def test_an_invalid_key_value_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        parse_key_value(text)


def test_a_name_with_two_values_is_refused_and_with_one_value_twice_is_not() -> None:
    assert as_dict((("a", "1"), ("b", "2"), ("a", "1")), "--config") == {"a": "1", "b": "2"}
    with pytest.raises(click.UsageError, match="gives a twice: '1' and '2'"):
        as_dict((("a", "1"), ("a", "2")), "--config")


@pytest.mark.parametrize(
    ("text", "data"),
    [(r"\t", b"\t"), (r"a\n\r\0\\b", b"a\n\r\0\\b"), (r"\x1F", b"\x1f"), ("ü", "ü".encode()), (r"\\t", rb"\t")],
)
def test_escapes_in_a_separator_mean_what_they_do_in_c(text: str, data: bytes) -> None:
    assert parse_separator(text) == data


def test_a_null_marker_may_be_empty() -> None:
    assert parse_escaped("") == b""


@pytest.mark.parametrize("text", ["", r"\q", r"\x1"])
def test_an_empty_separator_or_an_unknown_escape_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter):
        parse_separator(text)


@pytest.mark.parametrize(
    ("arguments", "environment", "address"),
    [
        ([], {}, "127.0.0.1:9092"),
        ([], {"BARNABAS_BOOTSTRAP": "h:1"}, "h:1"),
        (["--bootstrap", "g:2"], {"BARNABAS_BOOTSTRAP": "h:1"}, "g:2"),
        (["--bootstrap-server", "g:2,h:3"], {}, "g:2,h:3"),
    ],
)
def test_the_broker_is_that_of_the_option_then_the_environment_then_the_default(
    arguments: list[str], environment: dict[str, str], address: str
) -> None:
    assert CliRunner().invoke(show_bootstrap, arguments, env=environment).output == f"{address}\n"


@pytest.mark.parametrize("address", ["", "h", "h:", ":1", "h:0", "h:65536", "h:x", "h:1,g", "::1:9092"])
def test_an_invalid_address_is_a_usage_error(address: str) -> None:
    result = CliRunner().invoke(show_bootstrap, ["--bootstrap", address])

    assert result.exit_code == 2
    assert "bootstrap" in result.stderr


@pytest.mark.parametrize(
    ("timestamp", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1372939200250, "2013-07-04T12:00:00.250Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (2**63 - 1, str(2**63 - 1)),
    ],
)
def test_times_are_shown_in_utc_or_as_numbers_if_out_of_range(timestamp: int, text: str) -> None:
    assert time_text(timestamp) == text
