"""DescribeConfigs (32) and AlterConfigs (33, incremental as Kafka's key 44 is): topic and broker scope."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.errors import ErrorCode

TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4

OP_SET = 0
OP_DELETE = 1


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
    """Several resources at once."""

    resources: list[DescribeConfigsResource]


@dataclass(slots=True)
class ConfigEntry:
    """`source` says which layer gave the value (config.sources); `value` None for a secret or an unset property."""

    name: str
    value: str | None
    source: str
    type: str
    doc: str
    read_only: bool = False
    is_default: bool = False
    sensitive: bool = False


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
    """`operation`: 0 set, 1 delete (back to the layer below; `value` is then ignored)."""

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
    """`validate_only`: answer as if, change nothing."""

    resources: list[AlterConfigsResource]
    validate_only: bool = False


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
