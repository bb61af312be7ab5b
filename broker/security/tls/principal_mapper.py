"""ssl.principal.mapping.rules: from the distinguished name of a client's certificate to the name of its principal.

    DEFAULT | RULE:pattern/replacement/[L|U] , ...

The first rule whose pattern matches the whole name decides; the result is Java's `name.replaceAll(pattern,
replacement)`, in lower or upper case on request. Source: Kafka's SslPrincipalMapper.

Patterns are Java's there and RE2's here (config.regex): a client's certificate cannot stall the event loop. Names are
matched as in Java all the same: `.` matches no line end, and (?i) folds letters of ASCII only, else the Kelvin sign
would be a k, and somebody else the administrator.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from barnabas.config.regex import RegexError, compiled

DEFAULT_RULES: Final = "DEFAULT"

_RULE: Final = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?).*?|(?:.*?)"
_SPLITTER: Final = re.compile(rf"\s*({_RULE})\s*(?:,\s*|$)")
_PARSER: Final = re.compile(_RULE)
_DIGITS: Final = "0123456789"

_LINE_ENDS: Final = str.maketrans("\r\x85\u2028\u2029", "\n" * 4)
"""What Java's `.` does not match, as what RE2's does not match."""
_FOLDED: Final = str.maketrans("\u212a\u017f", "\ufffd" * 2)
"""What RE2 takes for a k or an s, as something that is no letter."""
_IGNORES_CASE: Final = r"\(\?[a-zA-Z]*i"
_NOT_ASCII: Final = r"[^\0-\x7f]|\\[xpP]"


class MappingRuleError(ValueError):
    """A rule that is not one of Kafka's, or whose pattern or replacement cannot be used."""


class NoMatchingRuleError(Exception):
    """No rule matches a distinguished name: the client is not authenticated."""


class PrincipalMapper:
    """The rules in their order."""

    def __init__(self, rules: str) -> None:
        """Raises MappingRuleError."""
        self._rules = [rule for rule in map(_parse, _split(rules)) if rule is not None]

    def name(self, distinguished_name: str) -> str:
        """Return the principal's name. Raises NoMatchingRuleError."""
        for rule in self._rules:
            found = rule.apply(distinguished_name)
            if found is not None:
                return found
        raise NoMatchingRuleError(f"no rule of ssl.principal.mapping.rules applies to {distinguished_name}")


class _Rule(NamedTuple):
    pattern: Any
    """Of re2, which has no types; None: DEFAULT."""
    read_as: Mapping[int, int] = {}
    """Characters of a name that the pattern shall see as others."""
    replacement: tuple[str | int, ...] = ()
    """Literal texts and numbers of groups."""
    case: str = ""

    def apply(self, name: str) -> str | None:
        if self.pattern is None:
            return name
        read = name.translate(self.read_as)
        if self.pattern.fullmatch(read) is None:
            return None
        replaced = self._replace_all(name, read)
        return replaced.lower() if self.case == "L" else replaced.upper() if self.case == "U" else replaced

    def _replace_all(self, name: str, read: str) -> str:
        """As Java's replaceAll: a pattern that matches nothing more at the end still matches the empty rest."""
        parts: list[str] = []
        position = 0
        for match in self.pattern.finditer(read):
            parts.append(name[position : match.start()])
            # The span of a group that took no part is (-1, -1).
            parts.extend(part if isinstance(part, str) else name[slice(*match.span(part))] for part in self.replacement)
            position = match.end()
        parts.append(name[position:])
        return "".join(parts)


def _split(rules: str) -> list[str]:
    return [match.group(1) for match in _SPLITTER.finditer(rules.strip())]


def _parse(rule: str) -> _Rule | None:
    match = _PARSER.match(rule)
    if match is None or match.end() != len(rule):
        unmatched = rule if match is None else rule[match.end() :]
        raise MappingRuleError(
            f"{rule!r} is not a rule: {unmatched!r} is neither DEFAULT nor RULE:pattern/replacement/"
        )
    if match.group(1) is not None:
        return _Rule(None)
    if match.group(2) is None:
        return None  # Kafka ignores empty rules
    read_as = _LINE_ENDS
    if re.search(_IGNORES_CASE, match.group(2)) is not None:
        if re.search(_NOT_ASCII, match.group(2)) is not None:
            raise MappingRuleError(f"{rule!r}: beside (?i), the pattern may name characters of ASCII only")
        read_as = read_as | _FOLDED
    try:
        pattern = compiled(match.group(2), java=True, groups=True)
    except RegexError as error:
        raise MappingRuleError(f"{rule!r}: {error}") from error
    return _Rule(pattern, read_as, _replacement(match.group(3), pattern.groups, rule), match.group(4))


def _replacement(text: str, groups: int, rule: str) -> tuple[str | int, ...]:
    r"""Parse Java's replacement: `$n` is a group, `\x` is x. A number beyond the groups is literal.

    Of `$12` with three groups Java takes `$1` and a literal 2. Without any group a number is an error.
    """
    parts: list[str | int] = []
    position = 0
    while position < len(text):
        character = text[position]
        if character == "\\":
            if position + 1 == len(text):
                raise MappingRuleError(f"{rule!r}: the replacement ends with a backslash")
            parts.append(text[position + 1])
            position += 2
        elif character == "$":
            number, position = _group(text, position + 1, groups, rule)
            parts.append(number)
        else:
            parts.append(character)
            position += 1
    return tuple(parts)


def _group(text: str, position: int, groups: int, rule: str) -> tuple[str | int, int]:
    """Return a group's number, or a literal `$`, and the position after it."""
    if position == len(text) or text[position] not in _DIGITS:
        raise MappingRuleError(f"{rule!r}: a $ in the replacement is not followed by a group's number")
    number = int(text[position])
    if number > groups:
        if not groups:
            raise MappingRuleError(f"{rule!r}: the replacement has ${number}, and the pattern has no group")
        return "$", position
    position += 1
    while position < len(text) and text[position] in _DIGITS and number * 10 + int(text[position]) <= groups:
        number = number * 10 + int(text[position])
        position += 1
    return number, position
