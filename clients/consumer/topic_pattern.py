"""The topics whose names match a pattern, kept up to date while topics are created and deleted.

The whole name has to match, as in Kafka's consumer. Internal topics (`__consumer_offsets`) are left out unless
exclude_internal_topics is off. The metadata of all topics is requested every metadata_max_age_ms, and immediately when
a partition turns out to be gone. The client's own metadata is not changed by that: it keeps only topics in use.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable

from barnabas.clients.config import ConsumerConfig
from barnabas.clients.errors import ClientError, ClosedError
from barnabas.clients.network.cluster import Cluster
from barnabas.clients.network.retrying import ask_any
from barnabas.config.regex import compiled
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.topics.metadata import MetadataRequest, MetadataResponse
from barnabas.protocol.topic_name import is_internal

logger = logging.getLogger(__name__)


class TopicPattern:
    """Owned by one subscribed consumer. `load` it first; `begin` starts the refresh task, `end` ends it.

    A text is in RE2's syntax and matched by RE2; a pattern that the program has compiled is matched by Python's `re`.

    When the matching topics change, `changed` is set and `attention` called.
    """

    def __init__(
        self, cluster: Cluster, config: ConsumerConfig, pattern: str | re.Pattern[str], attention: Callable[[], None]
    ) -> None:
        """Raises RegexError, a ValueError."""
        self.topics: tuple[str, ...] = ()
        """The matching topics of the last refresh, sorted."""
        self.changed = False
        self._cluster = cluster
        self._config = config
        self._pattern = pattern if isinstance(pattern, str) else pattern.pattern
        self._matches = compiled(pattern).fullmatch if isinstance(pattern, str) else pattern.fullmatch
        self._attention = attention
        self._soon = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def load(self) -> tuple[str, ...]:
        """Request all topics and return those that match. Raises ClientError after api_timeout_ms."""
        response: MetadataResponse = await ask_any(self._cluster, self._config, MetadataRequest.of_names(None))
        self.topics = tuple(
            sorted(
                topic.topic_name
                for topic in response.topics
                if topic.error is ErrorCode.NONE
                and not (is_internal(topic.topic_name) and self._config.exclude_internal_topics)
                and self._matches(topic.topic_name)
            )
        )
        return self.topics

    def begin(self) -> None:
        """Start the refresh task."""
        self._task = asyncio.create_task(self._run(), name="barnabas-topic-pattern")

    def look_soon(self) -> None:
        """Refresh immediately, or after the refresh that is running."""
        self._soon.set()

    async def end(self) -> None:
        """End the refresh task."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            try:
                async with asyncio.timeout(self._config.metadata_max_age_ms / 1000):
                    await self._soon.wait()
            except TimeoutError:
                pass
            self._soon.clear()
            before = self.topics
            try:
                await self.load()
            except ClosedError:
                return
            except ClientError as error:
                logger.warning("topics not refreshed, trying again later, pattern=%s: %s", self._pattern, error)
                continue
            if self.topics != before:
                logger.info("matching topics changed, pattern=%s topics=%s", self._pattern, self.topics)
                self.changed = True
                self._attention()
