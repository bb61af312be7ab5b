"""Rules for a property's value beyond its type. Each validator describes its rule for messages and documents.

Named tuples, because a dataclass costs half a millisecond at import, and a start should take 0.2 s.
"""

# Without `from __future__ import annotations`: NamedTuple would compile each field's annotation at every start.

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from barnabas.config.value import PropertyValue, trim


class Validator(Protocol):
    """A rule for one value; rules across properties are in combinations.py."""

    @property
    def rule(self) -> str:
        """The rule in words: "at least 0"."""
        ...

    def problem(self, value: PropertyValue) -> str | None:
        """Return the fault of `value` as the end of a sentence, or None."""
        ...


class AtLeast(NamedTuple):
    """A number of at least `minimum`."""

    minimum: int

    @property
    def rule(self) -> str:
        """The rule in words."""
        return f"at least {self.minimum}"

    def problem(self, value: PropertyValue) -> str | None:
        """Return the fault, or None."""
        if isinstance(value, int | float) and not value < self.minimum:  # as Kafka's Range, which takes NaN
            return None
        return f"must be {self.rule}"


class Between(NamedTuple):
    """A number from `minimum` to `maximum`, inclusive; `or_also` is one more value with a special meaning."""

    minimum: int
    maximum: int
    or_also: int | None = None

    @property
    def rule(self) -> str:
        """The rule in words."""
        also = "" if self.or_also is None else f", or {self.or_also}"
        return f"{self.minimum} to {self.maximum}{also}"

    def problem(self, value: PropertyValue) -> str | None:
        """Return the fault, or None."""
        if isinstance(value, int | float) and not (value < self.minimum or value > self.maximum):
            return None  # as Kafka's Range, NaN too
        if value == self.or_also:
            return None
        return f"must be {self.rule}"


class OneOf(NamedTuple):
    """One of a few values."""

    choices: tuple[str | int, ...]
    in_any_case: bool = False

    @property
    def rule(self) -> str:
        """The rule in words."""
        return "one of " + ", ".join(map(str, self.choices)) + (" (in any case)" if self.in_any_case else "")

    def problem(self, value: PropertyValue) -> str | None:
        """Return the fault, or None."""
        if self.in_any_case and isinstance(value, str):
            value = value.lower()
        return None if value in self.choices else f"must be {self.rule}"


class ClassName(NamedTuple):
    """A Java class of Kafka that Barnabas replaces; others, which users write, cannot be loaded. "" may be one."""

    names: tuple[str, ...]

    @property
    def rule(self) -> str:
        """The rule in words."""
        return " or ".join(name or "empty" for name in self.names)

    def problem(self, value: PropertyValue) -> str | None:
        """Return the fault, or None."""
        if value in self.names:
            return None
        return f"Java classes are not loaded; Barnabas serves {' or '.join(filter(None, self.names))}"


class ListOf(NamedTuple):
    """A list without empty entries, Kafka's ValidList; `choices` () allows any entry.

    Of equal entries the first one counts: Property.parse drops the others.
    """

    choices: tuple[str, ...] = ()
    may_be_empty: bool = True

    @property
    def rule(self) -> str:
        """The rule in words."""
        entries = f"any of {', '.join(self.choices)}, " if self.choices else ""
        return entries + ("may be empty" if self.may_be_empty else "at least one")

    def problem(self, value: PropertyValue) -> str | None:
        """Return the fault, or None."""
        assert isinstance(value, tuple)
        if not value and not self.may_be_empty:
            return "must name at least one"
        for entry in value:
            if not entry:
                return "has an empty entry"
            if self.choices and entry not in self.choices:
                return f"{entry} is none of {', '.join(self.choices)}"
        return None


class ThrottledReplicas(NamedTuple):
    """A list of `partition:broker`, or one `*`, with empty entries or not: Kafka's ThrottledReplicaListValidator."""

    @property
    def rule(self) -> str:
        """The rule in words."""
        return "partition:broker of each replica, or * for all"

    def problem(self, value: PropertyValue) -> str | None:
        """Return the fault, or None."""
        assert isinstance(value, tuple)
        for entry in value:
            partition, colon, broker = trim(entry).partition(":")
            is_replica = colon and all(part.isascii() and part.isdigit() for part in (partition, broker))
            if trim(entry) and not is_replica:
                return None if "".join(map(trim, value)) == "*" else f"has {entry}, and must be {self.rule}"
        return None


class NamedLevels(NamedTuple):
    """A list of `name=level`, each name at most once; `ranges` has the lowest and the highest level of each name."""

    ranges: Sequence[tuple[str, int, int]]

    @property
    def rule(self) -> str:
        """The rule in words."""
        return "name=level of " + ", ".join(f"{name} ({lowest} to {highest})" for name, lowest, highest in self.ranges)

    def problem(self, value: PropertyValue) -> str | None:
        """Return the fault, or None."""
        assert isinstance(value, tuple)
        known = {name: (lowest, highest) for name, lowest, highest in self.ranges}
        seen = set()
        for entry in value:
            name, equals, level = (part.strip() for part in entry.partition("="))
            if not equals:
                return f"has {entry or 'an empty entry'} where name=level is expected"
            if name not in known:
                return f"names {name}, which is none of {', '.join(known)}"
            if name in seen:
                return f"names {name} twice"
            seen.add(name)
            lowest, highest = known[name]
            if not (level.isascii() and level.isdigit() and lowest <= int(level[:6]) <= highest):
                return f"has level {level} of {name}, which must be {lowest} to {highest}"
        return None


class NumbersByHost(NamedTuple):
    """A text of `host:number` entries, comma-separated; an IPv6 address may be in brackets."""

    @property
    def rule(self) -> str:
        """The rule in words."""
        return "host:number, comma-separated"

    def problem(self, value: PropertyValue) -> str | None:
        """Return the fault, or None."""
        assert isinstance(value, str)
        for entry in filter(None, (part.strip() for part in value.split(","))):
            host, _, number = entry.rpartition(":")
            if not (host and number.isascii() and number.isdigit() and int(number[:11]) < 1 << 31):
                return f"has {entry} where host:number is expected"
        return None
