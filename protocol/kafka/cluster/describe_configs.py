"""DescribeConfigs (32), versions 1-4: synonyms on request; from version 3 on types and documentation."""

from __future__ import annotations

from functools import cache
from typing import Final, NamedTuple

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.cluster.config_codes import source_code, type_code
from barnabas.protocol.kafka.schema import (
    BOOL,
    INT8,
    INT16,
    MESSAGE,
    NO_THROTTLE,
    NULLABLE_STRING,
    STRING,
    Array,
    Computed,
    Encoded,
    Message,
    Write,
    rows,
    since,
)
from barnabas.protocol.messages.cluster.configs import (
    ConfigResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)


class _Row(NamedTuple):
    error: ErrorCode
    message: str | None
    type: int
    name: str
    entries: bytearray


_FLEXIBLE_FROM: Final = 4

REQUEST = Message(
    _FLEXIBLE_FROM,
    lambda resources, include_synonyms, include_documentation=False: DescribeConfigsRequest(
        resources, include_synonyms, include_documentation
    ),
    resources=rows(
        # No names, or an empty list of them, requests every property.
        lambda type, name, names: DescribeConfigsResource(ConfigResource(type, name), names or None),
        type=INT8,
        name=STRING,
        names=Array(STRING, nullable_from=0),
    ),
    include_synonyms=BOOL,
    include_documentation=since(3, BOOL),
)
_SOURCE = Computed(INT8, lambda each: source_code(each.source))
_ENTRIES = rows(
    name=STRING,
    value=NULLABLE_STRING,
    read_only=BOOL,
    source=_SOURCE,
    sensitive=BOOL,
    synonyms=rows(name=STRING, value=NULLABLE_STRING, source=_SOURCE),
    type=since(3, Computed(INT8, lambda entry: type_code(entry.type))),
    documentation=since(3, Computed(NULLABLE_STRING, lambda entry: entry.doc or None)),
)
RESPONSE = Message(
    _FLEXIBLE_FROM,
    throttle_ms=NO_THROTTLE,
    rows=Computed(
        rows(error=INT16, message=MESSAGE, type=INT8, name=STRING, entries=Encoded(_ENTRIES)),
        lambda results: results,
    ),
)

decode_request = REQUEST.read


def encode_response(version: int, response: DescribeConfigsResponse) -> bytes:
    """A row for each resource. Entries that several topics share are encoded once, by the identity of their list."""
    write_entries = _entries_writer(version)
    encoded: dict[int, bytearray] = {}
    results = []
    for result in response.results:
        entries = result.entries or []
        body = encoded.get(id(entries))
        if body is None:
            body = bytearray()
            write_entries(body, entries)
            if entries:
                encoded[id(entries)] = body  # the response holds the list, so that its id stays its own
        results.append(_Row(result.error, result.message, result.resource.type, result.resource.name, body))
    return RESPONSE.write(version, results)


def encode_error(version: int, request: DescribeConfigsRequest, code: ErrorCode, message: str) -> bytes:
    """The same refusal for every resource."""
    results = [DescribeConfigsResult(each.resource, code, message) for each in request.resources]
    return encode_response(version, DescribeConfigsResponse(results))


@cache
def _entries_writer(version: int) -> Write:
    return _ENTRIES.writer(version, version >= _FLEXIBLE_FROM)
