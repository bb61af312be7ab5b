"""ssl.principal.mapping.rules: from the distinguished name of a client's certificate to the name of its principal.

    DEFAULT | RULE:pattern/replacement/[L|U] , ...

The first rule whose pattern matches the whole name decides; the result is Java's `name.replaceAll(pattern,
replacement)`, in lower or upper case on request. Source: Kafka's SslPrincipalMapper.

Patterns are Java's there and google-re2's here, which has no backtracking: a client's certificate cannot stall the
event loop. A pattern that re2 does not have (look-around, back references) is refused.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

DEFAULT_RULES: Final = "DEFAULT"

_RULE: Final = r"(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?).*?|(?:.*?)"
_SPLITTER: Final = re.compile(rf"\s*({_RULE})\s*(?:,\s*|$)")
_PARSER: Final = re.compile(_RULE)
_DIGITS: Final = "0123456789"


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
    replacement: tuple[str | int, ...] = ()
    """Literal texts and numbers of groups."""
    case: str = ""

    def apply(self, name: str) -> str | None:
        if self.pattern is None:
            return name
        if self.pattern.fullmatch(name) is None:
            return None
        replaced = _replace_all(self.pattern, self.replacement, name)
        return replaced.lower() if self.case == "L" else replaced.upper() if self.case == "U" else replaced


def _replace_all(pattern: Any, replacement: tuple[str | int, ...], name: str) -> str:
    """As Java's replaceAll: a pattern that matches nothing more at the end still matches the empty rest."""
    parts: list[str] = []
    position = 0
    for match in pattern.finditer(name):
        parts.append(name[position : match.start()])
        parts.extend(part if isinstance(part, str) else match.group(part) or "" for part in replacement)
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
    import re2  # 10 ms and 3 MB, which only brokers with rules need

    options = re2.Options()
    options.log_errors = False
    try:
        pattern = re2.compile(match.group(2), options)
    except re2.error as error:
        raise MappingRuleError(f"{rule!r}: the pattern cannot be used: {_text(error)}") from error
    return _Rule(pattern, _replacement(match.group(3), pattern.groups, rule), match.group(4))


def _text(error: Exception) -> str:
    reason = error.args[0] if error.args else ""
    return reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)


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
