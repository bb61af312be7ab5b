"""TokenSweep: deletes expired delegation tokens every delegation.token.expiry.check.interval.ms."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.broker.metadata.security.tokens import MAX_EXPIRED_AT_ONCE, plan_remove_expired_tokens
from barnabas.broker.printable import printable
from barnabas.protocol.errors import BrokerError

if TYPE_CHECKING:
    from barnabas.broker.metadata_changes import MetadataChanges

logger = logging.getLogger(__name__)


class TokenSweep:
    """Runs until its task is cancelled."""

    def __init__(self, changes: MetadataChanges, wall_ms: Callable[[], int], interval_ms: int) -> None:
        self._changes = changes
        self._wall_ms = wall_ms
        self._interval_seconds = interval_ms / 1000

    async def run(self) -> None:
        """Sweep, and wait."""
        while True:
            await self.sweep()
            await asyncio.sleep(self._interval_seconds)

    async def sweep(self) -> None:
        """Delete all tokens that have expired by now."""
        try:
            while len(await self._sweep_some()) == MAX_EXPIRED_AT_ONCE:
                pass
        except BrokerError as error:
            logger.warning("expired delegation tokens could not be deleted, until the next attempt: %s", error)
        except Exception:
            logger.exception("a bug: expired delegation tokens could not be deleted, until the next attempt")

    async def _sweep_some(self) -> list[object]:
        now_ms = self._wall_ms()
        expired = await self._changes.change(lambda image: plan_remove_expired_tokens(image, now_ms=now_ms))
        for token in expired:
            logger.info("delegation token expired, token_id=%s owner=%s", token.token_id, printable(token.owner))
        return list(expired)
