"""JAAS lines as Kafka's parser takes them, and errors that show no password."""

from __future__ import annotations

import pytest

from barnabas.config.security.jaas import PLAIN_MODULE, SCRAM_MODULE, JaasError, parse_jaas, password_entry


def test_a_login_module_has_its_options() -> None:
    entry = parse_jaas(f'{SCRAM_MODULE} required\n  username="alice" password="a;b=c d" tokenauth=true;')

    assert (entry.module, entry.flag) == (SCRAM_MODULE, "required")
    assert entry.options == {"username": "alice", "password": "a;b=c d", "tokenauth": "true"}
    assert "a;b=c d" not in f"{entry} {entry!r}"


@pytest.mark.parametrize(
    ("quoted", "value"),
    [
        (r'"a\"b"', 'a"b'),
        (r"'a\'b'", "a'b"),
        ("'a\"b'", 'a"b'),
        (r'"a\\b"', r"a\b"),
        (r'"\101\7\t"', "A\x07\t"),
        (r'"\400"', "\x200"),
        ('"//not a comment"', "//not a comment"),
        ('""', ""),
        ('"ä€😀"', "ä€😀"),
        ("bare-word_1.$x", "bare-word_1.$x"),
        ('"closed by the line\n', "closed by the line"),
        ("/ a comment\n'x'", "x"),
        ("/\n a comment, too\n'x'", "x"),
    ],
)
def test_values_are_quoted_and_escaped_as_in_java(quoted: str, value: str) -> None:
    assert parse_jaas(f"{PLAIN_MODULE} REQUIRED user_x={quoted};").options == {"user_x": value}


def test_comments_are_skipped() -> None:
    entry = parse_jaas(f"/* one */ {PLAIN_MODULE} // two\nrequired / three\n user_a=b;")

    assert entry.options == {"user_a": "b"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "it has no login module"),
        ("// only a comment", "it has no login module"),
        ("a required; b required;", "it has 2 login modules instead of one"),
        ("; ", "it does not begin with the class of a login module"),
        ("a", "the login module's class must be followed by required, requisite, sufficient or optional"),
        ("a often;", "the login module's class must be followed by required, requisite, sufficient or optional"),
        ('a required user_x="swordfish"', "it does not end with a semicolon"),
        (
            'a required user_x="x" user_y="a"swordfish";',
            'after option 2, an option is not of the form name="value"; is a quote missing?',
        ),
        ("a required user_x=123swordfish;", 'after the flag, an option is not of the form name="value"; '),
        ("a required user_x;", 'after the flag, an option is not of the form name="value"; '),
        ("a required user_x", 'after the flag, an option is not of the form name="value"; '),
        ('a required user_x="swordfish\n";', 'after option 1, an option is not of the form name="value"; '),
        ('a required user_x="swordfish', "it does not end with a semicolon"),
        ("a required /* user_x=swordfish;", "it does not end with a semicolon"),
    ],
)
def test_bad_lines_are_refused_without_their_secrets(text: str, sentence: str) -> None:
    with pytest.raises(JaasError) as caught:
        parse_jaas(text)

    assert str(caught.value).startswith(sentence)
    assert "swordfish" not in str(caught.value)


@pytest.mark.parametrize("password", ["simple", 'with "quotes" \\ and = signs;', "lines\nand\rreturns", "\\n"])
def test_a_written_entry_is_read_back(password: str) -> None:
    entry = parse_jaas(password_entry(SCRAM_MODULE, "alice", password))

    assert (entry.module, entry.options) == (SCRAM_MODULE, {"username": "alice", "password": password})
