"""Who is in a classic group: members, static members by instance id, those that were only given an id, the leader.

The assignor of a generation is voted for: only one that every member knows is a candidate, each member votes for the
candidate that it prefers, and most votes win; between equals the one that was voted for first. A group that somebody
joined always has a candidate, since nobody is let in who would leave none. Source: Kafka's ClassicGroup.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from barnabas.broker.groups.classic.member import ClassicGroupMember


class GroupRoster:
    """The members, in the order in which they came."""

    __slots__ = ("_known", "_members", "_static", "leader", "pending_join", "pending_sync")

    def __init__(self) -> None:
        self._members: dict[str, ClassicGroupMember] = {}
        self._static: dict[str, str] = {}
        self._known: Counter[str] = Counter()
        """How many members know each assignor."""
        self.leader: str | None = None
        self.pending_join: set[str] = set()
        """Ids that were given out, whose owners have not joined with them yet."""
        self.pending_sync: set[str] = set()
        """Members of the generation that have not synced yet."""

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[ClassicGroupMember]:
        return iter(list(self._members.values()))

    def __contains__(self, member_id: str) -> bool:
        return member_id in self._members

    def get(self, member_id: str) -> ClassicGroupMember | None:
        """None: no such member."""
        return self._members.get(member_id)

    def static_id(self, group_instance_id: str) -> str | None:
        """The member id of a static member."""
        return self._static.get(group_instance_id)

    @property
    def joining(self) -> int:
        """How many wait for the answer to their join."""
        return sum(member.joining is not None for member in self._members.values())

    @property
    def all_joined(self) -> bool:
        """Whether nobody is missing for the next generation."""
        return not self.pending_join and all(member.joining is not None for member in self._members.values())

    @property
    def rebalance_timeout_ms(self) -> int:
        """The largest of the members'."""
        return max((member.rebalance_timeout_ms for member in self._members.values()), default=0)

    def add(self, member: ClassicGroupMember) -> None:
        """The first one leads."""
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
        """Whether it is a member or only was to become one; the leadership goes to the one that came first."""
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
        """A static member came back under another id; it keeps its place, and the leadership."""
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
        """The member knows other assignors, or says other things about itself."""
        self._known.subtract(member.protocols.keys())
        member.protocols = protocols
        self._known.update(protocols.keys())

    def elect_joined_leader(self) -> bool:
        """Make sure that the leader is one that joined; false: nobody did."""
        leader = None if self.leader is None else self._members[self.leader]
        if leader is not None and leader.joining is not None:
            return True
        for member in self._members.values():
            if member.joining is not None:
                self.leader = member.member_id
                return True
        return False

    def has_candidate(self, protocols: Iterable[str]) -> bool:
        """Whether all members know one of `protocols`."""
        return any(self._known[name] == len(self._members) for name in protocols)

    def select_protocol(self) -> str:
        """The assignor that most members prefer. At least one member is there."""
        votes: Counter[str] = Counter(
            next(name for name in member.protocols if self._known[name] == len(self._members))
            for member in self._members.values()
        )
        return votes.most_common(1)[0][0]
