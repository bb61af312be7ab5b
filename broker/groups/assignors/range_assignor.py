"""range: each member gets a contiguous range of every topic's partitions, the first members one partition more.

Members are ordered by instance id or member id, static ones first. So members that read the same topics get the same
partition numbers of each, which co-partitioned joins need. Present owners are not considered. Source: Kafka's
RangeAssignor.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.groups.assignors.assignor import GroupSpec, MemberSpec
from barnabas.protocol.groups.consumer_group_values import Partitions


class RangeAssignor:
    """The assignor `range`."""

    name: Final = "range"

    def assign(self, group: GroupSpec) -> dict[str, Partitions]:
        """Return the new target of every member."""
        order = sorted(group.members, key=lambda member_id: _rank(member_id, group.members[member_id]))
        assigned: dict[str, dict[bytes, frozenset[int]]] = {member_id: {} for member_id in order}
        for topic_id, count in group.partitions.items():
            readers = [member_id for member_id in order if topic_id in group.members[member_id].topics]
            start = 0
            for index, member_id in enumerate(readers):
                end = start + count // len(readers) + (index < count % len(readers))
                if end > start:
                    assigned[member_id][topic_id] = frozenset(range(start, end))
                start = end
        return dict(assigned)


def _rank(member_id: str, member: MemberSpec) -> tuple[bool, str]:
    return (True, member_id) if member.instance_id is None else (False, member.instance_id)
