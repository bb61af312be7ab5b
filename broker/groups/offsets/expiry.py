"""Takes back offsets that offsets.retention.minutes has expired, and groups that then have nothing left.

Kafka's rule: an offset that was committed with a retention of its own expires then. The others age from when the last
member left, or in a group that never had one from their commit; not while a member reads their topic. A group all of
whose offsets expired and that has no members is removed. Every offsets.retention.check.interval.ms; a round lets the
event loop go on between groups. Source: Kafka's OffsetMetadataManager.cleanupExpiredOffsets.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from barnabas.broker.groups.members import EMPTY, SINCE_COMMIT, OffsetExpiry
from barnabas.protocol.errors import BrokerError
from barnabas.protocol.groups.offsets import NO_TIMESTAMP, OffsetCommitValue

if TYPE_CHECKING:
    from barnabas.broker.groups.offsets.service import GroupOffsets
    from barnabas.broker.live_config import LiveConfig

logger = logging.getLogger(__name__)

GROUPS_PER_TURN: Final = 100
"""Groups that are looked at before the event loop has its turn."""

_MS_PER_MINUTE: Final = 60_000


class OffsetExpiryTask:
    """Looks for expired offsets, again and again, until it is cancelled."""

    def __init__(self, offsets: GroupOffsets, config: LiveConfig, wall_ms: Callable[[], int]) -> None:
        self._offsets = offsets
        self._config = config
        self._wall_ms = wall_ms

    async def run(self) -> None:
        """For ever. What goes wrong in a round is logged, and the next one tries again."""
        while True:
            await asyncio.sleep(self._config.broker.get_int("offsets.retention.check.interval.ms") / 1000)
            try:
                await self.expire()
            except Exception:
                logger.exception("looking for expired offsets failed, trying again at the next interval")

    async def expire(self) -> int:
        """One round; how many offsets expired."""
        expired = 0
        try:
            group_ids = list(self._offsets.summaries())
        except BrokerError as error:
            logger.info("not looking for expired offsets yet: %s", error)
            return 0
        for index, group_id in enumerate(group_ids):
            if index % GROUPS_PER_TURN == GROUPS_PER_TURN - 1:
                await asyncio.sleep(0)
            expired += self._expire_group(group_id)
        if expired:
            logger.info("offsets expired, count=%d groups=%d", expired, len(group_ids))
        return expired

    def _expire_group(self, group_id: str) -> int:
        offsets, members = self._offsets, self._offsets.members
        try:
            summary = offsets.summary(group_id)
        except BrokerError:
            return 0  # its partition was loaded in part only, and is not served
        if summary is None:
            return 0  # it was removed since the round began
        with_members = members.summary(group_id) is not None
        expiry = members.offset_expiry(group_id) if with_members else SINCE_COMMIT
        committed = offsets.committed.of(group_id)
        if expiry is None:
            return 0
        now_ms = self._wall_ms()
        retention_ms = self._config.broker.get_int("offsets.retention.minutes") * _MS_PER_MINUTE
        gone = [
            (topic, number)
            for (topic, number), value in committed.items()
            if is_expired(value, expiry, now_ms=now_ms, retention_ms=retention_ms)
            and not (with_members and members.is_subscribed(group_id, topic))
        ]
        if len(gone) == len(committed) and summary.state == EMPTY:
            offsets.remove_group(group_id).then(_say)
        elif gone:
            offsets.delete(group_id, gone).then(_say)
        return len(gone)


def is_expired(value: OffsetCommitValue, expiry: OffsetExpiry, *, now_ms: int, retention_ms: int) -> bool:
    """Whether an offset has reached its end: its own, or `retention_ms` after what `expiry` says."""
    if value.expire_timestamp != NO_TIMESTAMP:
        return now_ms >= value.expire_timestamp
    since = value.commit_timestamp if expiry.empty_since_ms is None else expiry.empty_since_ms
    return now_ms - since >= retention_ms


def _say(error: BrokerError | None) -> None:
    if error is not None:
        logger.warning("expired offsets stay until the next round: %s", error)
