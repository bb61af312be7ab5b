r"""Regular expressions over topic names, matched by RE2 in time linear in the name.

Clients send expressions in RE2's syntax, and Kafka's brokers match them with RE2/J. Python's `re` backtracks: one
hostile expression would stop the event loop for hours. An expression has to match the whole name.

RE2 and RE2/J 1.8 accept the same expressions and match the same names, with these exceptions:

    \C (one byte)       refused here as RE2/J refuses it
    {* {+ {? {{2}       a repeated literal brace: RE2/J refuses it, RE2 accepts it; no topic name has a brace
    \é                  an escaped letter outside ASCII: RE2 refuses it, RE2/J accepts it
    (?P<n>a)(?P<n>b)    two groups of one name, or a name outside ASCII: RE2/J refuses them, RE2 accepts them
    (a{100}){100}       counts of nested repetitions: RE2 refuses more than 1,000 in all, RE2/J more than that each

Three bounds are ours: the length of an expression, the memory of its compiled form, and the processor time of slow
matches. Source: RE2's syntax page; Kafka's TopicRegexResolver.
"""

from __future__ import annotations

import re
import time
from functools import cache, lru_cache
from typing import Any, Final

from barnabas.protocol.errors import BrokerError, ErrorCode

MAX_LENGTH: Final = 1_000
"""Characters of an expression."""
MAX_MEMORY_BYTES: Final = 256 * 1024
"""Of one compiled expression with its states. RE2 refuses a larger program, and drops states it does not need."""
MAX_SLOW_SECONDS: Final = 0.04
"""Processor time of the event loop that slow matches may take in all, as long as the expression is cached."""

SLOW_SECONDS: Final = 50e-6
"""A match that takes longer is slow. Ordinary expressions take some microseconds for a name."""

_QUOTED_OR_ESCAPED: Final = re.compile(r"\\Q.*?(?:\\E|\Z)|\\.", re.DOTALL)


@lru_cache(maxsize=256)
def topic_regex(expression: str) -> TopicRegex:
    """Return the compiled expression. Raises BrokerError INVALID_REGULAR_EXPRESSION."""
    if len(expression) > MAX_LENGTH:
        raise _invalid(expression[:40] + "...", f"it is longer than {MAX_LENGTH} characters")
    return TopicRegex(expression)


class TopicRegex:
    """One compiled expression."""

    def __init__(self, expression: str) -> None:
        import re2  # 10 ms and 3 MB that only brokers with expressions need

        self._expression = expression
        self._slow_seconds = 0.0
        if "\\C" in _QUOTED_OR_ESCAPED.findall(expression):
            raise _invalid(expression, r"invalid escape sequence: \C")
        try:
            self._fullmatch = re2.compile(expression, _options()).fullmatch
        except re2.error as error:
            raise _invalid(expression, _text_of(error)) from error
        except UnicodeEncodeError as error:
            raise _invalid(expression, "it is not valid Unicode") from error

    def matches(self, name: str) -> bool:
        """Return whether the whole name matches.

        Raises BrokerError INVALID_REGULAR_EXPRESSION once slow matches have used up MAX_SLOW_SECONDS.
        """
        if self._slow_seconds > MAX_SLOW_SECONDS:
            raise _invalid(self._expression, "matching takes too long")
        started = time.thread_time()
        found = self._fullmatch(name) is not None
        taken = time.thread_time() - started
        if taken > SLOW_SECONDS:
            self._slow_seconds += taken
        return found


@cache
def _options() -> Any:
    import re2

    options = re2.Options()
    options.max_mem = MAX_MEMORY_BYTES
    options.never_capture = True  # captures would cost a second, slower pass
    options.log_errors = False
    return options


def _text_of(error: Exception) -> str:
    """Return RE2's message, which the wheel passes on as bytes."""
    message = error.args[0] if error.args else ""
    return message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)


def _invalid(expression: str, reason: str) -> BrokerError:
    return BrokerError(
        ErrorCode.INVALID_REGULAR_EXPRESSION, f"{expression!r} is not a regular expression that is served: {reason}"
    )
