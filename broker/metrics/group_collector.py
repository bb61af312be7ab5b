"""Collector over consumer groups: Kafka's NumGroups metrics, and the rebalances."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from prometheus_client.core import Metric

from barnabas.broker.groups.group import GroupState
from barnabas.broker.metrics.family import Family
from barnabas.broker.probes import BrokerProbes

_STATES: Final = (
    (GroupState.EMPTY.value, "empty", "Groups without members."),
    (GroupState.PREPARING_REBALANCE.value, "preparing_rebalance", "Groups waiting for their members to join."),
    (GroupState.COMPLETING_REBALANCE.value, "completing_rebalance", "Groups waiting for their leader's assignment."),
    (GroupState.NOT_READY.value, "not_ready", "Streams groups whose topics are missing or wrongly partitioned."),
    (GroupState.ASSIGNING.value, "assigning", "Groups of the consumer protocol that need a new assignment."),
    (
        GroupState.RECONCILING.value,
        "reconciling",
        "Groups of the consumer protocol whose members are revoking and taking over partitions.",
    ),
    (GroupState.STABLE.value, "stable", "Groups whose members have their assignments."),
)


class GroupCollector:
    """Groups by state, share groups among them, and rebalances."""

    by_state: ClassVar = {
        state: Family(f"barnabas_groups_{name}", "gauge", meaning) for state, name, meaning in _STATES
    }
    rebalances = Family(
        "barnabas_group_rebalances_total", "counter", "Rebalances that ended with an assignment for every member."
    )
    share_by_state: ClassVar = {
        GroupState.EMPTY.value: Family("barnabas_share_groups_empty", "gauge", "Share groups without members."),
        GroupState.STABLE.value: Family("barnabas_share_groups_stable", "gauge", "Share groups with members."),
    }
    share_rebalances = Family(
        "barnabas_share_group_rebalances_total",
        "counter",
        "Assignments that share groups began: a member came or went, or read other topics, or partitions were new.",
    )
    families: ClassVar = (*by_state.values(), rebalances, *share_by_state.values(), share_rebalances)

    def __init__(self, probes: BrokerProbes) -> None:
        self._probe = probes.groups

    def collect(self) -> Iterator[Metric]:
        """All families, from the counters as they are now."""
        for state, family in self.by_state.items():
            yield family.render([((), self._probe.states.get(state, 0))])
        yield self.rebalances.render([((), self._probe.completed_rebalances)])
        for state, family in self.share_by_state.items():
            yield family.render([((), self._probe.share_states.get(state, 0))])
        yield self.share_rebalances.render([((), self._probe.share_rebalances)])
