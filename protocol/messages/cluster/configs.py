"""DescribeConfigs (32), AlterConfigs (33), IncrementalAlterConfigs (44) and ListConfigResources (74).

AlterConfigs replaces a resource's whole set of configs; in the native dialect the incremental request has its key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Final, NamedTuple

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.wire.fields import since, unwired
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import (
    SHARED,
    Bool,
    Error,
    Int8,
    Int32,
    Message,
    Nullable,
    NullableString,
    String,
)

TOPIC_RESOURCE = 2
BROKER_RESOURCE = 4
LOGGER_RESOURCE = 8
CLIENT_METRICS_RESOURCE = 16
GROUP_RESOURCE = 32

OP_SET = 0
OP_DELETE = 1
OP_APPEND = 2
OP_SUBTRACT = 3

CONFIG_SOURCES: Final = {
    "DYNAMIC_TOPIC_CONFIG": 1,
    "DYNAMIC_BROKER_CONFIG": 2,
    "DYNAMIC_DEFAULT_BROKER_CONFIG": 3,
    "STATIC_BROKER_CONFIG": 4,
    "DEFAULT_CONFIG": 5,
    "DYNAMIC_BROKER_LOGGER_CONFIG": 6,
    "CLIENT_METRICS_CONFIG": 7,
    "GROUP_CONFIG": 8,
}
"""Codes of the layers that set a value. Source: Kafka's DescribeConfigsResponse."""

TOPIC_LAYER: Final = CONFIG_SOURCES["DYNAMIC_TOPIC_CONFIG"]

CONFIG_TYPES: Final = {
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
"""Codes of the types of values."""

_SOURCE_NAMES: Final = {code: name for name, code in CONFIG_SOURCES.items()}
_TYPE_NAMES: Final = {code: name for name, code in CONFIG_TYPES.items()}


class ConfigResource(NamedTuple):
    """`type`: 2 topic, 4 broker, 8 a broker's loggers, 16 a subscription of client metrics, 32 group.

    A broker's `name` is its node id as text, or "" for all brokers' defaults.
    """

    type: int
    name: str


class ConfigSynonym(Struct):
    """One layer that sets a property's value, effective or overridden."""

    name: String
    value: NullableString
    source_code: Int8


class ConfigEntry(Struct):
    """A property; `value` None for a secret or an unset property.

    `synonyms`: the layers that set it, the effective one first, if requested. `documentation`: None if it was not
    requested, or if there is none; empty in a version without it.
    """

    name: String
    value: NullableString
    read_only: Bool = False
    source_code: Int8
    sensitive: Bool = False
    synonyms: Sequence[ConfigSynonym] = ()
    type_code: Int8 = since(3, default=0)
    documentation: NullableString = since(3, default="")

    @property
    def source(self) -> str:
        """Kafka's name of the layer that sets the value."""
        return _SOURCE_NAMES.get(self.source_code, "UNKNOWN")

    @property
    def type(self) -> str:
        """The name of the value's type."""
        return _TYPE_NAMES.get(self.type_code, "unknown")

    @property
    def is_default(self) -> bool:
        """No layer sets the value."""
        return self.source_code == CONFIG_SOURCES["DEFAULT_CONFIG"]


class DescribeConfigsResult(Struct):
    """One resource's entries. Those that several resources share, the same list, are encoded once."""

    error: Error = ErrorCode.NONE
    message: Message = None
    type: Int8
    name: String
    entries: Annotated[Sequence[ConfigEntry], SHARED] = ()


class DescribeConfigsResponse(Struct, flexible=4):
    """In the order of the request."""

    throttle_ms: Int32 = 0
    results: Sequence[DescribeConfigsResult]


class DescribeConfigsResource(Struct):
    """No `names`, or an empty list of them, requests every property."""

    type: Int8
    name: String
    names: Annotated[Sequence[String] | None, Nullable()] = None

    @property
    def resource(self) -> ConfigResource:
        """What is described."""
        return ConfigResource(self.type, self.name)


class DescribeConfigsRequest(Request[DescribeConfigsResponse], api=ApiKey.DESCRIBE_CONFIGS, flexible=4):
    """`include_synonyms`: all layers that set each value."""

    resources: Sequence[DescribeConfigsResource]
    include_synonyms: Bool = False
    include_documentation: Bool = since(3, default=False)

    def refused(self, code: ErrorCode, message: str) -> DescribeConfigsResponse:
        """The same refusal for every resource."""
        return DescribeConfigsResponse(
            results=[
                DescribeConfigsResult(type=each.type, name=each.name, error=code, message=message)
                for each in self.resources
            ]
        )


class AlterConfigsResult(Struct):
    """One resource's result."""

    error: Error = ErrorCode.NONE
    message: Message = None
    type: Int8
    name: String
    warning: str | None = unwired(default=None)


class AlterConfigsResponse(Struct, flexible=2):
    """In the order of the request."""

    throttle_ms: Int32 = 0
    results: Sequence[AlterConfigsResult]


class ReplacedConfig(Struct):
    """A config of the new set."""

    name: String
    value: NullableString

    @property
    def operation(self) -> int:
        """As of AlterConfigOp."""
        return OP_SET


class ReplacedConfigsResource(Struct):
    """All configs of a resource apply together or not at all."""

    type: Int8
    name: String
    operations: Sequence[ReplacedConfig]

    @property
    def resource(self) -> ConfigResource:
        """What is altered."""
        return ConfigResource(self.type, self.name)


class AlterConfigsRequest(Request[AlterConfigsResponse], api=ApiKey.ALTER_CONFIGS, flexible=2):
    """Removes the configs that it does not set. `validate_only`: answer without changing anything."""

    resources: Sequence[ReplacedConfigsResource]
    validate_only: Bool = False

    replaces = True

    def answer(self, results: Sequence[AlterConfigsResult]) -> AlterConfigsResponse:
        """Return the answer with these results."""
        return AlterConfigsResponse(results=results)

    def refused(self, code: ErrorCode, message: str) -> AlterConfigsResponse:
        """The same refusal for every resource."""
        return self.answer(_refused(self.resources, code, message))


class IncrementalAlterConfigsResponse(Struct, flexible=1):
    """In the order of the request."""

    throttle_ms: Int32 = 0
    results: Sequence[AlterConfigsResult]


class AlterConfigOp(Struct):
    """`operation`: 0 set, 1 delete (back to the layer below; `value` is ignored).

    For a list also 2 append and 3 subtract: `value` has the entries to add or remove, separated by commas.
    """

    name: String
    operation: Int8
    value: NullableString = None


class AlterConfigsResource(Struct):
    """All operations of a resource apply together or not at all."""

    type: Int8
    name: String
    operations: Sequence[AlterConfigOp]

    @property
    def resource(self) -> ConfigResource:
        """What is altered."""
        return ConfigResource(self.type, self.name)


class IncrementalAlterConfigsRequest(
    Request[IncrementalAlterConfigsResponse], api=ApiKey.INCREMENTAL_ALTER_CONFIGS, flexible=1
):
    """Changes single configs. `validate_only`: answer without changing anything."""

    resources: Sequence[AlterConfigsResource]
    validate_only: Bool = False

    replaces = False

    def answer(self, results: Sequence[AlterConfigsResult]) -> IncrementalAlterConfigsResponse:
        """Return the answer with these results."""
        return IncrementalAlterConfigsResponse(results=results)

    def refused(self, code: ErrorCode, message: str) -> IncrementalAlterConfigsResponse:
        """The same refusal for every resource."""
        return self.answer(_refused(self.resources, code, message))


ConfigChange = ReplacedConfig | AlterConfigOp
ChangedResource = ReplacedConfigsResource | AlterConfigsResource


class ListedConfigResource(Struct):
    """A resource that has, or could have, configs."""

    name: String
    type: Int8 = since(1, default=CLIENT_METRICS_RESOURCE)


class ListConfigResourcesResponse(Struct, flexible=0):
    """Every resource of the requested types."""

    throttle_ms: Int32 = 0
    error: Error = ErrorCode.NONE
    resources: Sequence[ListedConfigResource] = ()


class ListConfigResourcesRequest(Request[ListConfigResourcesResponse], api=ApiKey.LIST_CONFIG_RESOURCES, flexible=0):
    """`types`: resource types by Kafka's numbers; version 0 knows client metrics only."""

    types: Sequence[Int8] = since(1, default=())

    @property
    def wanted(self) -> Sequence[int]:
        """The types; none means all."""
        if self.version == 0:
            return (CLIENT_METRICS_RESOURCE,)
        everything = TOPIC_RESOURCE, BROKER_RESOURCE, LOGGER_RESOURCE, CLIENT_METRICS_RESOURCE, GROUP_RESOURCE
        return self.types or everything

    def refused(self, code: ErrorCode, message: str) -> ListConfigResourcesResponse:
        """The code."""
        return ListConfigResourcesResponse(error=code)


def _refused(resources: Sequence[ChangedResource], code: ErrorCode, message: str) -> list[AlterConfigsResult]:
    return [AlterConfigsResult(type=each.type, name=each.name, error=code, message=message) for each in resources]
