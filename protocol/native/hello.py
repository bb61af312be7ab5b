"""hello (18): both sides' software, and the versions of the APIs. Clients send it first, but it is not required.

request   client str, client_version str
response  server, server_version, cluster_id str, node_id int, apis [[api, min, max]], max_frame_bytes int
"""

from __future__ import annotations

from typing import Any

from barnabas.protocol.messages.cluster.api_versions import ApiVersionRange, ApiVersionsRequest, ApiVersionsResponse
from barnabas.protocol.native.fields import INT16, INT32, array, field, integer, row, text
from barnabas.protocol.native.frame import KEYS


def encode_request(request: ApiVersionsRequest) -> dict[str, Any]:
    """The body of a request."""
    return {"client": request.client, "client_version": request.client_version}


def decode_response(body: dict[str, Any]) -> ApiVersionsResponse:
    """Raises DecodeError, naming the field."""
    return ApiVersionsResponse(
        server=text(field(body, "server"), "server"),
        server_version=text(field(body, "server_version"), "server_version"),
        cluster_id=text(field(body, "cluster_id"), "cluster_id"),
        node_id=integer(field(body, "node_id"), "node_id", INT32),
        apis=[_range(entry) for entry in array(field(body, "apis"), "apis")],
        max_frame_bytes=integer(field(body, "max_frame_bytes"), "max_frame_bytes", INT32),
    )


def _range(entry: Any) -> ApiVersionRange:
    value, low, high = row(entry, "apis[]", 3)
    number = integer(value, "api", INT16)
    return ApiVersionRange(
        api=KEYS.get(number, number), min_version=integer(low, "min", INT16), max_version=integer(high, "max", INT16)
    )
