"""Regular expressions over topic names match like Python's `re`, in linear time, with clear errors."""

from __future__ import annotations

import re
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.groups.expressions.topic_regex import topic_regex
from barnabas.config.regex import MAX_SLOW_SECONDS
from barnabas.protocol.errors import BrokerError, ErrorCode

ATOMS = st.sampled_from(["a", "b", "-", r"\.", ".", "[ab]", "[^a]", "[a-c0-9]", r"\d", r"\w", "^", "$", "(?:ab)", "x_"])
EXPRESSIONS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"(?:{pair[0]}|{pair[1]})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{0,2}", "{1,}", "*?"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        ),
    ),
    max_leaves=8,
)
NAMES = st.text("abcx_-.09", min_size=1, max_size=8)


@given(EXPRESSIONS, st.lists(NAMES, max_size=8))
def test_it_matches_what_python_matches(expression: str, names: list[str]) -> None:
    expected = re.compile(expression)
    mine = topic_regex(expression)
    for name in names:
        assert mine.matches(name) is (expected.fullmatch(name) is not None), name


@pytest.mark.parametrize(
    ("expression", "name", "expected"),
    [
        ("orders", "orders", True),
        ("order", "orders", False),
        (r"\Qa.b\E.*", "a.bc", True),
        (r"\Qa.b\E.*", "axbc", False),
        (r"\Qab\E+", "abbb", True),
        (r"\Qab\E+", "abab", False),
        (r"\Q\Ea", "a", True),
        (r"\Qa", "a", True),
        (r"\Aa\z", "a", True),
        (r"\x61\x{62}", "ab", True),
        ("(?i)ORDERS", "orders", True),
        ("(?i:O)rders", "Orders", True),
        ("(?i:O)rders", "ORDERS", False),
        ("(?P<name>a)(b)", "ab", True),
        ("[[:alpha:]_]+", "a_b", True),
        ("[[:^digit:]]", "1", False),
        (r"[\d.-]+", "1.0-2", True),
        ("[]a]", "a", True),
        ("a{,2}", "a", False),
        (r"\pL+", "ab", True),
        (r"a\b-.*", "a-b", True),
        (r"\Q\C\E|a", "a", True),
        (r"\\C|a", "a", True),
        ("(" * 60 + "a" + ")" * 60, "a", True),
    ],
)
def test_syntax_of_re2_that_python_lacks(expression: str, name: str, expected: bool) -> None:
    assert topic_regex(expression).matches(name) is expected


@pytest.mark.parametrize(
    "expression",
    [
        "(",
        ")",
        "a)",
        "[a",
        "*",
        "a**",
        "(?=a)",
        "(?<!a)b",
        r"\1",
        r"\C",
        r"a\\\C",
        r"\Z",
        "a{1001}",
        "a{3,2}",
        "\\",
        "[b-a]",
        "(?x)a",
        "[[:none:]]",
        r"\x",
        r"\x4",
        r"\x+4",
        r"\x{41",  # made the parser start again from the beginning, forever
        r"\x{4141",
        r"\x{}",
        r"\x{4_1}",
        r"\x{110000}",
        r"\Q\E*",
        "(?P<>a)",
        "a" * 1001,
        "(((a{1000}){1000}){1000}){1000}",
    ],
)
def test_invalid_expressions_are_refused(expression: str) -> None:
    with pytest.raises(BrokerError) as caught:
        topic_regex(expression)
    assert caught.value.code == ErrorCode.INVALID_REGULAR_EXPRESSION


@given(st.text("()[]{}*+?|\\^$.-:<>Pi014,QEx a", max_size=20))
def test_any_text_is_matched_or_refused(expression: str) -> None:
    code = None
    try:
        topic_regex(expression).matches("abc")
    except BrokerError as error:
        code = error.code
    assert code in (None, ErrorCode.INVALID_REGULAR_EXPRESSION)


@pytest.mark.parametrize(
    "expression",
    ["(a*)*b", "(a|a)*b", "(.*)*(.*)*b", "(a?){200}a{200}", "((a{0,30}){0,30})b", "(?:(?:.?){0,30}){0,30}b"],
)
def test_expressions_that_make_re_backtrack_for_ever_take_a_moment(expression: str) -> None:
    topic_regex.cache_clear()  # one of them may have been refused after many matches
    assert topic_regex(expression).matches("a" * 249) is (expression == "(a?){200}a{200}")


@pytest.mark.parametrize("expression", ["(?:(?:.?){0,30}){0,30}b", "(?:(?:a|b)*a(?:a|b){90}|" * 8 + "x" + ")" * 8])
def test_an_expression_that_takes_too_long_is_refused_while_it_matches_and_from_then_on(expression: str) -> None:
    topic_regex.cache_clear()
    regex = topic_regex(expression)
    random = Random(1)
    names = ["".join(random.choices("ab", k=249)) for _ in range(10_000)]
    with pytest.raises(BrokerError, match="takes too long") as caught:
        list(map(regex.matches, names))
    assert caught.value.code == ErrorCode.INVALID_REGULAR_EXPRESSION
    with pytest.raises(BrokerError, match="takes too long"):
        topic_regex(expression).matches("a")


def test_ordinary_expressions_may_be_used_for_ever() -> None:
    regex = topic_regex(r"(orders|invoices)-[a-z]+-\d{1,4}")
    for number in range(20_000):
        assert regex.matches(f"orders-eu-{number % 10_000}")
    assert regex._regex._slow_seconds < MAX_SLOW_SECONDS / 2


def test_large_expressions_are_refused_before_they_take_memory() -> None:
    with pytest.raises(BrokerError, match="too large"):
        topic_regex(r"\pL{1000}")
