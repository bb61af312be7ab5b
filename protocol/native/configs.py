"""describe_configs (32) and alter_configs (33, incremental): topic and broker scope.

    describe_configs  resources [[type, name, [config] or nil = all]]
    response          resources [[type, name, error, message,
                                  [[config, value, source, type, doc, read_only, is_default, sensitive]]]]
    alter_configs     resources [[type, name, [[config, operation, value]]]], validate_only bool (default false)
    response          resources [[type, name, error, message]]

`type` is 2 for a topic and 4 for a broker (its node id as text, "" for the default of all brokers); `operation` is
0 set, 1 delete.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.messages.cluster.configs import (
    CONFIG_SOURCES,
    CONFIG_TYPES,
    OP_DELETE,
    OP_SET,
    AlterConfigOp,
    AlterConfigsResource,
    AlterConfigsResult,
    ConfigEntry,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.protocol.native.fields import (
    INT8,
    array,
    boolean,
    error_code,
    field,
    integer,
    long_text,
    row,
    text,
)


def encode_describe(request: DescribeConfigsRequest) -> dict[str, Any]:
    """The body of a describe_configs request."""
    return {"resources": [[entry.type, entry.name, entry.names] for entry in request.resources]}


def decode_describe(body: dict[str, Any]) -> DescribeConfigsRequest:
    """Raises DecodeError, naming the field."""
    resources = []
    for entry in array(field(body, "resources"), "resources"):
        kind, name, names = row(entry, "resources[]", 3)
        resources.append(
            DescribeConfigsResource(
                type=integer(kind, "type", INT8),
                name=text(name, "name"),
                names=None if names is None else [text(config, "configs[]") for config in array(names, "configs")],
            )
        )
    return DescribeConfigsRequest(resources=resources, include_documentation=True)


def encode_describe_response(response: DescribeConfigsResponse) -> dict[str, Any]:
    """The body of a describe_configs answer."""
    return {
        "resources": [
            [
                result.type,
                result.name,
                int(result.error),
                result.message,
                [
                    [e.name, e.value, e.source, e.type, e.documentation or "", e.read_only, e.is_default, e.sensitive]
                    for e in result.entries
                ],
            ]
            for result in response.results
        ]
    }


def decode_describe_response(body: dict[str, Any]) -> DescribeConfigsResponse:
    """Raises DecodeError, naming the field."""
    results = []
    for result in array(field(body, "resources"), "resources"):
        kind, name, error, message, entries = row(result, "resources[]", 5)
        results.append(
            DescribeConfigsResult(
                type=integer(kind, "type", INT8),
                name=text(name, "name"),
                error=error_code(error, "error"),
                message=long_text(message, "message"),
                entries=[_entry(entry) for entry in array(entries, "configs")],
            )
        )
    return DescribeConfigsResponse(results=results)


def encode_alter(request: IncrementalAlterConfigsRequest) -> dict[str, Any]:
    """The body of an alter_configs request."""
    return {
        "resources": [
            [entry.type, entry.name, [[op.name, op.operation, op.value] for op in entry.operations]]
            for entry in request.resources
        ],
        "validate_only": request.validate_only,
    }


def decode_alter(body: dict[str, Any]) -> IncrementalAlterConfigsRequest:
    """Raises DecodeError, naming the field."""
    resources = []
    for entry in array(field(body, "resources"), "resources"):
        kind, name, operations = row(entry, "resources[]", 3)
        resources.append(
            AlterConfigsResource(
                type=integer(kind, "type", INT8),
                name=text(name, "name"),
                operations=[_operation(op) for op in array(operations, "operations")],
            )
        )
    return IncrementalAlterConfigsRequest(
        resources=resources, validate_only=boolean(field(body, "validate_only", False), "validate_only")
    )


def encode_alter_response(response: IncrementalAlterConfigsResponse) -> dict[str, Any]:
    """The body of an alter_configs answer."""
    return {
        "resources": [
            [result.type, result.name, int(result.error), result.message or result.warning]
            for result in response.results
        ]
    }


def decode_alter_response(body: dict[str, Any]) -> IncrementalAlterConfigsResponse:
    """Raises DecodeError, naming the field."""
    results = []
    for result in array(field(body, "resources"), "resources"):
        kind, name, error, message = row(result, "resources[]", 4)
        results.append(
            AlterConfigsResult(
                type=integer(kind, "type", INT8),
                name=text(name, "name"),
                error=error_code(error, "error"),
                message=long_text(message, "message"),
            )
        )
    return IncrementalAlterConfigsResponse(results=results)


def _code(codes: Mapping[str, int], name: str, what: str) -> int:
    try:
        return codes[name]
    except KeyError:
        raise DecodeError(f"{what}: {name!r} is unknown") from None


def _operation(entry: Any) -> AlterConfigOp:
    name, operation, value = row(entry, "operations[]", 3)
    return AlterConfigOp(
        name=text(name, "config"),
        operation=integer(operation, "operation", (OP_SET, OP_DELETE)),
        value=long_text(value, "value"),
    )


def _entry(entry: Any) -> ConfigEntry:
    name, value, source, kind, doc, read_only, _, sensitive = row(entry, "configs[]", 8)
    return ConfigEntry(
        name=text(name, "config"),
        value=long_text(value, "value"),
        source_code=_code(CONFIG_SOURCES, text(source, "source"), "source"),
        type_code=_code(CONFIG_TYPES, text(kind, "type"), "type"),
        documentation=long_text(doc, "doc") or None,
        read_only=boolean(read_only, "read_only"),
        sensitive=boolean(sensitive, "sensitive"),
    )
