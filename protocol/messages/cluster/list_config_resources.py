"""ListConfigResources (key 74): the resources that have, or could have, configs."""

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
    """Every resource of the requested types."""

    resources: list[ConfigResource]
    error: ErrorCode = ErrorCode.NONE
