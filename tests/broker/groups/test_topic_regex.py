"""Expressions over topic names: what Python's `re` matches, in linear time, and clear refusals."""

from __future__ import annotations

import re
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.broker.groups.expressions.topic_regex import topic_regex
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
    ],
)
def test_what_re2_has_beside_that(expression: str, name: str, expected: bool) -> None:
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
        r"\pL",
        r"\b",
        "a{1001}",
        "a{3,2}",
        "\\",
        "[b-a]",
        "(?x)a",
        "[[:none:]]",
        r"\x",
        r"\x4",
        r"\x+4",
        r"\x{41",  # read from its beginning again, for ever
        r"\x{4141",
        r"\x{}",
        r"\x{4_1}",
        r"\x{110000}",
        r"\Q\E*",
        "a" * 1001,
        "(" * 60 + ")" * 60,
        "(((a{1000}){1000}){1000}){1000}",
        "(?P<1>a)",
    ],
)
def test_what_is_none_is_refused(expression: str) -> None:
    with pytest.raises(BrokerError) as caught:
        topic_regex(expression)
    assert caught.value.code == ErrorCode.INVALID_REGULAR_EXPRESSION


@given(st.text("()[]{}*+?|\\^$.-:<>Pi014,QEx a", max_size=20))
def test_whatever_comes_is_an_expression_or_refused(expression: str) -> None:
    code = None
    try:
        topic_regex(expression).matches("abc")
    except BrokerError as error:
        code = error.code
    assert code in (None, ErrorCode.INVALID_REGULAR_EXPRESSION)


@pytest.mark.parametrize("expression", ["(a*)*b", "(a|a)*b", "(.*)*(.*)*b", "(a?){200}a{200}", "((a{0,30}){0,30})b"])
def test_an_expression_that_would_take_others_for_ever_takes_no_more_steps_than_the_name_has(expression: str) -> None:
    regex = topic_regex(expression)
    regex.matches("a" * 249)
    assert len(regex._steps) <= 249, "each character is one step, and made once"


def test_an_expression_of_too_many_states_is_refused_while_it_matches() -> None:
    regex = topic_regex("(a|b)*a(a|b){300}")
    random = Random(1)
    names = ["".join(random.choices("ab", k=249)) for _ in range(1000)]
    with pytest.raises(BrokerError, match="too many steps") as caught:
        list(map(regex.matches, names))
    assert caught.value.code == ErrorCode.INVALID_REGULAR_EXPRESSION


def test_a_state_that_is_met_again_is_one_object_and_is_not_compared_node_by_node() -> None:
    regex = topic_regex(".*" * 300)
    assert regex.matches("abab")
    assert len({id(state) for state in regex._steps.values()}) == len(set(regex._steps.values())) == 1
