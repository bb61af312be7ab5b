"""One configuration property: its name, type, default, rule and documentation, and the parsing of its value.

Types, and what counts as a number, a boolean or a list, are those of Kafka's ConfigDef.parseType, to
the character: what String.trim removes, and what Integer.parseInt, Double.parseDouble and the expression that splits
lists take. Another reading of a value that Kafka stored would be another configuration.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from math import inf
from types import MappingProxyType
from typing import NamedTuple

from barnabas.config.security.secret import Secret
from barnabas.config.validators import ListOf, Validator
from barnabas.config.value import PropertyValue, trim

INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1
# Java's Double.MAX_VALUE: Kafka's "no limit" for rates.
DOUBLE_MAX = 1.7976931348623157e308


class PropertyType(Enum):
    """Kafka's types, with their names in the documents."""

    BOOLEAN = "boolean"
    STRING = "string"
    INT = "int"
    SHORT = "short"
    LONG = "long"
    DOUBLE = "double"
    LIST = "list"
    PASSWORD = "password"
    CLASS = "class"


_AROUND_COMMAS = " \t\n\x0b\f\r"
"""What `\\s` is in Java."""

# Digits of any script beyond it are surrogate pairs in Java, which parseInt refuses.
_LAST_OF_ONE_CHAR = "\uffff"

_INTEGER_BITS = {PropertyType.SHORT: 16, PropertyType.INT: 32, PropertyType.LONG: 64}


class UpdateMode(Enum):
    """When a property may change, in Kafka's terms: only at start, or at run time for one broker or for all."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class BadValueError(ValueError):
    """An illegal value; `str(error)` ends the sentence "name=text in origin: ..."."""


class Synonym(NamedTuple):
    """A broker property that provides a topic property's default, and the factor between their units."""

    name: str
    factor: int = 1


class Property(NamedTuple):
    """One property of the broker or of a topic.

    `default` is parsed, None for Kafka's null. `update_mode` is Kafka's: read-only is read at start, per-broker and
    cluster-wide may be changed while the broker runs. A broker property that topics override has their `topic_name`; a
    topic property has its broker `synonyms`, by precedence. `group` is its chapter in the documents. With
    `per_listener` it takes the prefix `listener.name.<listener>.`, with `per_mechanism` also
    `listener.name.<listener>.<mechanism>.`.
    """

    name: str
    type: PropertyType
    default: PropertyValue
    doc: str
    validator: Validator | None = None
    update_mode: UpdateMode = UpdateMode.READ_ONLY
    topic_name: str | None = None
    synonyms: tuple[Synonym, ...] = ()
    group: str = ""
    per_listener: bool = False
    per_mechanism: bool = False

    @property
    def is_dynamic(self) -> bool:
        """Whether it may be changed while the broker runs."""
        return self.update_mode is not UpdateMode.READ_ONLY

    @property
    def is_sensitive(self) -> bool:
        """Whether its value must never be shown."""
        return self.type is PropertyType.PASSWORD

    @property
    def rule(self) -> str:
        """The rule for the value beyond its type, in words; "" without one."""
        return "" if self.validator is None else self.validator.rule

    def parse(self, text: str) -> PropertyValue:
        """Parse and check `text`; a list keeps the first of equal entries. Raises BadValueError."""
        value = parse_as(self.type, text)
        if isinstance(value, tuple) and isinstance(self.validator, ListOf):
            value = tuple(dict.fromkeys(value))
        if self.validator is not None and (problem := self.validator.problem(value)) is not None:
            raise BadValueError(problem)
        return value

    def repeated(self, text: str) -> tuple[str, ...]:
        """Return the entries of a list that `parse` drops, because they are in it already."""
        value = parse_as(self.type, text) if isinstance(self.validator, ListOf) else ()
        assert isinstance(value, tuple)
        return tuple(dict.fromkeys(each for index, each in enumerate(value) if each in value[:index]))

    def show(self, value: PropertyValue) -> str | None:
        """Return `value` as in Kafka's DescribeConfigs response; None for null and for a secret."""
        return None if self.is_sensitive else show(value)


def parse_as(kind: PropertyType, text: str) -> PropertyValue:
    """Parse `text` as type `kind`, without checking a rule. Raises BadValueError."""
    text = trim(text)
    if kind in _INTEGER_BITS:
        return _parse_integer(kind, text)
    if kind is PropertyType.LIST:
        return tuple(entry.strip(_AROUND_COMMAS) for entry in text.split(",")) if text else ()
    if kind is PropertyType.BOOLEAN:
        upper = text.upper()  # as equalsIgnoreCase, for which a long s is an S
        if upper not in ("TRUE", "FALSE"):
            raise BadValueError("not a boolean (true or false)")
        return upper == "TRUE"
    if kind is PropertyType.DOUBLE:
        return _parse_double(text)
    return Secret(text) if kind is PropertyType.PASSWORD else text


def show(value: PropertyValue) -> str | None:
    """Format `value` as Kafka does: true, 0.5, a,b; None stays None, and a Secret becomes [hidden]."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    return _show_double(value) if isinstance(value, float) else str(value)


def _show_double(value: float) -> str:
    """Format a number as Java's Double.toString does: 0.001, 5.0E-4, 1.0E7, NaN, Infinity."""
    if value != value:
        return "NaN"
    if abs(value) == inf:
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    mantissa, _, exponent = repr(abs(value)).partition("e")
    if len(mantissa) == 1:  # Java gives two digits: 4.9E-324
        mantissa, _, exponent = f"{abs(value):.1e}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    power = int(exponent or 0) + len(digits) - len(fraction) - 1
    rest = digits[1:].rstrip("0") or "0"
    return f"{'-' if value < 0 else ''}{digits[0]}.{rest}E{power}"


def by_name(*properties: Property) -> Mapping[str, Property]:
    """Return a read-only table in the given order. Names must be unique."""
    table = {each.name: each for each in properties}
    assert len(table) == len(properties), "a property is defined twice"
    return MappingProxyType(table)


def _parse_integer(kind: PropertyType, text: str) -> int:
    """Parse as Integer.parseInt does: a sign, and decimal digits of any script. int() would also take 1_000."""
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not digits.isdecimal() or max(digits) > _LAST_OF_ONE_CHAR:
        article = "an" if kind is PropertyType.INT else "a"
        raise BadValueError(f"not {article} {kind.value}")
    limit = 1 << (_INTEGER_BITS[kind] - 1)
    significant = digits.lstrip("0") or "0"
    # Longer than any long: int() is quadratic in the length, and the value is out of range anyway.
    value = int(significant) if len(significant) <= 40 else limit
    if text[0] == "-":
        value = -value
    if not -limit <= value < limit:
        raise BadValueError(f"out of range for the type {kind.value} ({-limit} to {limit - 1})")
    return value


def _parse_double(text: str) -> float:
    """Parse as Double.parseDouble does: NaN, hexadecimal floats and a suffix f or d are doubles, inf is not."""
    if re.fullmatch(r"[+-]?(NaN|Infinity)", text):
        return float(text)
    if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[fFdD]?", text, re.ASCII):
        return float(text.rstrip("fFdD"))
    if re.fullmatch(r"[+-]?0[xX]([\da-fA-F]+\.?|[\da-fA-F]*\.[\da-fA-F]+)[pP][+-]?\d+[fFdD]?", text, re.ASCII):
        try:
            return float.fromhex(text.rstrip("fFdD"))
        except OverflowError:
            return -inf if text[0] == "-" else inf
    raise BadValueError("not a double")
