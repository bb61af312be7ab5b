"""Parsing of Spark's options: names in any case, values as text, errors with the name as the user wrote it.

An unknown option is refused, with the nearest known name, because a typing error in `startingOffsets` would otherwise
silently read the wrong records. `kafka.*` options are those of Kafka's clients, as for Spark's Kafka source; source and
sink document which of them they use.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Final

from barnabas.pipeline.errors import OptionError

__all__ = ["KAFKA_PREFIX", "OptionError", "Options"]

KAFKA_PREFIX: Final = "kafka."

_DURATION: Final = re.compile(r"\s*(\d+)\s*(us|ms|s|m|min|h|d)?\s*", re.IGNORECASE)
_UNIT_MS: Final = {"us": 0.001, "ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


class Options:
    """The options of one reader or writer. Methods take names as the documentation spells them."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = {name.lower(): (name, value) for name, value in given.items()}

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._given

    def text(self, name: str) -> str | None:
        """Return the stripped value; None when the option is not given. Raises OptionError when it is empty."""
        given = self._given.get(name.lower())
        if given is None:
            return None
        value = given[1].strip()
        if not value:
            raise OptionError(f"option {given[0]} is empty")
        return value

    def required(self, name: str, why: str) -> str:
        """Return the value. Raises OptionError when it is missing."""
        value = self.text(name)
        if value is None:
            raise OptionError(f"option {name} is missing: {why}")
        return value

    def boolean(self, name: str, default: bool) -> bool:
        """Return true or false. Raises OptionError for another value."""
        value = self.text(name)
        if value is None:
            return default
        if value.lower() not in ("true", "false"):
            raise OptionError(f"option {name} must be true or false, not {value!r}")
        return value.lower() == "true"

    def integer(self, name: str, default: int | None, *, low: int, high: int = (1 << 63) - 1) -> int | None:
        """Return a whole number in [low, high]. Raises OptionError for another value."""
        value = self.text(name)
        if value is None:
            return default
        if not re.fullmatch(r"[+-]?\d{1,19}", value, re.ASCII) or not low <= int(value) <= high:
            raise OptionError(f"option {name} must be a whole number between {low} and {high}, not {value!r}")
        return int(value)

    def choice(self, name: str, choices: tuple[str, ...], default: str) -> str:
        """Return one of `choices`, in lower case. Raises OptionError for another value."""
        value = self.text(name)
        if value is None:
            return default
        if value.lower() not in choices:
            raise OptionError(f"option {name} must be {' or '.join(choices)}, not {value!r}")
        return value.lower()

    def duration_ms(self, name: str, default: int) -> int:
        """Parse a duration as Spark does: `200ms`, `90s`, `15m`; a bare number is ms. Raises OptionError."""
        value = self.text(name)
        if value is None:
            return default
        match = _DURATION.fullmatch(value)
        if match is None:
            raise OptionError(f"option {name} must be a time such as 500ms, 90s or 15m, not {value!r}")
        return int(int(match[1]) * _UNIT_MS[(match[2] or "ms").lower()])

    def kafka(self) -> dict[str, str]:
        """Return the `kafka.*` options, without their prefix, in lower case."""
        return {
            name.removeprefix(KAFKA_PREFIX): value
            for name, (_, value) in self._given.items()
            if name.startswith(KAFKA_PREFIX)
        }

    def only_one_of(self, names: Iterable[str]) -> str | None:
        """Return the name that is given, or None. Raises OptionError for two."""
        given = [name for name in names if name in self]
        if len(given) > 1:
            raise OptionError(f"options {' and '.join(given)} exclude each other: give one of them")
        return given[0] if given else None

    def refuse(self, names: Iterable[str], why: str) -> None:
        """Raise OptionError when one of `names` is given."""
        for name in names:
            if name in self:
                raise OptionError(f"option {name} cannot be given: {why}")

    def refuse_unknown(self, known: Iterable[str]) -> None:
        """Raise OptionError for an option that is neither in `known` nor a `kafka.*` option."""
        names = {name.lower(): name for name in known}
        for lower, (written, _) in self._given.items():
            if lower in names or lower.startswith(KAFKA_PREFIX):
                continue
            near = difflib.get_close_matches(lower, names, n=1)
            hint = f"; did you mean {names[near[0]]}?" if near else ""
            raise OptionError(f"option {written} is not known{hint}")
