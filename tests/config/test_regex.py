"""Regular expressions from outside: bounded in time and memory, and refused where Java means something else."""

from __future__ import annotations

import pytest

from barnabas.config.regex import OPERATORS_MAX_LENGTH, Regex, RegexError, compiled


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|a)*b", "(a*)*b", "(.*)*(.*)*b"])
def test_a_pattern_that_makes_re_backtrack_for_ever_takes_a_moment(pattern: str) -> None:
    assert not Regex(pattern).matches("a" * 30_000)
    assert Regex(pattern).matches("a" * 30_000 + "b")


def test_the_whole_text_has_to_match() -> None:
    assert [Regex("ab").matches(each) for each in ("ab", "abc", "cab", "ab\n")] == [True, False, False, False]


def test_a_list_of_many_names_is_served() -> None:
    names = [f"topic-{number:06}" for number in range(2_000)]
    assert all(map(Regex("|".join(names)).matches, names))


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("(", "'(' is not a regular expression that is served: missing ): (; the syntax is RE2's"),
        ("(?=a)", "invalid perl operator: (?=; the syntax is RE2's"),
        (r"\C", r"invalid escape sequence: \C"),
        ("\ud800", "it is not valid Unicode"),
        ("a" * (OPERATORS_MAX_LENGTH + 1), "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa...' is not"),
        (r"\pL{1000}", "too large"),
    ],
)
def test_a_pattern_that_is_not_served_is_quoted_with_the_reason(pattern: str, reason: str) -> None:
    with pytest.raises(RegexError) as refused:
        compiled(pattern)
    assert reason in str(refused.value)
    assert len(str(refused.value)) < 200


def test_a_text_that_no_utf_8_has_does_not_match() -> None:
    assert not Regex(".*").matches("\ud800")


@pytest.mark.parametrize("pattern", ["[a-z&&[^b]]", "[a[bc]]", "[[:alpha:]]", "[^]&&a]", r"a\v", "(?U)a", "(?sU:a)"])
def test_what_java_reads_differently_is_refused_where_patterns_are_javas(pattern: str) -> None:
    compiled(pattern)
    with pytest.raises(RegexError, match="and RE2 would read that differently"):
        compiled(pattern, java=True)


@pytest.mark.parametrize("pattern", [r"[a\[?]", "[]a]&&[b]", r"\Q[[&&\E", r"\[[&]", "(?i)[a-z]", "[(?U]", "a&&b"])
def test_what_only_looks_like_javas_is_served(pattern: str) -> None:
    compiled(pattern, java=True)
