"""Workloads of share groups, whose states are in `__share_group_state`, and their groups in `__consumer_offsets`."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from barnabas.broker.share.partition.share_partition import ACCEPT, REJECT, RELEASE, RENEW
from barnabas.protocol.share.state_records import UNINITIALIZED
from barnabas.protocol.topic_partition import TopicPartition
from tests.torture.crash_states.coordinators import Place
from tests.torture.crash_states.promises import Pruning
from tests.torture.crash_states.recording import Recorder
from tests.torture.crash_states.share_clients import ShareClients
from tests.torture.crash_states.share_outcomes import (
    ChangedGroup,
    ChangedShare,
    ChangingGroup,
    ChangingShare,
    GroupState,
    SharedState,
    SharePlace,
)
from tests.torture.crash_states.workbench import Workbench

FEATURES = "transaction.version=0,share.version=1"
"""Apache Kafka serves share groups of a directory with these levels."""
MEMBER = "member"
_TOPIC = "orders"
_PARTITIONS = 2
_STEPS = 24
_DELIVERY_LIMIT = 5
_MOST_EXPIRIES = 4
"""More would let the upkeep's own tasks run."""
_COLD_MS = 300_000


def share_groups(recorder: Recorder, choose: random.Random) -> None:
    """Members of share groups acknowledge, groups and states begin anew and are deleted; the states are pruned.

    The topics have flush.acks.all: what was answered is there.
    """
    ShareTraffic(recorder, choose, is_synced=True).run()


def share_groups_unsynced(recorder: Recorder, choose: random.Random) -> None:
    """The same with the default flush settings: what was synced is there, and nothing newer is there in part."""
    ShareTraffic(recorder, choose, is_synced=False).run()


class ShareTraffic:
    """The steps of a workload, and what its clients know."""

    def __init__(self, recorder: Recorder, choose: random.Random, *, is_synced: bool) -> None:
        """`is_synced`: what is answered is on the disk. Otherwise syncs of both topics are steps of their own."""
        self._recorder = recorder
        self._choose = choose
        self._is_synced = is_synced
        changes = {"flush_acks_all": is_synced, "retention_bytes": -1, "retention_ms": -1}
        self._bench = Workbench(recorder, changes=changes, begins=False, features=FEATURES)
        orders = self._bench.create(_TOPIC, _PARTITIONS)
        self._places = [(orders.topic, number) for number in range(_PARTITIONS)]
        self._offsets = self._bench.create("__consumer_offsets")
        self._states_topic = self._bench.create("__share_group_state")
        self._clients = ShareClients(self._bench.opened)
        self._known: dict[SharePlace, SharedState | None] = {}
        self._groups: dict[str, GroupState | None] = {}
        self._held: dict[SharePlace, dict[int, int]] = {}
        """Deliveries of acquired records by offset."""
        self._expiries = 0

    def run(self) -> None:
        """Take the steps."""
        self._bench.begin()
        for group in ("a", "b"):
            self._append()
            self._begin_at(group, dict.fromkeys(self._places, 0))
            self._join(group)
        steps: list[tuple[Callable[[], None], int]] = [
            (self._acknowledge_some, 14),
            (self._append, 4),
            (self._expire, 1),
            (self._change_group, 3),
            (self._upkeep, 4),
            (self._maintain, 3),
            *([] if self._is_synced else [(self._sync, 3)]),
        ]
        for _ in range(_STEPS):
            self._choose.choices([step for step, _ in steps], [weight for _, weight in steps])[0]()
        self._clients.close()
        self._bench.abandon()

    # -- steps

    def _append(self) -> None:
        for topic, number in self._places:
            place = TopicPartition(topic, number)
            for _ in range(self._choose.choice((1, 2))):
                self._bench.append(place, [b"k"] * self._choose.choice((1, 2, 5)))
            self._bench.flush(place)

    def _acknowledge_some(self) -> None:
        """A member fetches, and acknowledges some of what it has."""
        choose = self._choose
        group = choose.choice(sorted(self._groups))
        place = choose.choice(self._places)
        share_place = SharePlace(group, place)
        known = self._known.get(share_place)
        if known is None or not self._is_joined(group):
            self._join(group)
            return
        held = self._held.setdefault(share_place, {})
        held |= self._clients.fetch(group, MEMBER, place, max_records=choose.choice((1, 3, 500)))
        chosen = sorted(choose.sample(sorted(held), min(len(held), choose.choice((1, 2, 8)))))
        kinds = {offset: choose.choices((ACCEPT, RELEASE, REJECT, RENEW), (5, 3, 1, 1))[0] for offset in chosen}
        ended = {offset: kind for offset, kind in kinds.items() if kind != RENEW}
        if not kinds:
            return
        after = self._after(share_place, ended, held)
        if ended:
            self._changing({share_place: after})
        self._clients.acknowledge(group, MEMBER, place, kinds)
        for offset in ended:
            del held[offset]
        if ended:
            self._changed({share_place: after})

    def _expire(self) -> None:
        """The locks run out, which is stored and answered to nobody."""
        if self._expiries == _MOST_EXPIRIES:
            return
        self._expiries += 1
        after = {}
        for share_place, held in self._held.items():
            if held:
                after[share_place] = self._after(share_place, dict.fromkeys(held, RELEASE), held)
        self._held.clear()
        for group, state in self._groups.items():
            if state is not None and state.members:  # whose session may end
                self._changing_group(group, state._replace(members=frozenset()))
        self._changing(after)
        self._clients.let_locks_expire()
        self._known |= after
        for group, state in self._groups.items():
            found = self._clients.group(group)
            if state is not None and found is not None:
                self._changed_group(group, state._replace(epoch=found.epoch, members=frozenset(found.members)))

    def _change_group(self) -> None:
        """A group is left, and begins anew at other offsets, or some of it is deleted."""
        choose = self._choose
        group = choose.choice(sorted(self._groups))
        if self._groups[group] is None:
            self._join(group)
            return
        if self._is_joined(group):
            self._leave(group)
        self._clients.close_sessions(group)  # of a member whose time was over
        kind = choose.choice(("begin", "begin", "delete states", "delete group"))
        states = {SharePlace(group, place): None for place in self._places}
        known = self._groups[group]
        assert known is not None
        if kind == "begin":
            chosen = choose.sample(self._places, choose.choice((1, 2)))
            self._begin_at(group, {place: choose.choice(sorted(self._clients.present(place))) for place in chosen})
        elif kind == "delete states" and known.initialized:
            self._changing(states)
            self._changing_group(group, known._replace(initialized=frozenset()))
            self._clients.delete_offsets(group, _TOPIC)
            self._changed(states)
            self._changed_group(group, known._replace(initialized=frozenset()))
        elif kind == "delete group":
            self._changing(states)
            self._changing_group(group, known._replace(initialized=frozenset()))
            self._changing_group(group, None)
            self._clients.delete_group(group)
            self._changed(states)
            self._changed_group(group, None)

    def _upkeep(self) -> None:
        """Cold states are written again, and what is not needed is deleted."""
        if self._choose.random() < 0.4:
            self._clients.age(_COLD_MS)
            self._clients.write_cold_states()
        self._recorder.note(Pruning(self._bench.id_of(self._states_topic), self._clients.needed_from))
        self._clients.prune()
        if self._choose.random() < 0.5:
            self._bench.log(self._states_topic).roll()  # and its end is not synced yet
        self._bench.log(self._states_topic).delete_old_segments()
        if self._choose.random() < 0.5:
            self._bench.run_background(1000)
        if self._choose.random() < 0.5:
            self._bench.checkpoint()

    def _maintain(self) -> None:
        self._bench.run_background()
        if self._choose.random() < 0.3:
            self._bench.log(self._choose.choice((self._offsets, self._states_topic))).roll()
        self._bench.checkpoint()

    def _sync(self) -> None:
        """Both topics are synced: everything that is known is on the disk."""
        self._bench.log(self._offsets).flush()
        self._bench.log(self._states_topic).flush()
        self._recorder.note(ChangedShare(dict(self._known)))
        for group, state in self._groups.items():
            self._recorder.note(ChangedGroup(group, state))

    # -- changes

    def _join(self, group: str) -> None:
        before = self._groups.get(group) or GroupState(0)
        begun = {
            share_place: SharedState(UNINITIALIZED)
            for place in self._places
            if self._known.get(share_place := SharePlace(group, place)) is None
        }
        after = before._replace(
            members=before.members | {MEMBER}, initialized=before.initialized | frozenset(self._places)
        )
        self._changing(begun)
        self._changing_group(group, after)
        self._clients.join(group, MEMBER, [_TOPIC])
        found = self._clients.group(group)
        assert found is not None
        self._changed(begun)
        self._changed_group(group, after._replace(epoch=found.epoch))

    def _leave(self, group: str) -> None:
        known = self._groups[group]
        assert known is not None
        after = {}
        for place in self._places:
            share_place = SharePlace(group, place)
            held = self._held.pop(share_place, {})
            if held:
                after[share_place] = self._after(share_place, dict.fromkeys(held, RELEASE), held)
        self._changing(after)
        self._changing_group(group, known._replace(members=frozenset()))
        self._clients.leave(group, MEMBER)
        found = self._clients.group(group)
        assert found is not None
        self._changed(after)
        self._changed_group(group, known._replace(epoch=found.epoch, members=frozenset()))

    def _begin_at(self, group: str, offsets: Mapping[Place, int]) -> None:
        known = self._groups.get(group) or GroupState(0)
        after = {SharePlace(group, place): SharedState(offset) for place, offset in offsets.items()}
        self._changing(after)
        self._changing_group(group, known._replace(initialized=known.initialized | frozenset(offsets)))
        self._clients.begin_at(group, offsets)
        self._changed(after)
        self._changed_group(group, known._replace(initialized=known.initialized | frozenset(offsets)))

    def _is_joined(self, group: str) -> bool:
        state = self._groups.get(group)
        return state is not None and MEMBER in state.members

    def _after(self, share_place: SharePlace, kinds: Mapping[int, int], held: Mapping[int, int]) -> SharedState:
        """Return what acknowledgements of acquired records make of a share partition."""
        state = self._known[share_place]
        assert state is not None
        start_offset, done, counts = state.start_offset, set(state.done), dict(state.counts)
        if start_offset == UNINITIALIZED:  # it has begun where its first member did, which is stored now
            start_offset = self._clients.start_offset(*share_place)
        for offset, kind in kinds.items():
            if kind == RELEASE and held[offset] < _DELIVERY_LIMIT:
                counts[offset] = held[offset]
            else:
                done.add(offset)
        return SharedState(start_offset, frozenset(done), counts)

    def _changing(self, states: Mapping[SharePlace, SharedState | None]) -> None:
        self._recorder.note(ChangingShare(states))

    def _changed(self, states: Mapping[SharePlace, SharedState | None]) -> None:
        """Follow an answered change, and note it as kept for good if that is promised."""
        told: dict[SharePlace, SharedState | None] = {}
        for share_place, state in states.items():
            stored = self._clients.state(*share_place)
            if state is not None and stored is not None:
                told[share_place] = state._replace(start_offset=max(state.start_offset, stored.start_offset))
            else:
                told[share_place] = state
        self._known |= told
        if self._is_synced:
            self._recorder.note(ChangedShare(told))

    def _changing_group(self, group: str, state: GroupState | None) -> None:
        self._recorder.note(ChangingGroup(group, state))

    def _changed_group(self, group: str, state: GroupState | None) -> None:
        self._groups[group] = state
        if self._is_synced:
            self._recorder.note(ChangedGroup(group, state))
