"""A property's value with its layer and exact origin.

Named tuples, because a dataclass costs half a millisecond at import, and a start should take 0.2 s.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from barnabas.config.security.secret import Secret

# Types of parsed values. None is Kafka's null: unset and without a default.
PropertyValue = bool | int | float | str | tuple[str, ...] | Secret | None

_BLANKS: Final = "".join(map(chr, range(0x21)))


def trim(text: str) -> str:
    """Return a text as Java's `String.trim()` does: without characters up to U+0020 around it.

    `str.strip()` also drops U+00A0 and its like, which are part of a name or value in Kafka, and keeps U+0000.
    """
    return text.strip(_BLANKS)


class ConfigSource(Enum):
    """The layer of a value, with Kafka's names and DescribeConfigs numbers (int8 on the wire)."""

    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8


class Setting(NamedTuple):
    """An unparsed setting; `origin` fits into a sentence after the word "in".

    `reference` is the given text if it has references to config providers, which `text` has the values of: errors and
    descriptions show it instead of `text`.
    """

    text: str
    origin: str
    reference: str | None = None

    def __repr__(self) -> str:
        # The text may be a password, and a traceback or a debugger's log prints what it finds.
        return f"Setting(in {self.origin})"


class ConfigValue(NamedTuple):
    """The value of one property.

    `value` is parsed, `text` is for DescribeConfigs (None: unset, or a secret), `source` is the layer and `origin` the
    exact place: "server.properties line 7", "the environment (BARNABAS_LOG_DIRS)", "--set", "default". With `problem`
    the metadata log has `text`, which is not understood for that reason, and `value` is the next layer's.
    """

    value: PropertyValue
    text: str | None
    source: ConfigSource
    origin: str
    problem: str | None = None

    @property
    def is_default(self) -> bool:
        """Whether the property is unset."""
        return self.source is ConfigSource.DEFAULT_CONFIG
