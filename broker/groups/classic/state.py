"""The states of a classic group, and from which to which it goes.

    Empty                no members; offsets may be there
    PreparingRebalance   waits for the members to join
    CompletingRebalance  a generation is formed and waits for its leader's assignment
    Stable               everybody has an assignment
    Dead                 deleted

Source: Kafka's ClassicGroupState.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final


class GroupState(Enum):
    """By Kafka's names, which clients see."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


PREVIOUS_STATES: Final[Mapping[GroupState, frozenset[GroupState]]] = {
    GroupState.EMPTY: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.PREPARING_REBALANCE: frozenset({GroupState.STABLE, GroupState.COMPLETING_REBALANCE, GroupState.EMPTY}),
    GroupState.COMPLETING_REBALANCE: frozenset({GroupState.PREPARING_REBALANCE}),
    GroupState.STABLE: frozenset({GroupState.COMPLETING_REBALANCE}),
    GroupState.DEAD: frozenset(GroupState),
}
"""Of each state, those that may come before it."""

CAN_REBALANCE: Final = PREVIOUS_STATES[GroupState.PREPARING_REBALANCE]
