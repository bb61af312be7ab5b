"""What the coordinators of share groups promise: acknowledgements, deliveries, start offsets, groups.

After a start a share partition is as it was acknowledged last, or as one of the changes since would make it; so is a
group. What was accepted or rejected is not delivered, everything else is, with a count that is one above the stored
deliveries. Then a member joins each group and gets all of its records.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from barnabas.broker.groups.share.group import ShareGroup
from barnabas.protocol.errors import BrokerError
from barnabas.protocol.share.state_records import UNINITIALIZED, ShareSnapshotValue, StateBatch
from tests.support.storage.metadata_store import Opened
from tests.torture.crash_states.coordinators import Place
from tests.torture.crash_states.share_clients import ShareClients

_AVAILABLE = 0
_MEMBER = "member"


class SharedState(NamedTuple):
    """A share partition. `counts`: stored deliveries of records that were released."""

    start_offset: int
    """The least start offset: it was told to somebody. UNINITIALIZED before the first change."""
    done: frozenset[int] = frozenset()
    counts: Mapping[int, int] = {}

    def deliveries(self, present: Collection[int]) -> dict[int, int]:
        """Return what the next member gets, with the counts, if the log has the records `present`."""
        if self.start_offset == UNINITIALIZED:
            return {}
        offsets = (offset for offset in present if offset >= self.start_offset and offset not in self.done)
        return {offset: self.counts.get(offset, 0) + 1 for offset in offsets}

    def key(self) -> tuple[object, ...]:
        """Return the same as a value that can be compared and hashed."""
        return self.start_offset, self.done, tuple(sorted(self.counts.items()))


class GroupState(NamedTuple):
    """A share group."""

    epoch: int
    """The least epoch."""
    members: frozenset[str] = frozenset()
    initialized: frozenset[Place] = frozenset()
    """The partitions of which it knows that they have a state."""


class SharePlace(NamedTuple):
    """A group's view of a partition."""

    group: str
    place: Place


class ChangingShare(NamedTuple):
    """Share partitions are about to change to these states; None: to be deleted."""

    states: Mapping[SharePlace, SharedState | None]


class ChangedShare(NamedTuple):
    """They are in these states for good."""

    states: Mapping[SharePlace, SharedState | None]


class ChangingGroup(NamedTuple):
    """A share group is about to change to this state; None: to be deleted."""

    group: str
    state: GroupState | None


class ChangedGroup(NamedTuple):
    """It is in this state for good."""

    group: str
    state: GroupState | None


ShareNote = ChangingShare | ChangedShare | ChangingGroup | ChangedGroup


class ShareOutcomes:
    """The promises about share groups after some events of a recording."""

    def __init__(self) -> None:
        self.states: dict[SharePlace, list[SharedState | None]] = {}
        """The states that each may have; the first one is what is kept for good."""
        self.groups: dict[str, list[GroupState | None]] = {}

    def add(self, said: ShareNote) -> None:
        """Take a note into account."""
        match said:
            case ChangingShare(states):
                for place, state in states.items():
                    self.states.setdefault(place, [None]).append(state)
            case ChangedShare(states):
                for place, state in states.items():
                    self.states[place] = [state]
            case ChangingGroup(group, state):
                self.groups.setdefault(group, [None]).append(state)
            case ChangedGroup(group, state):
                self.groups[group] = [state]

    def key(self) -> tuple[object, ...]:
        """Return what is promised, to compare it."""
        states = (
            (place, tuple(None if each is None else each.key() for each in allowed))
            for place, allowed in sorted(self.states.items())
        )
        return tuple(states), tuple((group, tuple(allowed)) for group, allowed in sorted(self.groups.items()))


def stored_deliveries(start_offset: int, batches: Iterable[StateBatch], present: Collection[int]) -> dict[int, int]:
    """Return what a member would get of a stored state, with the counts, if the log has the records `present`."""
    if start_offset == UNINITIALIZED:
        return {}
    found = {offset: 1 for offset in present if offset >= start_offset}
    for batch in batches:
        for offset in found.keys() & range(batch.first_offset, batch.last_offset + 1):
            if batch.delivery_state == _AVAILABLE:
                found[offset] = batch.delivery_count + 1
            else:
                del found[offset]
    return found


def is_allowed(
    allowed: Sequence[SharedState | None],
    start_offset: int | None,
    deliveries: Mapping[int, int],
    present: Collection[int],
) -> bool:
    """Return whether a share partition is in an allowed state. `start_offset` None: it has no state."""
    for state in allowed:
        if state is None or start_offset is None:
            if state is None and start_offset is None:
                return True
        elif start_offset >= state.start_offset and deliveries == state.deliveries(present):
            return state.start_offset != UNINITIALIZED or start_offset == UNINITIALIZED
    known = [each for each in allowed if each is not None]
    if start_offset is None or len(allowed) < 3 or not known:
        return False
    # Of several changes that were not synced, a roll may lose an earlier one and keep a later one.
    possible = [each.deliveries(present) for each in known]
    return start_offset >= min(each.start_offset for each in known) and all(
        deliveries.get(offset) in {each.get(offset) for each in possible} for offset in present
    )


def broken_shares(opened: Opened, outcomes: ShareOutcomes) -> Iterator[str]:
    """Yield what the coordinators of a started broker do not keep."""
    if not outcomes.states and not outcomes.groups:
        return
    clients = ShareClients(opened)
    try:
        for group, groups in outcomes.groups.items():
            yield from _broken_group(clients, group, groups)
        for share_place, allowed in outcomes.states.items():
            state, present = clients.state(*share_place), clients.present(share_place.place)
            start_offset = None if state is None else state.start_offset
            if not is_allowed(allowed, start_offset, _stored(state, present), present):
                yield f"{share_place} is {state}, allowed are {allowed}"
        yield from _broken_use(clients, outcomes)
    finally:
        clients.close()


def _stored(state: ShareSnapshotValue | None, present: Collection[int]) -> dict[int, int]:
    return {} if state is None else stored_deliveries(state.start_offset, state.state_batches, present)


def _broken_group(clients: ShareClients, group: str, allowed: list[GroupState | None]) -> Iterator[str]:
    """Complain about a group that is not between the states that it may have."""
    found = clients.group(group)
    if found is None:
        if None not in allowed:
            yield f"share group {group} is lost, allowed are {allowed}"
        return
    known = [each for each in allowed if each is not None]
    if not known:
        yield f"share group {group} is there, and was deleted"
        return
    if None in allowed:
        known.append(GroupState(0))
    if found.epoch < min(each.epoch for each in known):
        yield f"share group {group} has epoch {found.epoch}, allowed are {allowed}"
    for name, present, of in (
        ("members", set(found.members), [each.members for each in known]),
        ("initialized partitions", _initialized(found), [each.initialized for each in known]),
    ):
        if not frozenset.intersection(*of) <= present <= frozenset.union(*of):
            yield f"share group {group} has the {name} {sorted(present)}, allowed are {allowed}"


def _initialized(group: ShareGroup) -> set[Place]:
    return {(topic.name, number) for topic in group.states.initialized.values() for number in topic.partitions}


def _broken_use(clients: ShareClients, outcomes: ShareOutcomes) -> Iterator[str]:
    """Let a member of each group get all of its records, which is what its states say.

    The group begins anew in partitions of which it does not know that they have a state.
    """
    places: dict[str, list[Place]] = {}
    for group, place in outcomes.states:
        places.setdefault(group, []).append(place)
    for group, of_group in places.items():
        present = {place: clients.present(place) for place in of_group}
        before = clients.group(group)
        known = set() if before is None else _initialized(before)
        stored = {
            place: _stored(clients.state(group, place), present[place]) if place in known else {} for place in of_group
        }
        try:
            clients.join(group, _MEMBER, {topic for topic, _ in of_group})
            for place in of_group:
                got: dict[int, int] = {}
                while more := clients.fetch(group, _MEMBER, place):
                    got |= more
                got = {offset: count for offset, count in got.items() if offset in present[place]}
                if got != stored[place]:
                    yield f"a member of group {group} gets {got} of {place}, stored is {stored[place]}"
        except BrokerError as error:
            yield f"share group {group} cannot be used: {error}"
