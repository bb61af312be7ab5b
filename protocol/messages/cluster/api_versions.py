"""ApiVersions (key 18), hello in the native dialect: who speaks, and which versions of which APIs."""

from __future__ import annotations

from dataclasses import dataclass, field


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
class Feature:
    """A feature of a cluster, such as metadata.version: the levels that the broker can, and the one it is at."""

    name: str
    min_version: int
    max_version: int
    level: int


@dataclass(slots=True)
class ApiVersionsResponse:
    """`max_frame_bytes`: the largest frame that the broker takes (socket.request.max.bytes).

    `apis` are the native dialect's; Kafka's answers from a table of its own, which is part of its codec. `features`
    and their epoch (-1: unknown) are said in Kafka's dialect only.
    """

    server: str
    server_version: str
    cluster_id: str
    node_id: int
    apis: list[ApiVersionRange]
    max_frame_bytes: int
    features: list[Feature] = field(default_factory=list)
    features_epoch: int = -1
