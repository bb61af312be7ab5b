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

from typing import Any

from barnabas.protocol.messages.cluster.configs import (
    OP_DELETE,
    OP_SET,
    AlterConfigOp,
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResponse,
    AlterConfigsResult,
    ConfigEntry,
    ConfigResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
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
    return {"resources": [[entry.resource.type, entry.resource.name, entry.names] for entry in request.resources]}


def decode_describe(body: dict[str, Any]) -> DescribeConfigsRequest:
    """Raises DecodeError, naming the field."""
    resources = []
    for entry in array(field(body, "resources"), "resources"):
        kind, name, names = row(entry, "resources[]", 3)
        resources.append(
            DescribeConfigsResource(
                _resource(kind, name),
                None if names is None else [text(config, "configs[]") for config in array(names, "configs")],
            )
        )
    return DescribeConfigsRequest(resources)


def encode_describe_response(response: DescribeConfigsResponse) -> dict[str, Any]:
    """The body of a describe_configs answer."""
    return {
        "resources": [
            [
                result.resource.type,
                result.resource.name,
                int(result.error),
                result.message,
                [
                    [e.name, e.value, e.source, e.type, e.doc, e.read_only, e.is_default, e.sensitive]
                    for e in result.entries or ()
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
                _resource(kind, name),
                error_code(error, "error"),
                long_text(message, "message"),
                [_entry(entry) for entry in array(entries, "configs")],
            )
        )
    return DescribeConfigsResponse(results)


def encode_alter(request: AlterConfigsRequest) -> dict[str, Any]:
    """The body of an alter_configs request."""
    return {
        "resources": [
            [entry.resource.type, entry.resource.name, [[op.name, op.operation, op.value] for op in entry.operations]]
            for entry in request.resources
        ],
        "validate_only": request.validate_only,
    }


def decode_alter(body: dict[str, Any]) -> AlterConfigsRequest:
    """Raises DecodeError, naming the field."""
    resources = []
    for entry in array(field(body, "resources"), "resources"):
        kind, name, operations = row(entry, "resources[]", 3)
        resources.append(
            AlterConfigsResource(_resource(kind, name), [_operation(op) for op in array(operations, "operations")])
        )
    return AlterConfigsRequest(resources, boolean(field(body, "validate_only", False), "validate_only"))


def encode_alter_response(response: AlterConfigsResponse) -> dict[str, Any]:
    """The body of an alter_configs answer."""
    return {
        "resources": [
            [result.resource.type, result.resource.name, int(result.error), result.message]
            for result in response.results
        ]
    }


def decode_alter_response(body: dict[str, Any]) -> AlterConfigsResponse:
    """Raises DecodeError, naming the field."""
    results = []
    for result in array(field(body, "resources"), "resources"):
        kind, name, error, message = row(result, "resources[]", 4)
        results.append(
            AlterConfigsResult(_resource(kind, name), error_code(error, "error"), long_text(message, "message"))
        )
    return AlterConfigsResponse(results)


def _resource(kind: Any, name: Any) -> ConfigResource:
    return ConfigResource(integer(kind, "type", INT8), text(name, "name"))


def _operation(entry: Any) -> AlterConfigOp:
    name, operation, value = row(entry, "operations[]", 3)
    return AlterConfigOp(
        text(name, "config"), integer(operation, "operation", (OP_SET, OP_DELETE)), long_text(value, "value")
    )


def _entry(entry: Any) -> ConfigEntry:
    name, value, source, kind, doc, read_only, is_default, sensitive = row(entry, "configs[]", 8)
    return ConfigEntry(
        text(name, "config"),
        long_text(value, "value"),
        text(source, "source"),
        text(kind, "type"),
        long_text(doc, "doc") or "",
        boolean(read_only, "read_only"),
        boolean(is_default, "is_default"),
        boolean(sensitive, "sensitive"),
    )
