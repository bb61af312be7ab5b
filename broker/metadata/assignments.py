"""Manual replica assignments. A single node allows only itself; anything else is refused in Kafka's words.

Source: Kafka's ReplicationControlManager (createTopic, createPartitions, validateManualPartitionAssignment).
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.topics.topics import DEFAULT_COUNT, NewPartitionAssignment, NewTopic

_REPLICATION_FACTOR = 1


def assigned_partition_count(topic: NewTopic, node_id: int) -> int:
    """Return the number of partitions that the topic's assignments define. Raises BrokerError."""
    if topic.replication_factor != DEFAULT_COUNT:
        message = "A manual partition assignment was specified, but replication factor was not set to -1."
        raise BrokerError(ErrorCode.INVALID_REQUEST, message)
    if topic.partitions != DEFAULT_COUNT:
        message = "A manual partition assignment was specified, but numPartitions was not set to -1."
        raise BrokerError(ErrorCode.INVALID_REQUEST, message)
    seen: set[int] = set()
    for assignment in topic.assignments:
        if assignment.partition in seen:
            raise _refused(f"Found multiple manual partition assignments for partition {assignment.partition}")
        seen.add(assignment.partition)
        ensure_assignment(assignment.replicas, node_id)
    if seen != set(range(len(seen))):
        raise _refused("partitions should be a consecutive 0-based integer sequence")
    return len(seen)


def ensure_assignments_of_growth(assignments: Sequence[NewPartitionAssignment], additional: int, node_id: int) -> None:
    """Raise BrokerError unless each of `additional` new partitions has one possible assignment."""
    if len(assignments) != additional:
        message = (
            f"Attempted to add {additional} additional partition(s), but only {len(assignments)} assignment(s) were "
            "specified."
        )
        raise _refused(message)
    for assignment in assignments:
        ensure_assignment(assignment.replicas, node_id)


def ensure_assignment(replicas: tuple[int, ...], node_id: int) -> None:
    """Raise BrokerError unless the replicas are this node alone."""
    if not replicas:
        raise _refused("The manual partition assignment includes an empty replica list.")
    unknown = sorted(set(replicas) - {node_id})
    if unknown:
        message = (
            f"The manual partition assignment includes broker {unknown[0]}, but no such broker is registered."
            f" This is broker {node_id}, and the only one."
        )
        raise _refused(message)
    if len(replicas) > _REPLICATION_FACTOR:
        raise _refused(f"The manual partition assignment includes the broker {node_id} more than once.")


def _refused(message: str) -> BrokerError:
    return BrokerError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
