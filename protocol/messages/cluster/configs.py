"""DescribeConfigs (32), AlterConfigs (33) and IncrementalAlterConfigs (44): topic and broker scope.

In the native dialect 33 is incremental. In Kafka's dialect 44 is, and 33 replaces a resource's whole set of configs, as
in Kafka. One handler serves all three, by `AlterConfigsRequest.replace`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from barnabas.protocol.errors import ErrorCode

TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4
LOGGER_RESOURCE = 8
CLIENT_METRICS_RESOURCE = 16
GROUP_RESOURCE = 32

OP_SET = 0
OP_DELETE = 1
OP_APPEND = 2
OP_SUBTRACT = 3


@dataclass(slots=True)
class ConfigResource:
    """`type`: 2 topic, 4 broker, 8 a broker's loggers, 16 a subscription of client metrics, 32 group.

    A broker's `name` is its node id as text, or "" for all brokers' defaults.
    """

    type: int
    name: str


@dataclass(slots=True)
class DescribeConfigsResource:
    """`names` None requests every property."""

    resource: ConfigResource
    names: list[str] | None = None


@dataclass(slots=True)
class DescribeConfigsRequest:
    """Several resources. `include_synonyms`: all layers that set each value."""

    resources: list[DescribeConfigsResource]
    include_synonyms: bool = False
    include_documentation: bool = True


@dataclass(slots=True)
class ConfigSynonym:
    """One layer that sets a property's value, effective or overridden; `source` as in ConfigEntry."""

    name: str
    value: str | None
    source: str


@dataclass(slots=True)
class ConfigEntry:
    """`source`: the layer that sets the value (config.value); `value` None for a secret or an unset property.

    `synonyms`: the layers that set it, the effective one first, if requested.
    """

    name: str
    value: str | None
    source: str
    type: str
    doc: str
    read_only: bool = False
    is_default: bool = False
    sensitive: bool = False
    synonyms: Sequence[ConfigSynonym] = ()


@dataclass(slots=True)
class DescribeConfigsResult:
    """One resource's entries."""

    resource: ConfigResource
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    entries: list[ConfigEntry] | None = None


@dataclass(slots=True)
class DescribeConfigsResponse:
    """In the order of the request."""

    results: list[DescribeConfigsResult]


@dataclass(slots=True)
class AlterConfigOp:
    """`operation`: 0 set, 1 delete (back to the layer below; `value` is ignored).

    For a list also 2 append and 3 subtract: `value` has the entries to add or remove, separated by commas.
    """

    name: str
    operation: int
    value: str | None = None


@dataclass(slots=True)
class AlterConfigsResource:
    """All operations of a resource apply together or not at all."""

    resource: ConfigResource
    operations: list[AlterConfigOp]


@dataclass(slots=True)
class AlterConfigsRequest:
    """`validate_only`: answer without changing anything. `replace`: remove configs that no operation sets."""

    resources: list[AlterConfigsResource]
    validate_only: bool = False
    replace: bool = False


@dataclass(slots=True)
class AlterConfigsResult:
    """One resource's result."""

    resource: ConfigResource
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


@dataclass(slots=True)
class AlterConfigsResponse:
    """In the order of the request."""

    results: list[AlterConfigsResult]
