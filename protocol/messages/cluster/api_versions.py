"""ApiVersions (key 18), hello in the native dialect: both sides' software, and the versions of the APIs."""

from __future__ import annotations

from dataclasses import dataclass, field

from barnabas.protocol.messages.message import Message


@dataclass(slots=True, eq=False, repr=False)
class ApiVersionsRequest(Message):
    """The client's software and its version, for the broker's log and metrics."""

    client: str
    client_version: str


@dataclass(slots=True, eq=False, repr=False)
class ApiVersionRange(Message):
    """A range of versions, both ends included."""

    api: int
    min_version: int
    max_version: int


@dataclass(slots=True, eq=False, repr=False)
class Feature(Message):
    """A feature of a cluster, for example metadata.version: the supported levels and the finalized one."""

    name: str
    min_version: int
    max_version: int
    level: int


@dataclass(slots=True, eq=False, repr=False)
class ApiVersionsResponse(Message):
    """`max_frame_bytes`: the largest frame that the broker accepts (socket.request.max.bytes).

    `apis` are the native dialect's; the Kafka dialect answers from its own table. `features` and their epoch (-1:
    unknown) are in the Kafka dialect only.
    """

    server: str
    server_version: str
    cluster_id: str
    node_id: int
    apis: list[ApiVersionRange]
    max_frame_bytes: int
    features: list[Feature] = field(default_factory=list)
    features_epoch: int = -1
    unlisted: frozenset[int] = frozenset()
    """Served APIs of the Kafka dialect that are not listed."""
    encoded: dict[int, bytes] = field(default_factory=dict, compare=False, repr=False)
    """The Kafka dialect's body by version: each new connection requests the same."""
