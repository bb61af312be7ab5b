"""A property's value together with the layer and the exact place that gave it.

Named tuples, not dataclasses: those cost half a millisecond each at import, and a broker starts in 0.2 s.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

# What a parsed property can be. None is Kafka's null: nobody set it and it has no default.
PropertyValue = bool | int | float | str | tuple[str, ...] | None


class ConfigSource(Enum):
    """The layer that gave a value, by Kafka's names and DescribeConfigs numbers (int8 on the wire)."""

    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    GROUP_CONFIG = 8


class Setting(NamedTuple):
    """What somebody wrote: `text` before it is parsed, `origin` ready for a sentence after the word "in"."""

    text: str
    origin: str


class ConfigValue(NamedTuple):
    """One property as it stands.

    `value` is parsed, `text` is what DescribeConfigs answers (None: unset, or a secret), `source` the layer, and
    `origin` the exact place: "server.properties line 7", "the environment (BARNABAS_LOG_DIRS)", "--set", "default".
    """

    value: PropertyValue
    text: str | None
    source: ConfigSource
    origin: str

    @property
    def is_default(self) -> bool:
        """True when nobody set it."""
        return self.source is ConfigSource.DEFAULT_CONFIG
