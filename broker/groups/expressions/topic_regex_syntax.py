r"""Reads a regular expression over topic names, of RE2's syntax, into a tree; `topic_regex` says which, and matches it.

A topic's name has letters, digits, dot, underscore and dash: a character of an expression is a set of those.
Source: RE2's syntax page.
"""

from __future__ import annotations

import string
import sys
from typing import Final, NamedTuple, TypeAlias

from barnabas.protocol.errors import BrokerError, ErrorCode

MAX_DEPTH: Final = 50
"""Groups within each other."""
MAX_REPEAT: Final = 1_000
"""As in RE2."""
_NAMES: Final = frozenset(string.ascii_letters + string.digits + "._-")
"""The characters of topic names: no other one has to be told from them."""

_DIGITS: Final = frozenset(string.digits)
_WORD: Final = frozenset(string.ascii_letters + string.digits + "_")
_CLASSES: Final = {"d": _DIGITS, "w": _WORD, "s": frozenset[str]()}
_POSIX: Final = {
    "alnum": frozenset(string.ascii_letters + string.digits),
    "alpha": frozenset(string.ascii_letters),
    "ascii": _NAMES,
    "digit": _DIGITS,
    "graph": _NAMES,
    "lower": frozenset(string.ascii_lowercase),
    "print": _NAMES,
    "punct": frozenset("._-"),
    "space": frozenset[str](),
    "upper": frozenset(string.ascii_uppercase),
    "word": _WORD,
    "xdigit": frozenset(string.hexdigits),
}
_HEXADECIMAL: Final = frozenset(string.hexdigits)
_CONTROL: Final = frozenset("afnrtv")


class Chars(NamedTuple):
    """One character of some."""

    accepted: frozenset[str]


class Edge(NamedTuple):
    """Where the name begins, or ends."""

    at_end: bool


class Sequence(NamedTuple):
    """One after the other."""

    parts: tuple[Node, ...]


class Either(NamedTuple):
    """Any of them."""

    options: tuple[Node, ...]


class Repeat(NamedTuple):
    """`most` None: as often as one likes."""

    what: Node
    least: int
    most: int | None


Node: TypeAlias = Chars | Edge | Sequence | Either | Repeat


def parse_topic_regex(expression: str) -> Node:
    """The tree. Raises BrokerError INVALID_REGULAR_EXPRESSION."""
    return _Parser(expression).parse()


def invalid_regex(expression: str, what: str) -> BrokerError:
    """Why it is none."""
    return BrokerError(
        ErrorCode.INVALID_REGULAR_EXPRESSION, f"{expression!r} is not a regular expression that is served: {what}"
    )


class _Parser:
    """Reads an expression from left to right."""

    def __init__(self, expression: str) -> None:
        self._text = expression
        self._at = 0
        self._depth = 0
        self._ignore_case = False

    def parse(self) -> Node:
        """The tree. Raises BrokerError."""
        tree = self._either()
        if self._at < len(self._text):
            raise self._wrong("a ) that closes nothing")
        return tree

    def _either(self) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._wrong(f"more than {MAX_DEPTH} groups within each other")
        options = [self._sequence()]
        while self._take("|"):
            options.append(self._sequence())
        self._depth -= 1
        return options[0] if len(options) == 1 else Either(tuple(options))

    def _sequence(self) -> Node:
        parts: list[Node] = []
        while self._at < len(self._text) and self._text[self._at] not in "|)":
            if self._take("\\Q"):
                parts += self._quoted()
                continue
            part = self._atom()
            if part is not None:
                parts.append(self._repeated(part))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _repeated(self, what: Node) -> Node:
        repeats = 0
        while True:
            if self._take("*"):
                what = Repeat(what, 0, None)
            elif self._take("+"):
                what = Repeat(what, 1, None)
            elif self._take("?"):
                what = Repeat(what, 0, 1)
            else:
                counts = self._counts()
                if counts is None:
                    return what
                what = Repeat(what, *counts)
            repeats += 1
            if repeats > 1:
                raise self._wrong("a repetition of a repetition")
            self._take("?")

    def _counts(self) -> tuple[int, int | None] | None:
        """{n}, {n,} or {n,m}; anything else in braces are characters."""
        end = self._text.find("}", self._at)
        if not self._text.startswith("{", self._at) or end < 0:
            return None
        low, comma, high = self._text[self._at + 1 : end].partition(",")
        if not (low.isdecimal() and low.isascii()) or (high and not (high.isdecimal() and high.isascii())):
            return None
        least, most = int(low), int(high) if high else (None if comma else int(low))
        if max(least, most or 0) > MAX_REPEAT or (most is not None and most < least):
            raise self._wrong(f"{self._text[self._at : end + 1]} is no repetition")
        self._at = end + 1
        return least, most

    def _atom(self) -> Node | None:
        """None: something that matches nothing by itself, as the flag (?i)."""
        character = self._next()
        if character == "(":
            return self._group()
        if character == "[":
            return self._characters(self._class())
        if character == ".":
            return Chars(_NAMES)
        if character in "^$":
            return Edge(character == "$")
        if character in "*+?":
            raise self._wrong(f"{character} has nothing to repeat")
        return self._escaped() if character == "\\" else self._characters(frozenset(character))

    def _group(self) -> Node | None:
        ignore_case = self._ignore_case
        if self._take("?"):
            if self._take("P<") or self._take("<"):
                end = self._text.find(">", self._at)
                if end < 0 or not self._text[self._at : end].isidentifier():
                    raise self._wrong("a group's name is not one")
                self._at = end + 1
            elif self._flags():
                return None
        tree = self._either()
        if not self._take(")"):
            raise self._wrong("a ( that is not closed")
        self._ignore_case = ignore_case
        return tree

    def _flags(self) -> bool:
        """Flags of a group; True: they are for the rest of the group that they are in."""
        on = True
        while True:
            character = self._next()
            if character == "-":
                on = False
            elif character == "i":
                self._ignore_case = on
            elif character in ":)":
                return character == ")"
            elif character not in "smU":
                raise self._wrong(f"(?{character} is not served")

    def _escaped(self) -> Node:
        character = self._next()
        if character == "A":
            return Edge(at_end=False)
        if character == "z":
            return Edge(at_end=True)
        return self._characters(self._escape(character))

    def _quoted(self) -> list[Node]:
        r"""What stands between \Q and \E, or the end; a repetition behind it is of the last character."""
        text, end, _ = self._text[self._at :].partition("\\E")
        self._at += len(text) + len(end)
        quoted: list[Node] = [self._characters(frozenset(each)) for each in text]
        if quoted:
            quoted[-1] = self._repeated(quoted[-1])
        return quoted

    def _escape(self, character: str) -> frozenset[str]:
        """What a backslash and `character` stand for, in a class as well."""
        if character in _CLASSES:
            return _CLASSES[character]
        if character.lower() in _CLASSES:
            return _NAMES - _CLASSES[character.lower()]
        if character == "x":
            return frozenset(self._hexadecimal())
        if character in _CONTROL:
            return frozenset()
        if character.isalnum():
            raise self._wrong(f"\\{character} is not served")
        return frozenset(character)

    def _hexadecimal(self) -> str:
        digits, braces, rest = "", self._take("{"), self._text[self._at :]
        if not braces:
            digits = rest[:2] if len(rest) > 1 else ""
            self._at += 2
        elif "}" in rest:
            digits = rest[: rest.index("}")]
            self._at += len(digits) + 1
        if not digits or not set(digits) <= _HEXADECIMAL or int(digits, 16) > sys.maxunicode:
            raise self._wrong("\\x without the number of a character")
        return chr(int(digits, 16))

    def _class(self) -> frozenset[str]:
        is_negated = self._take("^")
        accepted: set[str] = set()
        is_first = True
        while is_first or not self._take("]"):
            is_first = False
            if self._take("[:"):
                accepted |= self._posix()
                continue
            low = self._class_item()
            if self._text[self._at : self._at + 1] == "-" and self._text[self._at + 1 : self._at + 2] not in ("]", ""):
                self._at += 1
                high = self._class_item()
                if not isinstance(low, str) or not isinstance(high, str) or low > high:
                    raise self._wrong("a range of characters is none")
                accepted.update(each for each in _NAMES if low <= each <= high)
            else:
                accepted.update(low)
        if self._ignore_case:
            accepted = {each for character in accepted for each in (character.lower(), character.upper())}
        return _NAMES - accepted if is_negated else frozenset(accepted)

    def _class_item(self) -> str | frozenset[str]:
        character = self._next()
        if character != "\\":
            return character
        found = self._escape(self._next())
        return next(iter(found)) if len(found) == 1 else found

    def _posix(self) -> frozenset[str]:
        end = self._text.find(":]", self._at)
        name = self._text[self._at : end] if end >= 0 else ""
        accepted = _POSIX.get(name.removeprefix("^"))
        if accepted is None:
            raise self._wrong(f"there is no class [:{name}:]")
        self._at = end + 2
        return _NAMES - accepted if name.startswith("^") else accepted

    def _characters(self, accepted: frozenset[str]) -> Chars:
        if self._ignore_case:
            accepted = frozenset(each for character in accepted for each in (character.lower(), character.upper()))
        return Chars(accepted & _NAMES)

    def _next(self) -> str:
        if self._at >= len(self._text):
            raise self._wrong("it ends too early")
        self._at += 1
        return self._text[self._at - 1]

    def _take(self, text: str) -> bool:
        if not self._text.startswith(text, self._at):
            return False
        self._at += len(text)
        return True

    def _wrong(self, what: str) -> BrokerError:
        return invalid_regex(self._text, f"{what} (at character {self._at})")
