"""DescribeConfigs (32), versions 1-4: synonyms where they are asked for; from version 3 on types and documentation."""

from __future__ import annotations

from typing import Any, Final

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka import entities
from barnabas.protocol.kafka.cluster.config_codes import source_code, type_code
from barnabas.protocol.kafka.hot_fields import (
    INT16,
    INT32,
    NO_TAGS,
    compact_count,
    compact_nullable_string,
    compact_string,
    nullable_string,
    string,
)
from barnabas.protocol.messages.cluster.configs import (
    ConfigEntry,
    ConfigResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)

_API: Final = "describe_configs"
_FLEXIBLE_FROM: Final = 4
_NO_THROTTLE: Final = INT32.pack(0)


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
    """A row for each resource. Its head by hand, so that entries which several topics share are written once."""
    schema = entities.response_schema(_API, version)
    flexible = version >= _FLEXIBLE_FROM
    count = compact_count if flexible else INT32.pack
    text, nullable_text = (compact_string, compact_nullable_string) if flexible else (string, nullable_string)
    out = bytearray(_NO_THROTTLE + count(len(response.results)))
    written: dict[int, bytes] = {}
    for result in response.results:
        entries = result.entries or []
        body = written.get(id(entries))
        if body is None:
            body = count(len(entries)) + b"".join([entities.write(_entry(schema, each)) for each in entries])
            if entries:
                written[id(entries)] = body  # the response holds the list: its id is nobody else's
        out += INT16.pack(result.error) + nullable_text(entities.sentence(result.message))
        out.append(result.resource.type & 0xFF)  # an int8, of the client
        out += text(result.resource.name)
        out += body
        out += NO_TAGS if flexible else b""
    out += NO_TAGS if flexible else b""
    return bytes(out)


def encode_error(version: int, request: DescribeConfigsRequest, code: ErrorCode, message: str) -> bytes:
    """The same refusal for every resource."""
    results = [DescribeConfigsResult(each.resource, code, message) for each in request.resources]
    return encode_response(version, DescribeConfigsResponse(results))


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
