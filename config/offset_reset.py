"""Where a share group begins in a partition of which it has no state: the config share.auto.offset.reset.

    earliest                        at the first record
    latest                          after the last record
    by_duration:<PnDTnHnMn.nS>      at the first record that is at most that old; ISO 8601, not negative

The words are in lower case, the duration in either.

Source: Kafka's AutoOffsetResetStrategy, java.time.Duration.parse.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import Final, NamedTuple

from barnabas.config.value import PropertyValue

_BY_DURATION: Final = "by_duration:"
_DURATION: Final = re.compile(
    r"([-+]?)P(?:([-+]?[0-9]+)D)?(T(?:([-+]?[0-9]+)H)?(?:([-+]?[0-9]+)M)?(?:([-+]?[0-9]+)(?:[.,]([0-9]{0,9}))?S)?)?",
    re.IGNORECASE | re.ASCII,
)
_LONGEST_MS: Final = 2**63 - 1


class ResetTo(Enum):
    """The kinds of the config."""

    EARLIEST = "earliest"
    LATEST = "latest"
    BY_DURATION = "by_duration"


class OffsetReset(NamedTuple):
    """`duration_ms`: with BY_DURATION, how far before now the group begins."""

    to: ResetTo
    duration_ms: int = 0


LATEST: Final = OffsetReset(ResetTo.LATEST)


def parse_offset_reset(text: str) -> OffsetReset | None:
    """Return the value; None if it is illegal."""
    if text in (ResetTo.EARLIEST.value, ResetTo.LATEST.value):
        return OffsetReset(ResetTo(text))
    if not text.startswith(_BY_DURATION):
        return None
    duration_ms = _duration_ms(text[len(_BY_DURATION) :])
    if duration_ms is None or not 0 <= duration_ms <= _LONGEST_MS:
        return None
    return OffsetReset(ResetTo.BY_DURATION, duration_ms)


class OffsetResetValue(NamedTuple):
    """The validator of the config."""

    @property
    def rule(self) -> str:
        """The rule in words."""
        return "either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'"

    def problem(self, value: PropertyValue) -> str | None:
        """Return the fault, or None."""
        assert isinstance(value, str)
        return None if parse_offset_reset(value) is not None else f"must be {self.rule}"


def _duration_ms(text: str) -> int | None:
    found = _DURATION.fullmatch(text)
    if found is None:
        return None
    sign, days, time, hours, minutes, seconds, fraction = found.groups()
    if (days is None and time is None) or (time is not None and len(time) == 1):
        return None
    whole_s = 86_400 * int(days or 0) + 3_600 * int(hours or 0) + 60 * int(minutes or 0) + int(seconds or 0)
    fraction_ns = int((fraction or "").ljust(9, "0"))
    if seconds is not None and seconds.startswith("-"):
        fraction_ns = -fraction_ns
    total_ns = whole_s * 1_000_000_000 + fraction_ns
    if sign == "-":
        total_ns = -total_ns
    return total_ns // 1_000_000
