"""ApiVersions (key 18), hello in the native dialect: who speaks, and which versions of which APIs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class ApiVersionsRequest:
    """Client software and its version, for the broker's log and metrics."""

    client: str
    client_version: str


@dataclass(slots=True)
class ApiVersionRange:
    """Both ends are served."""

    api: int
    min_version: int
    max_version: int


@dataclass(slots=True)
class ApiVersionsResponse:
    """`max_frame_bytes`: the largest frame that the broker takes (socket.request.max.bytes)."""

    server: str
    server_version: str
    cluster_id: str
    node_id: int
    apis: list[ApiVersionRange]
    max_frame_bytes: int
