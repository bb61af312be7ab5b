"""Committed offsets of the source's groups, followed here while a group has no members in this cluster.

Every few seconds the offsets of the groups that match the definition are compared with those committed here, and
differences are committed, for partitions that are mirrored. An offset beyond the end of the copy is committed as that
end: a consumer that came here meanwhile would find nothing at the offset, and its reset policy could skip records. It
follows as the copy grows. Metadata and leader epoch are kept, except that a clamped offset has no epoch.

An offset or a group that is deleted at the source stays here. What a group that was active here has committed is
overwritten after its last member has left.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from barnabas.broker.mirrors.following.source_groups import GroupOffset
from barnabas.clients.errors import ClientError
from barnabas.protocol.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.mirrors.following.source_groups import Offsets
    from barnabas.protocol.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

INTERVAL_SECONDS: Final = 5.0

EndOf = Callable[["TopicPartition"], int | None]
"""Returns the end offset of a mirrored partition, None for one that the mirror does not copy."""


class FollowedGroup(NamedTuple):
    """A group that matches. `problem` is a clause, None while the group is followed."""

    partitions: int
    problem: str | None = None


class ClampedGroups(NamedTuple):
    """Numbers of offsets that were moved back, by group, and what was refused, by group."""

    moved: Mapping[str, int]
    problems: Mapping[str, str]


class Source(Protocol):
    """As SourceGroups."""

    async def matching(self) -> Mapping[int, list[str]]:
        """Return the groups to follow, by the node id of their coordinator."""
        ...

    async def offsets(self, node_id: int, group_ids: list[str]) -> Mapping[str, Offsets | ErrorCode]:
        """Return their offsets, or errors."""
        ...


class Local(Protocol):
    """As LocalGroups."""

    def ids(self) -> list[str]:
        """Return the groups that have committed offsets."""
        ...

    def is_active(self, group_id: str) -> bool:
        """Return whether the group has members."""
        ...

    def committed(self, group_id: str) -> Offsets:
        """Return a group's committed offsets."""
        ...

    async def commit(self, group_id: str, offsets: Offsets) -> Mapping[TopicPartition, ErrorCode]:
        """Commit offsets; return the errors of those that were refused."""
        ...


class GroupFollower:
    """Follows the groups of one mirror. Event loop only."""

    def __init__(self, source: Source, local: Local, end_of: EndOf) -> None:
        self._source = source
        self._local = local
        self._end_of = end_of
        self.groups: Mapping[str, FollowedGroup] = {}
        """The groups of the latest round."""
        self.error: str | None = None
        """Why the source's groups cannot be read, or None."""

    async def run(self) -> None:
        """Follow until cancelled."""
        while True:
            try:
                await self.follow()
                self.error = None
            except ClientError as error:
                if self.error != str(error):
                    logger.warning("offsets of the source's groups cannot be read: %s", error)
                self.error = str(error)
            except Exception as error:
                logger.exception("following the source's groups failed; it is tried again")
                self.error = f"internal error: {type(error).__name__}: {error}"
            await asyncio.sleep(INTERVAL_SECONDS)

    async def follow(self) -> None:
        """Compare all groups once, and commit what differs. Raises ClientError."""
        groups: dict[str, FollowedGroup] = {}
        for node_id, group_ids in (await self._source.matching()).items():
            for group_id, offsets in (await self._source.offsets(node_id, group_ids)).items():
                if isinstance(offsets, ErrorCode):
                    found = FollowedGroup(0, f"the source answers {offsets.name}")
                else:
                    found = await self._follow(group_id, offsets)
                known = self.groups.get(group_id)
                if found.problem is not None and (known is None or known.problem != found.problem):
                    logger.info("offsets of group %s are not followed: %s", group_id, found.problem)
                groups[group_id] = found
        self.groups = groups

    async def _follow(self, group_id: str, offsets: Offsets) -> FollowedGroup:
        wanted = clamped(offsets, self._end_of)
        try:
            if self._local.is_active(group_id):
                return FollowedGroup(len(wanted), "it has members in this cluster")
            committed = self._local.committed(group_id)
            changed = {key: each for key, each in wanted.items() if committed.get(key) != each}
            refused = await self._local.commit(group_id, changed) if changed else {}
        except BrokerError as error:
            return FollowedGroup(len(wanted), f"{error.code.name}: {error}")
        if refused:
            key, code = next(iter(refused.items()))
            return FollowedGroup(len(wanted), f"{len(refused)} offsets were refused, {key} with {code.name}")
        return FollowedGroup(len(wanted))


def clamped(offsets: Offsets, end_of: EndOf) -> dict[TopicPartition, GroupOffset]:
    """Return the offsets of mirrored partitions, none beyond the end of its copy."""
    found = {}
    for key, each in offsets.items():
        end = end_of(key)
        if end is not None:
            found[key] = each if each.offset <= end else GroupOffset(end, metadata=each.metadata)
    return found


async def clamp_groups(local: Local, topics: Collection[str], end_of: EndOf) -> ClampedGroups:
    """Move committed offsets of `topics` that are beyond the end of their partition back to it, in all groups.

    Part of a promotion, after the copies have got their final ends.
    """
    moved: dict[str, int] = {}
    problems: dict[str, str] = {}
    for group_id in local.ids():
        committed = {key: each for key, each in local.committed(group_id).items() if key.topic in topics}
        changed = {key: each for key, each in clamped(committed, end_of).items() if each != committed[key]}
        if not changed:
            continue
        try:
            refused = await local.commit(group_id, changed)
        except BrokerError as error:
            problems[group_id] = f"{error.code.name}: {error}"
            continue
        moved[group_id] = len(changed) - len(refused)
        if refused:
            problems[group_id] = f"{len(refused)} offsets were refused"
    return ClampedGroups(moved, problems)
