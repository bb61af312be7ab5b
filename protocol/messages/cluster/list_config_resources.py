"""ListConfigResources (key 74): what has, or could have, configs of its own."""

from __future__ import annotations

from dataclasses import dataclass

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.cluster.configs import ConfigResource


@dataclass(slots=True)
class ListConfigResourcesRequest:
    """`types`: resource types by Kafka's numbers."""

    types: list[int]


@dataclass(slots=True)
class ListConfigResourcesResponse:
    """Every resource of the types that were asked for."""

    resources: list[ConfigResource]
    error: ErrorCode = ErrorCode.NONE
