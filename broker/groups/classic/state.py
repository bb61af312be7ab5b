"""Which states of a classic group may follow each other. Source: Kafka's ClassicGroupState."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.broker.groups.group import GroupState

PREVIOUS_STATES: Final[Mapping[GroupState, frozenset[GroupState]]] = {
    GroupState.EMPTY: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.PREPARING_REBALANCE: frozenset({GroupState.STABLE, GroupState.COMPLETING_REBALANCE, GroupState.EMPTY}),
    GroupState.COMPLETING_REBALANCE: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.STABLE: frozenset({GroupState.COMPLETING_REBALANCE}),
    GroupState.DEAD: frozenset(GroupState),
}
"""For each state, the states from which a group may enter it."""

CAN_REBALANCE: Final = PREVIOUS_STATES[GroupState.PREPARING_REBALANCE]

WITH_MEMBERS: Final = frozenset({GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE, GroupState.STABLE})
