"""Automatic commits of a consumer with a group: with the first read after each auto_commit_interval_ms.

Only a read commits, never a timer beside it: the timer would commit the record that is still being processed. A read
means that all records handed out before it have been processed, so a crash repeats records and loses none.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from barnabas.clients.config import ConsumerConfig
from barnabas.clients.consumer.commits import OffsetCommits
from barnabas.clients.consumer.record_queue import RecordQueue
from barnabas.clients.errors import ClientError, RefusedError
from barnabas.protocol.errors import ErrorCode

logger = logging.getLogger(__name__)


class AutoCommit:
    """Owned by one consumer. When the interval has passed, `due` is set and `attention` called."""

    def __init__(
        self, config: ConsumerConfig, queue: RecordQueue, commits: OffsetCommits, attention: Callable[[], None]
    ) -> None:
        self.enabled = config.group is not None and config.auto_commit
        self.due = False
        self._group = config.group
        self._interval_s = config.auto_commit_interval_ms / 1000
        self._queue = queue
        self._commits = commits
        self._attention = attention
        self._timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """Restart the interval, if there are partitions to commit for."""
        if self.enabled and self._queue.states:
            self.stop()
            self._timer = asyncio.get_running_loop().call_later(self._interval_s, self._passed)

    def stop(self) -> None:
        """Stop the interval until the next `begin`."""
        self.due = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def commit(self, *, rebalance_ms: int = 0) -> None:
        """Commit the positions in one attempt and log a failure: the next interval tries again.

        A rebalance is waited for up to `rebalance_ms`.
        """
        self.begin()
        try:
            await self._commits.send(self._queue.positions(), once=True, rebalance_ms=rebalance_ms)
        except ClientError as error:
            if isinstance(error, RefusedError) and error.code is ErrorCode.REBALANCE_IN_PROGRESS and not rebalance_ms:
                logger.debug("offsets are committed after the rebalance, group=%s", self._group)
            else:
                logger.warning("offsets not committed, group=%s: %s", self._group, error)

    def _passed(self) -> None:
        self._timer = None
        self.due = True
        self._attention()
