"""Target of `barnabas group reset-offsets`, parsed from its options."""

from __future__ import annotations

import re
import time
from typing import Final, NamedTuple

import click

from barnabas.protocol.messages.data.list_offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP

_UNITS_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION: Final = re.compile(r"(\d+)(ms|s|m|h|d)")
_ISO: Final = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?", re.IGNORECASE)


def parse_duration(text: str) -> int:
    """Parse `90s`, `15m`, `2h`, `7d`, or `P1DT2H` as in Kafka's tool, to milliseconds. Raises BadParameter."""
    if found := _DURATION.fullmatch(text.strip()):
        return int(found[1]) * _UNITS_MS[found[2]]
    found = _ISO.fullmatch(text.strip())
    if found is None or not any(found.groups()):
        raise click.BadParameter(f"{text!r} is not a duration like 90s, 15m, 2h, 7d or P1DT2H30M")
    days, hours, minutes, seconds = (int(each or 0) for each in found.groups())
    return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000


class ResetTarget(NamedTuple):
    """An `offset`, or None for the one that ListOffsets returns for `timestamp`."""

    offset: int | None
    timestamp: int

    @classmethod
    def of(
        cls,
        to_earliest: bool,
        to_latest: bool,
        to_offset: int | None,
        to_timestamp: int | None,
        by_duration: int | None,
    ) -> ResetTarget:
        """Create it from the options, of which exactly one must be given. Raises UsageError."""
        options = (to_earliest, to_latest, to_offset is not None, to_timestamp is not None, by_duration is not None)
        if sum(options) != 1:
            raise click.UsageError(
                "give one of --to-earliest, --to-latest, --to-offset, --to-timestamp and --by-duration"
            )
        if to_offset is not None:
            return cls(to_offset, LATEST_TIMESTAMP)
        if to_earliest:
            return cls(None, EARLIEST_TIMESTAMP)
        if to_timestamp is not None:
            return cls(None, to_timestamp)
        if by_duration is not None:
            return cls(None, max(0, time.time_ns() // 1_000_000 - by_duration))
        return cls(None, LATEST_TIMESTAMP)
