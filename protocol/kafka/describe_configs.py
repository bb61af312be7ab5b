"""DescribeConfigs (32), versions 1-4: synonyms where they are asked for; from version 3 on types and documentation."""

from __future__ import annotations

from typing import Any, Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka import entities
from barnabas.protocol.kafka.config_codes import source_code, type_code
from barnabas.protocol.messages.configs import (
    ConfigEntry,
    ConfigResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)

_API: Final = "describe_configs"


def decode_request(version: int, body: memoryview) -> DescribeConfigsRequest:
    """Raises DecodeError. No names, or an empty list of them, asks for every property."""
    request = entities.read_request(_API, version, body)
    return DescribeConfigsRequest(
        [
            DescribeConfigsResource(
                ConfigResource(each.resource_type, each.resource_name), list(each.configuration_keys or ()) or None
            )
            for each in request.resources
        ],
        include_synonyms=request.include_synonyms,
        include_documentation=getattr(request, "include_documentation", False),
    )


def encode_response(version: int, response: DescribeConfigsResponse) -> bytes:
    """A row for each resource."""
    schema = entities.response_schema(_API, version)
    rows = tuple(_row(schema, result) for result in response.results)
    return entities.write(schema.DescribeConfigsResponse(throttle_time=entities.NO_THROTTLE, results=rows))


def encode_error(version: int, request: DescribeConfigsRequest, code: ErrorCode, message: str) -> bytes:
    """The same refusal for every resource."""
    results = [DescribeConfigsResult(each.resource, code, message) for each in request.resources]
    return encode_response(version, DescribeConfigsResponse(results))


def _row(schema: Any, result: DescribeConfigsResult) -> Any:
    return schema.DescribeConfigsResult(
        error_code=result.error,
        error_message=entities.sentence(result.message),
        resource_type=result.resource.type,
        resource_name=result.resource.name,
        configs=tuple(_entry(schema, entry) for entry in result.entries or ()),
    )


def _entry(schema: Any, entry: ConfigEntry) -> Any:
    return entities.make(
        schema.DescribeConfigsResourceResult,
        name=entry.name,
        value=entry.value,
        read_only=entry.read_only,
        config_source=source_code(entry.source),
        is_sensitive=entry.sensitive,
        synonyms=tuple(
            schema.DescribeConfigsSynonym(name=each.name, value=each.value, source=source_code(each.source))
            for each in entry.synonyms
        ),
        config_type=type_code(entry.type),
        documentation=entry.doc or None,
    )
