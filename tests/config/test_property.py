"""How a text becomes a value, and what is refused on the way."""

from __future__ import annotations

import pytest

from barnabas.config.property import (
    BadValueError,
    Property,
    PropertyType,
    Synonym,
    by_name,
    parse_as,
    show,
)
from barnabas.config.validators import AtLeast, Between, ListOf, NamedLevels, NumbersByHost, OneOf, Validator
from barnabas.config.value import PropertyValue

INT, LONG, SHORT = PropertyType.INT, PropertyType.LONG, PropertyType.SHORT
LEVELS = NamedLevels((("a", 0, 2), ("b", 7, 30)))
DOUBLE, LIST, BOOLEAN = PropertyType.DOUBLE, PropertyType.LIST, PropertyType.BOOLEAN


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (INT, " 42 ", 42),
        (INT, "-1", -1),
        (INT, "+7", 7),
        (INT, "-0", 0),
        (INT, "\x1f7\x00", 7),
        (INT, "\u0661\u0662", 12),
        (INT, "\uff11\uff12", 12),
        (INT, "0" * 5000 + "5", 5),
        (INT, "2147483647", 2**31 - 1),
        (INT, "-2147483648", -(2**31)),
        (SHORT, "-32768", -32768),
        (LONG, "9223372036854775807", 2**63 - 1),
        (DOUBLE, "0.5", 0.5),
        (DOUBLE, "1e3", 1000.0),
        (DOUBLE, "1.7976931348623157E308", 1.7976931348623157e308),
        (DOUBLE, "0.5f", 0.5),
        (DOUBLE, "5.D", 5.0),
        (DOUBLE, "0x1p-1", 0.5),
        (DOUBLE, "-0X.8P0f", -0.5),
        (DOUBLE, "-Infinity", float("-inf")),
        (DOUBLE, "-0x1p99999", float("-inf")),
        (BOOLEAN, "TRUE", True),
        (BOOLEAN, " false", False),
        (BOOLEAN, "fal\u017fe", False),
        (LIST, "", ()),
        (LIST, "a", ("a",)),
        (LIST, " a , b,c ", ("a", "b", "c")),
        (LIST, "a,,b", ("a", "", "b")),
        (LIST, "a\xa0,\x0bb\x1f,c\x1f", ("a\xa0", "b\x1f", "c")),
        (PropertyType.STRING, "  PLAINTEXT ", "PLAINTEXT"),
        (PropertyType.STRING, "\x00a\x1f", "a"),
        (PropertyType.STRING, "\u00a0a\u2003", "\u00a0a\u2003"),
        (LIST, "a\x0b,\u00a0b", ("a", "\u00a0b")),
    ],
)
def test_a_text_becomes_the_value_that_kafka_reads(kind: PropertyType, text: str, value: PropertyValue) -> None:
    parsed = parse_as(kind, text)

    assert parsed == value
    assert type(parsed) is type(value)


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        (INT, "12x", "not an int"),
        (INT, "", "not an int"),
        (INT, "1_000", "not an int"),
        (INT, "1.0", "not an int"),
        (INT, "0x10", "not an int"),
        (INT, "--1", "not an int"),
        (INT, "\U0001d7d9", "not an int"),
        (INT, "\xa05", "not an int"),
        (LONG, "1 GiB", "not a long"),
        (SHORT, "many", "not a short"),
        (INT, "2147483648", "out of range for the type int (-2147483648 to 2147483647)"),
        (SHORT, "-32769", "out of range for the type short (-32768 to 32767)"),
        (LONG, "9" * 5000, "out of range for the type long (-9223372036854775808 to 9223372036854775807)"),
        (DOUBLE, "half", "not a double"),
        (DOUBLE, "nan", "not a double"),
        (DOUBLE, "inf", "not a double"),
        (DOUBLE, "NaNf", "not a double"),
        (DOUBLE, "1e", "not a double"),
        (DOUBLE, "0x1", "not a double"),
        (DOUBLE, "\u0660.\u0665", "not a double"),
        (DOUBLE, "1_0.5", "not a double"),
        (BOOLEAN, "yes", "not a boolean (true or false)"),
        (BOOLEAN, "1", "not a boolean (true or false)"),
        (BOOLEAN, "true\u00a0", "not a boolean (true or false)"),
        (INT, "\u20031", "not an int"),
    ],
)
def test_an_illegal_value_is_refused_with_the_reason(kind: PropertyType, text: str, reason: str) -> None:
    with pytest.raises(BadValueError) as caught:
        parse_as(kind, text)

    assert str(caught.value) == reason


@pytest.mark.parametrize(
    ("validator", "legal", "illegal", "reason"),
    [
        (AtLeast(1), 1, 0, "must be at least 1"),
        (Between(0, 1), 0.5, 1.1, "must be 0 to 1"),
        (Between(0, 1), float("nan"), float("inf"), "must be 0 to 1"),
        (OneOf(("a", "b"), in_any_case=True), "A", "c", "must be one of a, b (in any case)"),
        (Between(1, 9, or_also=-1), -1, 0, "must be 1 to 9, or -1"),
        (OneOf((1, -1)), -1, 3, "must be one of 1, -1"),
        (ListOf(("compact", "delete")), (), ("compress",), "compress is none of compact, delete"),
        (ListOf(), ("a",), ("a", ""), "has an empty entry"),
        (ListOf(may_be_empty=False), ("a",), (), "must name at least one"),
        (LEVELS, ("a=0", "b = 30"), ("a",), "has a where name=level is expected"),
        (LEVELS, (), ("a=1", ""), "has an empty entry where name=level is expected"),
        (LEVELS, ("b=7",), ("c=1",), "names c, which is none of a, b"),
        (LEVELS, ("a=2",), ("a=3",), "has level 3 of a, which must be 0 to 2"),
        (LEVELS, ("a=2",), ("a=-1",), "has level -1 of a, which must be 0 to 2"),
        (LEVELS, ("a=2",), ("a=1", "a=1"), "names a twice"),
    ],
)
def test_a_validator_accepts_legal_values_and_describes_the_fault_of_others(
    validator: Validator,
    legal: PropertyValue,
    illegal: PropertyValue,
    reason: str,
) -> None:
    assert validator.problem(legal) is None
    assert validator.problem(illegal) == reason


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (None, None),
        (("a", "b"), "a,b"),
        (0.5, "0.5"),
        (1.0, "1.0"),
        (0.001, "0.001"),
        (0.0005, "5.0E-4"),
        (0.00001, "1.0E-5"),
        (-12345678.5, "-1.23456785E7"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (5e-324, "4.9E-324"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
        (-1, "-1"),
        ("", ""),
    ],
)
def test_a_value_is_shown_as_kafka_writes_it(value: PropertyValue, text: str | None) -> None:
    assert show(value) == text


def test_of_equal_entries_of_a_list_the_first_one_counts() -> None:
    policy = Property("cleanup.policy", LIST, (), "", ListOf(("compact", "delete")))

    assert policy.parse("compact, delete ,compact") == ("compact", "delete")
    assert policy.repeated("compact, delete ,compact,delete,compact") == ("compact", "delete")
    assert policy.repeated("compact") == ()


def test_a_password_is_never_shown() -> None:
    secret = Property("ssl.key.password", PropertyType.PASSWORD, None, "")

    assert secret.is_sensitive
    assert secret.show(secret.parse("swordfish")) is None


def test_a_table_cannot_be_changed() -> None:
    table = by_name(Property("a", INT, 1, "", synonyms=(Synonym("b", 2),)))

    with pytest.raises(TypeError):
        table["b"] = table["a"]  # type: ignore[index]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", None),
        ("10.0.0.5:3, host.example:0,[::1]:7,::1:8", None),
        ("10.0.0.5", "has 10.0.0.5 where host:number is expected"),
        ("10.0.0.5:3,:4", "has :4 where host:number is expected"),
        ("10.0.0.5:-1", "has 10.0.0.5:-1 where host:number is expected"),
        ("10.0.0.5:2147483648", "has 10.0.0.5:2147483648 where host:number is expected"),
    ],
)
def test_limits_of_addresses_are_pairs(text: str, fault: str | None) -> None:
    assert NumbersByHost().problem(text) == fault
