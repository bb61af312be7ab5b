"""Membership in a share group: a task that joins, sends heartbeats, and learns the member's partitions.

    joining (epoch 0) -> member (heartbeats) -> fenced or unknown: joining again, without partitions

The member id is chosen by the member and stays. A share session at a broker does not depend on the membership, so
records that were fetched before can be acknowledged while the member joins again.
Source: Kafka's ShareMembershipManager, ShareHeartbeatRequestManager.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from barnabas.clients.config import ShareConsumerConfig
from barnabas.clients.errors import BrokerConnectionError, ClientError, ClosedError, RefusedError, reason_of
from barnabas.clients.membership.coordinator_retries import CoordinatorRetries
from barnabas.clients.network.cluster import Cluster
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.groups.find_coordinator import GROUP_KEY
from barnabas.protocol.messages.groups.share_group_heartbeat import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    ShareGroupHeartbeatRequest,
    ShareGroupHeartbeatResponse,
)

logger = logging.getLogger(__name__)

LEAVE_TIMEOUT_MS: Final = 5_000
"""Short, because leaving is a courtesy: the session would end by itself."""

_REJOIN: Final = frozenset({ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH})
_MOVED: Final = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})


class ShareMembership:
    """Owned by one share consumer. `changed` is called when one of the attributes has changed."""

    def __init__(
        self, cluster: Cluster, config: ShareConsumerConfig, member_id: str, changed: Callable[[], None]
    ) -> None:
        self.assignment: Mapping[bytes, Sequence[int]] = {}
        """The assigned partitions, by topic id."""
        self.trouble: ClientError | None = None
        """The coordinator has been unreachable for api_timeout_ms; retries go on."""
        self.failure: ClientError | None = None
        """The error that ended the membership for good."""
        self.member_id = member_id
        self._cluster = cluster
        self._config = config
        self._changed = changed
        self._topics: tuple[str, ...] = ()
        self._sends_topics = True
        self._epoch = JOIN_EPOCH
        self._retries = CoordinatorRetries(config, config.group, self._report_trouble)
        self._soon = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def subscribe(self, topics: Sequence[str]) -> None:
        """Join with these topics, or replace those of the member."""
        self._topics = tuple(topics)
        self._sends_topics = True
        self._soon.set()
        if self._task is None or self._task.done():
            self.failure = None
            self._task = asyncio.create_task(self._run(), name=f"barnabas-share-group-{self._config.group}")

    async def leave(self) -> None:
        """End the task and leave the group. Raises no ClientError."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        if self._epoch == JOIN_EPOCH:
            return
        request = ShareGroupHeartbeatRequest(
            group_id=self._config.group, member_id=self.member_id, member_epoch=LEAVE_EPOCH
        )
        self._epoch = JOIN_EPOCH
        try:
            async with asyncio.timeout(LEAVE_TIMEOUT_MS / 1000):
                await self._ask(request)
        except (ClientError, TimeoutError) as error:
            logger.info("leave request failed, the session will expire, group=%s: %s", self._config.group, error)

    async def _run(self) -> None:
        try:
            while True:
                self._soon.clear()
                try:
                    async with asyncio.timeout(await self._beat()):
                        await self._soon.wait()
                except TimeoutError:
                    pass
        except ClientError as error:
            self.failure = error
        except Exception as error:
            logger.exception("the membership ended by an internal error, group=%s", self._config.group)
            self.failure = ClientError(f"group {self._config.group!r}: an internal error: {error!r}")
        self._epoch = JOIN_EPOCH
        self._assign({})

    async def _beat(self) -> float:
        """Send one heartbeat; return the seconds until the next one. Raises ClientError for a final error."""
        names = self._topics if self._sends_topics or self._epoch == JOIN_EPOCH else None
        request = ShareGroupHeartbeatRequest(
            group_id=self._config.group, member_id=self.member_id, member_epoch=self._epoch, topic_names=names
        )
        self._sends_topics = False
        try:
            answer = await self._ask(request)
        except ClientError as error:
            self._sends_topics = True
            self._cluster.forget_coordinators()
            await self._retries.pause(error)
            return 0
        if answer.error is ErrorCode.NONE:
            self._retries.reached()
            if self._epoch == JOIN_EPOCH:
                logger.info("joined the share group, group=%s member_id=%s", self._config.group, self.member_id)
            self._epoch = answer.member_epoch
            if answer.assignment is not None:
                self._assign({each.topic_id: each.partitions for each in answer.assignment.topics})
            return answer.heartbeat_interval_ms / 1000
        self._sends_topics = True
        is_gone = answer.error is ErrorCode.GROUP_ID_NOT_FOUND and self._epoch != JOIN_EPOCH
        if answer.error in _REJOIN or is_gone:
            logger.warning(
                "no longer a member of the share group, joining again, group=%s error=%s",
                self._config.group,
                answer.error.name,
            )
            self._epoch = JOIN_EPOCH
            self._assign({})
            return self._config.retry_backoff_ms / 1000
        if answer.error in _MOVED:
            self._cluster.forget_coordinators()
        await self._retries.pause(
            RefusedError(
                answer.error, f"share group {self._config.group!r}: {answer.message or reason_of(answer.error)}"
            )
        )
        return 0

    async def _ask(self, request: ShareGroupHeartbeatRequest) -> ShareGroupHeartbeatResponse:
        coordinator = await self._cluster.coordinator(GROUP_KEY, self._config.group)
        try:
            return await coordinator.request(request)
        except ClosedError as error:  # by new metadata, in which the broker has another address or none
            raise BrokerConnectionError(f"the connection to the coordinator was closed: {error}") from error

    def _assign(self, assignment: Mapping[bytes, Sequence[int]]) -> None:
        self.assignment = assignment
        self._changed()

    def _report_trouble(self, error: ClientError) -> None:
        self.trouble = error
        self._changed()
