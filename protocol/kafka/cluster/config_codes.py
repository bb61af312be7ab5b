"""Kafka's numbers for where a config's value comes from and for its type: int8 on the wire.

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
    """Of a layer, by the name that ConfigEntry has."""
    return _SOURCES[name]


def type_code(name: str) -> int:
    """Of a property's type, by the name that ConfigEntry has."""
    return _TYPES[name]
