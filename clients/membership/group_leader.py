"""The leader's part of a membership: assigning partitions, and noticing added ones."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from barnabas.clients.config import ConsumerConfig
from barnabas.clients.errors import ClientError
from barnabas.clients.membership.assignors import ASSIGNORS
from barnabas.clients.membership.subscriber import subscriber
from barnabas.clients.network.cluster import Cluster
from barnabas.clients.network.retrying import with_retries
from barnabas.protocol.errors import DecodeError, ErrorCode
from barnabas.protocol.groups.consumer_protocol import encode_assigned
from barnabas.protocol.messages.groups.join_group import JoinGroupResponse

logger = logging.getLogger(__name__)


class GroupLeader:
    """Owned by one membership, which may lead one generation and not the next."""

    def __init__(self, cluster: Cluster, config: ConsumerConfig, group: str) -> None:
        self._cluster = cluster
        self._config = config
        self._group = group
        self._counts: dict[str, int] | None = (
            None  # partition counts of the last assignment; None: another member leads
        )

    async def assign(self, joined: JoinGroupResponse) -> Mapping[str, bytes]:
        """Return every member's encoded assignment; {} if another member leads.

        Requests the metadata of all subscribed topics. Raises ClientError.
        """
        self._counts = None
        if joined.leader != joined.member_id or joined.skip_assignment:
            return {}
        try:
            members = [subscriber(each) for each in joined.members]
        except DecodeError as error:
            raise ClientError(f"group {self._group!r}: a member's subscription cannot be decoded: {error}") from error
        assignor = ASSIGNORS.get(joined.protocol or "")
        if assignor is None:
            raise ClientError(
                f"group {self._group!r}: it agreed on {joined.protocol!r}, which this member did not offer"
            )
        topics = sorted({topic for member in members for topic in member.topics})
        await with_retries(self._config, "metadata of the group's topics", lambda: self._cluster.load(topics))
        counts = {topic: self._partition_count(topic) or 0 for topic in topics}
        missing = [topic for topic, count in counts.items() if not count]
        if missing:
            logger.warning("subscribed topics do not exist, group=%s topics=%s", self._group, missing)
        self._counts = counts
        assigned = assignor(members, counts)
        return {member_id: encode_assigned(partitions) for member_id, partitions in assigned.items()}

    def partitions_changed(self) -> bool:
        """Whether the topics' partition counts, by the last metadata, differ from those that were assigned."""
        if self._counts is None:
            return False
        now = {topic: self._partition_count(topic) for topic in self._counts}
        return any(count is not None and count != self._counts[topic] for topic, count in now.items())

    def _partition_count(self, topic: str) -> int | None:
        """0 for a topic that does not exist, None if that is not known."""
        view = self._cluster.topic(topic)
        if view is not None:
            return len(view.leaders)
        return 0 if self._cluster.topic_error(topic) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION else None
