"""Kafka's codes of config sources and config types, int8 on the wire.

Source: Kafka's DescribeConfigsResponse.
"""

from __future__ import annotations

from typing import Final

_SOURCES: Final = {
    "DYNAMIC_TOPIC_CONFIG": 1,
    "DYNAMIC_BROKER_CONFIG": 2,
    "DYNAMIC_DEFAULT_BROKER_CONFIG": 3,
    "STATIC_BROKER_CONFIG": 4,
    "DEFAULT_CONFIG": 5,
    "DYNAMIC_BROKER_LOGGER_CONFIG": 6,
    "CLIENT_METRICS_CONFIG": 7,
    "GROUP_CONFIG": 8,
}

_TYPES: Final = {
    "unknown": 0,
    "boolean": 1,
    "string": 2,
    "int": 3,
    "short": 4,
    "long": 5,
    "double": 6,
    "list": 7,
    "class": 8,
    "password": 9,
}


def source_code(name: str) -> int:
    """Return the code of a source named as in ConfigEntry."""
    return _SOURCES[name]


def type_code(name: str) -> int:
    """Return the code of a type named as in ConfigEntry."""
    return _TYPES[name]
