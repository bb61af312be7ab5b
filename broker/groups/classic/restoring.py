"""A classic group as its record describes it, at a start and after a downgrade."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.groups.classic.group import ClassicGroup
from barnabas.broker.groups.classic.member import ClassicGroupMember
from barnabas.broker.groups.classic.rebalance import prepare
from barnabas.broker.groups.group import GroupState

if TYPE_CHECKING:
    from barnabas.broker.groups.classic.settings import GroupSettings
    from barnabas.broker.groups.history import GroupHistories
    from barnabas.broker.groups.timers import GroupClock
    from barnabas.protocol.groups.values import GroupMetadataValue


def restored(
    group_id: str,
    value: GroupMetadataValue,
    settings: GroupSettings,
    clock: GroupClock,
    histories: GroupHistories | None = None,
) -> ClassicGroup:
    """Return the group: empty, or stable, with each member's session beginning now.

    A record with members and no leader was a consumer group until a downgrade (`consumer.migration`): it rebalances.
    """
    group = ClassicGroup(group_id, settings, clock, histories)
    group.generation = value.generation
    group.protocol_type = value.protocol_type
    group.protocol = value.protocol
    if value.current_state_timestamp >= 0:
        group.state_since_ms = value.current_state_timestamp
    for each in value.members:
        member = ClassicGroupMember(
            each.member_id,
            group_instance_id=each.group_instance_id,
            client_id=each.client_id,
            client_host=each.client_host,
            rebalance_timeout_ms=each.rebalance_timeout if each.rebalance_timeout >= 0 else each.session_timeout,
            session_timeout_ms=each.session_timeout,
            protocols={} if value.protocol is None else {value.protocol: each.subscription},
            assignment=each.assignment,
        )
        group.roster.add(member)
        group.extend_session(member)
    if value.members:
        group.state = GroupState.STABLE
        if value.leader is not None and value.leader in group.roster:
            group.roster.leader = value.leader
        else:
            prepare(group, "it was a consumer group")
        if len(group.roster) > settings.max_size and group.state == GroupState.STABLE:
            prepare(group, "there are more members than group.max.size")
    return group
