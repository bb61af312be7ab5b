"""DescribeConfigs (32), versions 1-4: properties of topics and brokers, with the layer that sets each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.client.api import ClientApi
from barnabas.protocol.kafka.client.fields import ERROR
from barnabas.protocol.kafka.schema import (
    BOOL,
    INT8,
    INT32,
    NULLABLE_STRING,
    STRING,
    Array,
    Computed,
    Constant,
    Message,
    rows,
    since,
)
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.cluster.configs import ConfigResource

TOPIC_LAYER: Final = 1
"""Source of a value that is set on the topic itself."""


class DescribedEntry(NamedTuple):
    """One property; `value` is None if it is unset or hidden. `source`: code of the layer that sets it.

    `documentation` is None if it was not requested, or if the broker has none.
    """

    name: str
    value: str | None
    read_only: bool
    source: int
    sensitive: bool
    documentation: str | None = None


class DescribedResource(NamedTuple):
    """One resource's properties, or the error."""

    resource: ConfigResource
    error: ErrorCode
    message: str | None
    entries: Sequence[DescribedEntry]


def _resource(
    error: ErrorCode, message: str | None, type: int, name: str, entries: list[DescribedEntry]
) -> DescribedResource:
    return DescribedResource(ConfigResource(type, name), error, message, entries)


def _results(results: list[DescribedResource]) -> list[DescribedResource]:
    return results


DESCRIBE_CONFIGS: Final = ClientApi(
    ApiKey.DESCRIBE_CONFIGS,
    1,
    4,
    Message(
        4,
        resources=rows(
            type=Computed(INT8, lambda each: each.resource.type),
            name=Computed(STRING, lambda each: each.resource.name),
            names=Array(STRING, nullable_from=0),
        ),
        _include_synonyms=Constant(BOOL, False),
        include_documentation=since(3, BOOL),
    ),
    Message(
        4,
        _results,
        _throttle_ms=INT32,
        results=rows(
            _resource,
            error=ERROR,
            message=NULLABLE_STRING,
            type=INT8,
            name=STRING,
            entries=rows(
                DescribedEntry,
                name=STRING,
                value=NULLABLE_STRING,
                read_only=BOOL,
                source=INT8,
                sensitive=BOOL,
                _synonyms=rows(dict, name=STRING, value=NULLABLE_STRING, source=INT8),
                _type=since(3, INT8),
                documentation=since(3, NULLABLE_STRING),
            ),
        ),
    ),
)
"""Writes a DescribeConfigsRequest, reads a list of DescribedResource."""
