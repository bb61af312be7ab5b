"""Operations that a client may perform on a resource, as Kafka's bit fields: bit n is operation n of AclOperation.

Without an authorizer a resource answers with all operations of its type. Source: Kafka's AclEntry.supportedOperations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.protocol.messages.security.resources import Operation, ResourceType

NOT_ASKED: Final = -(2**31)
"""The client did not request them."""

OPERATIONS: Final[Mapping[ResourceType, tuple[Operation, ...]]] = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
}
"""The operations that make sense on each type of resource that has a bit field in an answer."""


def _bits(resource: ResourceType) -> int:
    return sum(1 << operation for operation in OPERATIONS[resource])


TOPIC_OPERATIONS: Final = _bits(ResourceType.TOPIC)
CLUSTER_OPERATIONS: Final = _bits(ResourceType.CLUSTER)
GROUP_OPERATIONS: Final = _bits(ResourceType.GROUP)
