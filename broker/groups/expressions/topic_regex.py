r"""Regular expressions over topic names and transactional ids, which have to match the whole name.

Clients send expressions in RE2's syntax, and Kafka's brokers match them with RE2/J. RE2 and RE2/J 1.8 accept the same
expressions and match the same names, with these exceptions:

    {* {+ {? {{2}       a repeated literal brace: RE2/J refuses it, RE2 accepts it; no topic name has a brace
    \é                  an escaped letter outside ASCII: RE2 refuses it, RE2/J accepts it
    (?P<n>a)(?P<n>b)    two groups of one name, or a name outside ASCII: RE2/J refuses them, RE2 accepts them
    (a{100}){100}       counts of nested repetitions: RE2 refuses more than 1,000 in all, RE2/J more than that each

Source: RE2's syntax page; Kafka's TopicRegexResolver.
"""

from __future__ import annotations

from functools import lru_cache

from barnabas.config.regex import MAX_LENGTH, Regex, RegexError
from barnabas.protocol.errors import BrokerError, ErrorCode


@lru_cache(maxsize=256)
def topic_regex(expression: str) -> TopicRegex:
    """Return the compiled expression. Raises BrokerError INVALID_REGULAR_EXPRESSION."""
    return TopicRegex(expression)


class TopicRegex:
    """One compiled expression. Its slow matches are limited as long as it is cached."""

    def __init__(self, expression: str) -> None:
        try:
            self._regex = Regex(expression, max_length=MAX_LENGTH)
        except RegexError as error:
            raise BrokerError(ErrorCode.INVALID_REGULAR_EXPRESSION, str(error)) from error

    def matches(self, name: str) -> bool:
        """Return whether the whole name matches.

        Raises BrokerError INVALID_REGULAR_EXPRESSION once slow matches have taken too long.
        """
        try:
            return self._regex.matches(name)
        except RegexError as error:
            raise BrokerError(ErrorCode.INVALID_REGULAR_EXPRESSION, str(error)) from error
