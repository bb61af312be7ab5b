r"""Parser of sasl.jaas.config: `<module class> <flag> <option>="<value>" ... ;`.

Tokens are those of Java's StreamTokenizer as Kafka's JaasConfig sets it: words of letters, digits and . - _ $; values
in double or single quotes, which the end of a line also closes, with Java's escapes (\n, \", \101); // and /* */ and,
outside of quotes, any / begin a comment. A value that begins with a digit, a dot or a minus needs quotes. The entry of
a property has exactly one module. Messages of errors contain no values, and no word that may be the rest of a badly
quoted one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from barnabas.config.security.secret import HIDDEN

PLAIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
OAUTHBEARER_MODULE: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"

_FLAGS: Final = frozenset({"required", "requisite", "sufficient", "optional"})
_TOKEN: Final = r"""(?P<skipped>[\0-\ ]+|/\*.*?(?:\*/|\Z)|//[^\r\n]*|/[^*/][^\r\n]*|/\Z)
    |(?P<quoted>"(?P<double>(?:\\.|[^"\\\r\n])*)(?:"|(?=[\r\n])|\Z)
              |'(?P<single>(?:\\.|[^'\\\r\n])*)(?:'|(?=[\r\n])|\Z))
    |(?P<word>[A-Za-z_$\u00a0-\U0010ffff][A-Za-z0-9._$\-\u00a0-\U0010ffff]*)
    |(?P<other>.)"""
_ESCAPE: Final = r"\\([0-3]?[0-7]{1,2}|.)"
_WRITTEN_ESCAPES: Final = {"\\": "\\\\", '"': '\\"', "'": "\\'", "\n": "\\n", "\r": "\\r"}  # the backslash first
_ESCAPES: Final = {"a": "\x07", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\x0b"}


class JaasError(ValueError):
    """A text that Kafka's parser refuses; `str(error)` ends a sentence that names the property."""


class JaasEntry(NamedTuple):
    """A login module with its options, which contain passwords."""

    module: str
    flag: str
    options: Mapping[str, str]

    def __repr__(self) -> str:
        return f"JaasEntry({self.module} {self.flag} {HIDDEN})"


class _Token(NamedTuple):
    text: str
    is_text: bool
    """Whether it is a word or a quoted text, which may be a name or a value."""


def parse_jaas(text: str) -> JaasEntry:
    """Parse the one login module of a property. Raises JaasError."""
    tokens = _tokens(text)
    entries = []
    while (first := next(tokens, None)) is not None:
        entries.append(_entry(first, tokens))
    if not entries:
        raise JaasError("it has no login module")
    if len(entries) > 1:
        raise JaasError(f"it has {len(entries)} login modules instead of one")
    return entries[0]


def _entry(first: _Token, tokens: Iterator[_Token]) -> JaasEntry:
    if not first.is_text:
        raise JaasError("it does not begin with the class of a login module")
    flag = next(tokens, None)
    if flag is None or flag.text.lower() not in _FLAGS:
        raise JaasError("the login module's class must be followed by required, requisite, sufficient or optional")
    options: dict[str, str] = {}
    last = "the flag"
    for key in tokens:
        if key == _Token(";", False):
            return JaasEntry(first.text, flag.text.lower(), options)
        equals, value = next(tokens, None), next(tokens, None)
        if not key.is_text or equals != _Token("=", False) or value is None or not value.is_text:
            raise JaasError(f'after {last}, an option is not of the form name="value"; is a quote missing?')
        options[key.text] = value.text
        last = f"option {len(options)}"
    raise JaasError("it does not end with a semicolon")


def _tokens(text: str) -> Iterator[_Token]:
    # Compiled here: a start without SASL should not wait for it.
    for match in re.finditer(_TOKEN, text, re.VERBOSE | re.DOTALL):
        if match.lastgroup == "quoted":
            body = match["double"] if match["single"] is None else match["single"]
            yield _Token(re.sub(_ESCAPE, _unescape, body, flags=re.DOTALL), True)
        elif match.lastgroup != "skipped":
            yield _Token(match[0], match.lastgroup == "word")


def _unescape(match: re.Match[str]) -> str:
    escaped = match[1]
    return chr(int(escaped, 8)) if escaped[0] in "01234567" else _ESCAPES.get(escaped, escaped)


def password_entry(module: str, user: str, password: str) -> str:
    """Return the line of a client that logs in with a password; `parse_jaas` reads it."""
    return f'{module} required username="{escaped(user)}" password="{escaped(password)}";'


def escaped(value: str) -> str:
    """Return a value as it is written between quotes."""
    for character, escape in _WRITTEN_ESCAPES.items():
        value = value.replace(character, escape)
    return value


def quoted_ranges(text: str) -> list[range]:
    """Return the positions of quoted values, with their quotes."""
    tokens = re.finditer(_TOKEN, text, re.VERBOSE | re.DOTALL)
    return [range(*match.span()) for match in tokens if match.lastgroup == "quoted"]
