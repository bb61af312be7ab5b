"""Names that a request lists again and again, for handlers whose answers are larger than their requests.

Kafka describes each occurrence in full: a request of a few kilobytes can cause a response of gigabytes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from typing import Final, TypeVar

from barnabas.protocol.errors import BrokerError, ErrorCode

DESCRIBED_MAX: Final = 10
"""Occurrences of a name that are described. Kafka's clients list a name once."""

T = TypeVar("T", bound=Hashable)


def repeated(names: Iterable[T], limit: int) -> frozenset[T]:
    """Return the names that occur more than `limit` times."""
    return frozenset(name for name, times in Counter(names).items() if times > limit)


def repetition_error(what: str, limit: int) -> BrokerError:
    """Return the error of each occurrence of a repeated name; `what` is "group", for example."""
    times = "once" if limit == 1 else f"{limit} times"
    return BrokerError(ErrorCode.INVALID_REQUEST, f"Each {what} must appear at most {times}.")
