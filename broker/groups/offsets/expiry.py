"""Deletes offsets that expired under offsets.retention.minutes, and groups that are left without any.

Kafka's rule: an offset committed with a retention of its own expires at its end. Other offsets age from the time when
the last member left, or from their commit in a group that never had one; not while a member reads their topic, or an
open transaction commits an offset in their partition. A group without members is deleted once all its offsets expired,
and no open transaction has any. A round begins every offsets.retention.check.interval.ms, and
lets the event loop continue between groups. Source: Kafka's OffsetMetadataManager.cleanupExpiredOffsets.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from barnabas.broker.groups.group import SINCE_COMMIT, GroupState, OffsetExpiry
from barnabas.protocol.errors import BrokerError
from barnabas.protocol.groups.values import NO_TIMESTAMP, OffsetCommitValue

if TYPE_CHECKING:
    from barnabas.broker.groups.offsets.service import GroupOffsets
    from barnabas.broker.groups.registry import GroupRegistry
    from barnabas.broker.live_config import LiveConfig

logger = logging.getLogger(__name__)

GROUPS_PER_TURN: Final = 100
"""Groups handled before the event loop gets its turn."""

_MS_PER_MINUTE: Final = 60_000


class OffsetExpiryTask:
    """Deletes expired offsets in rounds, until it is cancelled."""

    def __init__(
        self, offsets: GroupOffsets, registry: GroupRegistry, config: LiveConfig, wall_ms: Callable[[], int]
    ) -> None:
        self._offsets = offsets
        self._registry = registry
        self._config = config
        self._wall_ms = wall_ms

    async def run(self) -> None:
        """Run rounds for ever. A failed round is logged, and the next one tries again."""
        while True:
            await asyncio.sleep(self._config.broker.get_int("offsets.retention.check.interval.ms") / 1000)
            try:
                await self.expire()
            except Exception:
                logger.exception("looking for expired offsets failed, trying again at the next interval")

    async def expire(self) -> int:
        """Run one round, and return the number of expired offsets."""
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
        offsets = self._offsets
        try:
            summary = offsets.summary(group_id)
        except BrokerError:
            return 0  # its partition could not be loaded, and is not served
        if summary is None:
            return 0  # it was removed since the round began
        group = self._registry.get(group_id)
        expiry = SINCE_COMMIT if group is None else group.offset_expiry()
        committed, pending = offsets.committed.of(group_id), offsets.pending.of(group_id)
        if expiry is None:
            return 0
        now_ms = self._wall_ms()
        retention_ms = self._config.broker.get_int("offsets.retention.minutes") * _MS_PER_MINUTE
        gone = [
            (topic, number)
            for (topic, number), value in committed.items()
            if is_expired(value, expiry, now_ms=now_ms, retention_ms=retention_ms)
            and (topic, number) not in pending
            and not (group is not None and group.is_subscribed(topic))
        ]
        if len(gone) == len(committed) and not pending and summary.state is GroupState.EMPTY:
            offsets.remove_group(group_id).then(_log_failure)
        elif gone:
            offsets.delete(group_id, gone).then(_log_failure)
        return len(gone)


def is_expired(value: OffsetCommitValue, expiry: OffsetExpiry, *, now_ms: int, retention_ms: int) -> bool:
    """Return whether an offset expired: at its own end, or `retention_ms` after it began to age by `expiry`."""
    if value.expire_timestamp != NO_TIMESTAMP:
        return now_ms >= value.expire_timestamp
    since = value.commit_timestamp if expiry.empty_since_ms is None else expiry.empty_since_ms
    return now_ms - since >= retention_ms


def _log_failure(error: BrokerError | None) -> None:
    if error is not None:
        logger.warning("expired offsets stay until the next round: %s", error)
