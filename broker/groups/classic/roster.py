"""The members of a classic group, its static members by instance id, its pending member ids, and its leader.

The members vote for the assignor of a generation. The candidates are the assignors that all members support; each
member votes for the candidate that it prefers; most votes win, and in a tie the assignor voted for first. A group with
members always has a candidate, because a join that would leave none is refused. Source: Kafka's ClassicGroup.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from barnabas.broker.groups.classic.member import ClassicGroupMember


class GroupRoster:
    """The members in the order in which they joined."""

    __slots__ = ("_known", "_members", "_static", "leader", "pending_join", "pending_sync")

    def __init__(self) -> None:
        self._members: dict[str, ClassicGroupMember] = {}
        self._static: dict[str, str] = {}
        self._known: Counter[str] = Counter()
        """The number of members that support each assignor."""
        self.leader: str | None = None
        self.pending_join: set[str] = set()
        """Ids that were handed out and with which no client joined yet."""
        self.pending_sync: set[str] = set()
        """Members of the generation that have not synced yet."""

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[ClassicGroupMember]:
        return iter(list(self._members.values()))

    def __contains__(self, member_id: str) -> bool:
        return member_id in self._members

    def get(self, member_id: str) -> ClassicGroupMember | None:
        """Return the member; None if there is none of that id."""
        return self._members.get(member_id)

    def static_id(self, group_instance_id: str) -> str | None:
        """Return the member id of a static member, if there is one."""
        return self._static.get(group_instance_id)

    @property
    def joining(self) -> int:
        """The number of members whose join waits for its response."""
        return sum(member.joining is not None for member in self._members.values())

    @property
    def all_joined(self) -> bool:
        """Whether all members and all pending ids have joined the next generation."""
        return not self.pending_join and all(member.joining is not None for member in self._members.values())

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of the members."""
        return max((member.rebalance_timeout_ms for member in self._members.values()), default=0)

    def add(self, member: ClassicGroupMember) -> None:
        """Add a member; the first one leads."""
        assert member.member_id not in self._members
        if member.group_instance_id is not None:
            assert member.group_instance_id not in self._static
            self._static[member.group_instance_id] = member.member_id
        self._members[member.member_id] = member
        self._known.update(member.protocols.keys())
        self.pending_join.discard(member.member_id)
        if self.leader is None:
            self.leader = member.member_id

    def remove(self, member_id: str) -> None:
        """Remove a member or a pending id. If the leader goes, the member that joined first leads."""
        member = self._members.pop(member_id, None)
        if member is not None:
            self._known.subtract(member.protocols.keys())
            if member.group_instance_id is not None:
                del self._static[member.group_instance_id]
        self.pending_join.discard(member_id)
        self.pending_sync.discard(member_id)
        if self.leader == member_id:
            self.leader = next(iter(self._members), None)

    def rename(self, member: ClassicGroupMember, member_id: str) -> None:
        """Give a static member that came back its new id; it keeps its place, and the leadership."""
        old_id = member.member_id
        assert member.group_instance_id is not None
        renamed = {member_id if each == old_id else each: value for each, value in self._members.items()}
        member.member_id = member_id
        self._members = renamed
        self._static[member.group_instance_id] = member_id
        if old_id in self.pending_sync:
            self.pending_sync.remove(old_id)
            self.pending_sync.add(member_id)
        if self.leader == old_id:
            self.leader = member_id

    def update(self, member: ClassicGroupMember, protocols: Mapping[str, bytes]) -> None:
        """Replace the assignors and the metadata of a member."""
        self._known.subtract(member.protocols.keys())
        member.protocols = protocols
        self._known.update(protocols.keys())

    def elect_joined_leader(self) -> bool:
        """Make a member that joined the leader; return False if none joined."""
        leader = None if self.leader is None else self._members[self.leader]
        if leader is not None and leader.joining is not None:
            return True
        for member in self._members.values():
            if member.joining is not None:
                self.leader = member.member_id
                return True
        return False

    def has_candidate(self, protocols: Iterable[str]) -> bool:
        """Return whether all members support one of `protocols`."""
        return any(self._known[name] == len(self._members) for name in protocols)

    def select_protocol(self) -> str:
        """Return the assignor with most votes. There must be a member."""
        votes: Counter[str] = Counter(
            next(name for name in member.protocols if self._known[name] == len(self._members))
            for member in self._members.values()
        )
        return votes.most_common(1)[0][0]
