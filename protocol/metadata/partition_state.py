"""State of one partition in the metadata log, and the merging of its changes.

Most partitions of a node differ only in number and topic, so the part of a record after those two fields is decoded
once per distinct bytes and shared: 10,000 partitions cost one `PartitionState`.
Source: Kafka's PartitionRecord.json, PartitionChangeRecord.json and PartitionRegistration.merge.
"""

from __future__ import annotations

from typing import NamedTuple

NO_LEADER = -1
NO_LEADER_CHANGE = -2
RECOVERY_UNCHANGED = -1

DIRECTORY_MIGRATING = bytes(16)
"""Directory of a replica written before directories had ids."""

RESERVED_DIRECTORIES_BELOW = 100
"""Directory ids below this number are reserved by Kafka: 0 migrating, 1 unassigned, 2 lost (offline)."""


class PartitionState(NamedTuple):
    """`replicas` (by preference), `isr`, `removing` and `adding` are node ids; `leader` is one of them or -1.

    `directories` has one id per replica, in the order of `replicas`; it is empty in records of version 0.
    `leader_recovery_state` is 1 while the partition recovers from an unclean election. The two lists of eligible
    leaders (KIP-966) are None unless a record sets them.
    """

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0
    directories: tuple[bytes, ...] = ()
    removing: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()
    leader_recovery_state: int = 0
    eligible_leaders: tuple[int, ...] | None = None
    last_known_eligible: tuple[int, ...] | None = None

    def changed_by(self, change: PartitionDelta) -> PartitionState:
        """Return the state after `change`. The partition epoch rises by one, the leader epoch if a leader is given."""
        replicas = self.replicas if change.replicas is None else change.replicas
        directories = self.directories if change.directories is None else change.directories
        if directories and len(directories) != len(replicas):
            directories = (DIRECTORY_MIGRATING,) * len(replicas)
        leader_given = change.leader != NO_LEADER_CHANGE
        recovery_given = change.leader_recovery_state != RECOVERY_UNCHANGED
        return PartitionState(
            replicas=replicas,
            isr=self.isr if change.isr is None else change.isr,
            leader=change.leader if leader_given else self.leader,
            leader_epoch=self.leader_epoch + 1 if leader_given else self.leader_epoch,
            partition_epoch=self.partition_epoch + 1,
            directories=directories,
            removing=self.removing if change.removing is None else change.removing,
            adding=self.adding if change.adding is None else change.adding,
            leader_recovery_state=change.leader_recovery_state if recovery_given else self.leader_recovery_state,
            eligible_leaders=self.eligible_leaders if change.eligible_leaders is None else change.eligible_leaders,
            last_known_eligible=(
                self.last_known_eligible if change.last_known_eligible is None else change.last_known_eligible
            ),
        )


class PartitionDelta(NamedTuple):
    """Fields of a PartitionChange record; None, -2 (leader) and -1 (recovery state) leave a field unchanged."""

    isr: tuple[int, ...] | None = None
    leader: int = NO_LEADER_CHANGE
    replicas: tuple[int, ...] | None = None
    removing: tuple[int, ...] | None = None
    adding: tuple[int, ...] | None = None
    leader_recovery_state: int = RECOVERY_UNCHANGED
    eligible_leaders: tuple[int, ...] | None = None
    last_known_eligible: tuple[int, ...] | None = None
    directories: tuple[bytes, ...] | None = None
