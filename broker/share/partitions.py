"""SharePartitions: the share partitions that members fetch from, and the members' sessions.

A share partition is loaded at its first fetch, and let go when the last session of its group is closed. Source: Kafka's
SharePartitionManager.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from barnabas.broker.groups.share.settings import ShareGroupSettings
from barnabas.broker.repeated_warnings import RepeatedWarnings
from barnabas.broker.share.partition.served import ServedSharePartition
from barnabas.broker.share.sessions import ShareSession, ShareSessions
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.share.state_records import SharePartitionKey

if TYPE_CHECKING:
    from barnabas.broker.coordinator_log.parts import LogParts
    from barnabas.broker.probes import ShareProbe
    from barnabas.broker.share.coordinator import ShareCoordinator
    from barnabas.broker.share.fetch_wait import ShareFetchWait


class SharePartitions:
    """Owns them. Event loop only."""

    def __init__(self, parts: LogParts, coordinator: ShareCoordinator, probe: ShareProbe) -> None:
        self._probe = probe
        self.sessions = ShareSessions(lambda: self._settings.max_sessions, self._session_closed)
        self.waits: set[ShareFetchWait[Any]] = set()
        """Fetches that wait for records."""
        self.is_stopping = False
        self._parts = parts
        self._coordinator = coordinator
        self._settings = ShareGroupSettings.of(parts.config.broker)
        self._served: dict[SharePartitionKey, ServedSharePartition] = {}
        self._warnings = RepeatedWarnings(parts.loop)
        coordinator.on_loss = self._states_lost
        coordinator.on_deleted_topics = self._let_go_of_deleted_topics

    def __iter__(self) -> Iterator[ServedSharePartition]:
        return iter([each for each in self._served.values() if not each.is_over])

    def settings_of(self, group_id: str) -> ShareGroupSettings:
        """Return the settings of a group."""
        overrides = self._parts.store.image.group_configs(group_id)
        return self._settings.with_overrides(overrides) if overrides else self._settings

    def find(self, group_id: str, topic_id: bytes, partition: int) -> ServedSharePartition | None:
        """Return a share partition that is served."""
        found = self._served.get(SharePartitionKey(group_id, topic_id, partition))
        return None if found is None or found.is_over else found

    def get(self, group_id: str, topic: str, topic_id: bytes, number: int) -> ServedSharePartition:
        """Return a share partition, which may have to be loaded. Raises BrokerError."""
        key = SharePartitionKey(group_id, topic_id, number)
        partition = self._parts.partitions.get(topic, number)
        if partition is None:
            raise self._parts.partitions.refusal(topic, number)
        if partition.topic_id != topic_id:
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "the topic was created again")
        served = self._served.get(key)
        if served is not None and served.error is not None:
            # Told once before another attempt: a fetch that waits would otherwise begin the next one, and so on.
            del self._served[key]
            raise served.error
        if served is not None and (served.is_over or served.partition is not partition):
            served.end()
            served = None
        if served is None:
            served = ServedSharePartition(
                key,
                partition,
                self._coordinator,
                lambda: self.settings_of(group_id),
                self._parts.loop,
                self._parts.wall_ms,
                self._probe,
                self._warnings,
                self._partition_ended,
            )
            if not served.is_over:
                self._served[key] = served
        if served.error is not None:
            raise served.error
        return served

    def stop(self) -> None:
        """Answer every waiting fetch with the records available; none waits any more."""
        self.is_stopping = True
        for wait in list(self.waits):
            wait.finish()

    def _partition_ended(self, served: ServedSharePartition) -> None:
        if self._served.get(served.key) is served and served.error is None:
            del self._served[served.key]

    def _states_lost(self) -> None:
        """Let go of all share partitions: what members have acquired is in no state."""
        for served in list(self._served.values()):
            served.end()
        self._served.clear()

    def _let_go_of_deleted_topics(self) -> None:
        """Forget share partitions that no member can name any more, and the ends of their locks."""
        image = self._parts.store.image
        for key, served in list(self._served.items()):
            if image.topic_by_id(key.topic_id) is None:
                served.end()
                self._served.pop(key, None)

    def _session_closed(self, session: ShareSession) -> None:
        for topic_id, number in session.partitions:
            served = self.find(session.group_id, topic_id, number)
            if served is not None:
                served.release_member(session.member_id)
        if not self.sessions.has_group(session.group_id):
            for key, served in list(self._served.items()):
                if key.group_id == session.group_id:
                    served.end()
                    self._served.pop(key, None)
