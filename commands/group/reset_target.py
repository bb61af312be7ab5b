"""Target of `barnabas group reset-offsets`, parsed from its options."""

from __future__ import annotations

import time
from typing import NamedTuple

import click

from barnabas.protocol.messages.data.list_offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP


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
