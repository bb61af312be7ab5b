r"""Regular expressions from outside, matched by RE2: in time linear in the text, whatever the pattern.

Operators, clients and other clusters supply patterns, and the texts that are matched with them. Python's `re`
backtracks, and holds the interpreter meanwhile: `(a+)+b` and a name of 40 characters stop a broker for good.

The syntax is RE2's. It has no look-around and no back references; \d, \w and \s are ASCII. Different from RE2, \C (one
byte) is refused, as RE2/J refuses it. Bounds: the length of a pattern, the memory of its compiled form, and, in
`Regex`, the processor time of slow matches.

`java=True` is for properties and options whose patterns are Java's in Kafka or Spark. RE2 refuses most of what only
Java has; what it would accept with another meaning is refused here: [a[b]], [a&&b], \v, and the flag U. Two
differences remain: `.` also matches line ends other than \n, and (?i) also folds letters outside ASCII.
"""

from __future__ import annotations

import re
import time
from functools import lru_cache
from typing import Any, Final

MAX_LENGTH: Final = 1_000
"""Characters of a client's pattern."""
OPERATORS_MAX_LENGTH: Final = 2**15 - 1
"""Characters of an operator's pattern, which may list many names."""
MAX_MEMORY_BYTES: Final = 256 * 1024
"""Of one compiled pattern with its states. RE2 refuses a larger program, and drops states it does not need."""
MAX_SLOW_SECONDS: Final = 0.04
"""Processor time that slow matches of one `Regex` may take in all."""
SLOW_SECONDS: Final = 50e-6
"""A match that takes longer is slow. Ordinary patterns take some microseconds for a name."""

_JAVAS: Final = {
    "[": "a class in a class",
    "&&": "an intersection of classes",
    r"\v": r"\v, which is a class in Java",
    "U": "the flag U",
}


class RegexError(ValueError):
    """A pattern that is not served, or whose matches take too long; the message is a clause that quotes it."""

    def __init__(self, pattern: str, reason: str) -> None:
        shown = pattern if len(pattern) <= MAX_LENGTH else f"{pattern[:40]}..."
        super().__init__(f"{shown!r} is not a regular expression that is served: {reason}")


class Regex:
    """One pattern, with a limit on the time of its slow matches."""

    __slots__ = ("_compiled", "_pattern", "_slow_seconds")

    def __init__(self, pattern: str, *, max_length: int = OPERATORS_MAX_LENGTH, java: bool = False) -> None:
        """Raises RegexError."""
        self._compiled = compiled(pattern, max_length=max_length, java=java)
        self._pattern = pattern
        self._slow_seconds = 0.0

    def matches(self, text: str) -> bool:
        """Return whether the whole text matches; one with a lone surrogate, which no UTF-8 has, does not.

        Raises RegexError once slow matches have used up MAX_SLOW_SECONDS.
        """
        if self._slow_seconds > MAX_SLOW_SECONDS:
            raise RegexError(self._pattern, "matching takes too long")
        started = time.thread_time()
        try:
            found = self._compiled.fullmatch(text) is not None
        except UnicodeEncodeError:
            found = False
        taken = time.thread_time() - started
        if taken > SLOW_SECONDS:
            self._slow_seconds += taken
        return found


@lru_cache(maxsize=256)
def compiled(pattern: str, *, max_length: int = OPERATORS_MAX_LENGTH, java: bool = False, groups: bool = False) -> Any:
    """Return RE2's object of a pattern. `groups`: whether its groups are read, which costs a slower pass.

    Raises RegexError.
    """
    if len(pattern) > max_length:
        raise RegexError(pattern, f"it is longer than {max_length} characters")
    special = _special_in(pattern)
    if r"\C" in special:
        raise RegexError(pattern, r"invalid escape sequence: \C")
    if java and (only := next((text for mark, text in _JAVAS.items() if mark in special), None)):
        raise RegexError(pattern, f"it has {only}, and RE2 would read that differently")
    import re2  # 10 ms and 3 MB, which most processes do not need

    options = re2.Options()
    options.max_mem = MAX_MEMORY_BYTES
    options.never_capture = not groups
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raise RegexError(pattern, f"{_text_of(error)}; the syntax is RE2's") from error
    except UnicodeEncodeError as error:
        raise RegexError(pattern, "it is not valid Unicode") from error


_PIECES: Final = r"\\Q.*?(?:\\E|\Z)|\\.|\(\?[a-zA-Z]*U|\[\^?\]?|\]|&&"


def _special_in(pattern: str) -> set[str]:
    """Return the escapes of a pattern, and of _JAVAS what it has, outside of quotes."""
    found = set()
    is_in_class = False
    for piece in re.findall(_PIECES, pattern, re.DOTALL):
        if piece.startswith("["):
            if is_in_class:
                found.add("[")
            is_in_class = True
        elif piece == "]":
            is_in_class = False
        elif piece.startswith("(?"):
            found.add("" if is_in_class else "U")
        elif piece != "&&" or is_in_class:
            found.add(piece)
    return found


def _text_of(error: Exception) -> str:
    """Return RE2's message, which the wheel passes on as bytes."""
    message = error.args[0] if error.args else ""
    return message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)
