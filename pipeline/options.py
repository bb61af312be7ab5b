"""Reading Spark's options: names in any case, values as text, every refusal with the name that was written.

An option that nobody knows is refused with the nearest that is known, because a typing error in `startingOffsets` would
otherwise read the wrong records without a word. `kafka.*` options are those of Kafka's clients, as for Spark's Kafka
source; what of them each side uses is said by who reads them.
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
    """The options of one reader or writer. Every method takes a name as our documentation spells it."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = {name.lower(): (name, value) for name, value in given.items()}

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._given

    def text(self, name: str) -> str | None:
        """The value with blanks stripped; None where the option is not given. Raises OptionError when it is empty."""
        given = self._given.get(name.lower())
        if given is None:
            return None
        value = given[1].strip()
        if not value:
            raise OptionError(f"option {given[0]} is empty")
        return value

    def required(self, name: str, why: str) -> str:
        """As `text`. Raises OptionError where it is not given."""
        value = self.text(name)
        if value is None:
            raise OptionError(f"option {name} is missing: {why}")
        return value

    def boolean(self, name: str, default: bool) -> bool:
        """Raises OptionError for what is neither true nor false."""
        value = self.text(name)
        if value is None:
            return default
        if value.lower() not in ("true", "false"):
            raise OptionError(f"option {name} must be true or false, not {value!r}")
        return value.lower() == "true"

    def integer(self, name: str, default: int | None, *, low: int, high: int = (1 << 63) - 1) -> int | None:
        """Raises OptionError for what is no whole number in [low, high]."""
        value = self.text(name)
        if value is None:
            return default
        if not re.fullmatch(r"[+-]?\d{1,19}", value, re.ASCII) or not low <= int(value) <= high:
            raise OptionError(f"option {name} must be a whole number between {low} and {high}, not {value!r}")
        return int(value)

    def choice(self, name: str, choices: tuple[str, ...], default: str) -> str:
        """One of `choices`, in lower case. Raises OptionError for another value."""
        value = self.text(name)
        if value is None:
            return default
        if value.lower() not in choices:
            raise OptionError(f"option {name} must be {' or '.join(choices)}, not {value!r}")
        return value.lower()

    def duration_ms(self, name: str, default: int) -> int:
        """A time as Spark writes them: `200ms`, `90s`, `15m`; a bare number is milliseconds. Raises OptionError."""
        value = self.text(name)
        if value is None:
            return default
        match = _DURATION.fullmatch(value)
        if match is None:
            raise OptionError(f"option {name} must be a time such as 500ms, 90s or 15m, not {value!r}")
        return int(int(match[1]) * _UNIT_MS[(match[2] or "ms").lower()])

    def kafka(self) -> dict[str, str]:
        """The options of Kafka's clients, without their prefix, in lower case."""
        return {
            name.removeprefix(KAFKA_PREFIX): value
            for name, (_, value) in self._given.items()
            if name.startswith(KAFKA_PREFIX)
        }

    def only_one_of(self, names: Iterable[str]) -> str | None:
        """The one of `names` that is given, None for none. Raises OptionError for two."""
        given = [name for name in names if name in self]
        if len(given) > 1:
            raise OptionError(f"options {' and '.join(given)} exclude each other: give one of them")
        return given[0] if given else None

    def refuse(self, names: Iterable[str], why: str) -> None:
        """Raises OptionError when one of `names` is given."""
        for name in names:
            if name in self:
                raise OptionError(f"option {name} cannot be given: {why}")

    def refuse_unknown(self, known: Iterable[str]) -> None:
        """Raises OptionError for an option that is neither in `known` nor one of Kafka's clients."""
        names = {name.lower(): name for name in known}
        for lower, (written, _) in self._given.items():
            if lower in names or lower.startswith(KAFKA_PREFIX):
                continue
            near = difflib.get_close_matches(lower, names, n=1)
            hint = f"; did you mean {names[near[0]]}?" if near else ""
            raise OptionError(f"option {written} is not known{hint}")
