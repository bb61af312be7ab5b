"""DescribeConfigs (32), AlterConfigs (33) and IncrementalAlterConfigs (44): topic and broker scope.

In the native dialect 33 is incremental. In Kafka's 44 is, and 33 replaces everything that is set on a resource.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from barnabas.protocol.errors import ErrorCode

TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4
GROUP_RESOURCE = 32

OP_SET = 0
OP_DELETE = 1
OP_APPEND = 2
OP_SUBTRACT = 3


@dataclass(slots=True)
class ConfigResource:
    """`type`: 2 topic, 4 broker; a broker's `name` is its node id as text, or "" for all brokers' defaults."""

    type: int
    name: str


@dataclass(slots=True)
class DescribeConfigsResource:
    """`names` None asks for every property."""

    resource: ConfigResource
    names: list[str] | None = None


@dataclass(slots=True)
class DescribeConfigsRequest:
    """Several resources at once. `include_synonyms`: where else each value could come from."""

    resources: list[DescribeConfigsResource]
    include_synonyms: bool = False
    include_documentation: bool = True


@dataclass(slots=True)
class ConfigSynonym:
    """One place that gives, or would give, a property its value; `source` as in ConfigEntry."""

    name: str
    value: str | None
    source: str


@dataclass(slots=True)
class ConfigEntry:
    """`source` says which layer gave the value (config.value); `value` None for a secret or an unset property.

    `synonyms`: the layers that set it, the one that holds first, where they were asked for.
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
    """`operation`: 0 set, 1 delete (back to the layer below; `value` is then ignored).

    Of a list also 2 append and 3 subtract: `value` has the entries that are to come or go, separated by commas.
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
    """`validate_only`: answer as if, change nothing. `replace`: what no operation sets is taken away."""

    resources: list[AlterConfigsResource]
    validate_only: bool = False
    replace: bool = False


@dataclass(slots=True)
class AlterConfigsResult:
    """What became of one resource."""

    resource: ConfigResource
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


@dataclass(slots=True)
class AlterConfigsResponse:
    """In the order of the request."""

    results: list[AlterConfigsResult]
