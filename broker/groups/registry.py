"""The groups of this broker that have or had members, by id, whatever their protocol.

Handlers and the offsets service look groups up here. The services of the protocols (`classic.groups`,
`consumer.groups`, `share.groups`) put groups in and remove them, and report changes of state, which are counted here
for the metrics.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from barnabas.broker.groups.group import Group, GroupState, GroupType
from barnabas.broker.groups.history import GroupHistories
from barnabas.protocol.messages.groups.explain_group import GroupEventKind

if TYPE_CHECKING:
    from barnabas.broker.probes import GroupProbe


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


class GroupRegistry:
    """Groups by id. In the event loop only."""

    def __init__(self, probe: GroupProbe, wall_ms: Callable[[], int] = _wall_ms) -> None:
        self._probe = probe
        self.histories = GroupHistories(wall_ms)
        """The latest events of each group; it outlives the group, whose id may change its protocol."""
        self._groups: dict[str, Group] = {}
        self._counted: dict[str, tuple[GroupState, bool]] = {}
        """The state in which the metrics have each group, and whether it is a share group there."""

    def __iter__(self) -> Iterator[Group]:
        return iter(list(self._groups.values()))

    def __contains__(self, group_id: str) -> bool:
        return group_id in self._groups

    def get(self, group_id: str) -> Group | None:
        """Return the group; None if it does not exist or only has committed offsets."""
        return self._groups.get(group_id)

    def put(self, group: Group) -> None:
        """Add a group under its id, which must be free; count it with `count`."""
        assert group.group_id not in self._groups, f"there already is a group {group.group_id!r}"
        self._groups[group.group_id] = group

    def remove(self, group_id: str) -> None:
        """Remove a group, if it exists."""
        self._groups.pop(group_id, None)
        self.count(group_id)

    def count_share_rebalance(self) -> None:
        """Count an assignment epoch that a share group began."""
        self._probe.share_rebalances += 1

    def count(self, group_id: str) -> None:
        """Bring the metrics up to date, after anything that may have changed the group's state."""
        group = self._groups.get(group_id)
        before = self._counted.get(group_id)
        counted = None if group is None else (group.state, group.group_type is GroupType.SHARE)
        if before == counted:
            return
        if before is not None:
            self._probe.left(before[0].value, is_share=before[1])
        if counted is None:
            del self._counted[group_id]
            return
        after, is_share = self._counted[group_id] = counted
        self._probe.entered(after.value, is_share=is_share)
        if before is None:
            return
        if after is GroupState.STABLE:
            self._probe.completed_rebalances += 1
            self.histories.add(group_id, GroupEventKind.STABLE)
        elif after is GroupState.EMPTY:
            self.histories.add(group_id, GroupEventKind.EMPTY)
