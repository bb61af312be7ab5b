"""The client's side of a fetch session (KIP-227): after the first Fetch only partitions that change are sent.

A state machine without I/O. Per broker: `next_query` gives the request, then either `accepted` or `lost` follows.
A broker that keeps no session for this client answers session id 0; then every request is full.
Source: Kafka's org.apache.kafka.clients.FetchSessionHandler.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.client.fetch import (
    NO_REPLICA,
    FetchAnswer,
    FetchQuery,
    ForgottenTopic,
    PartitionToFetch,
    TopicToFetch,
)
from barnabas.protocol.messages.data.fetch import NEW_SESSION
from barnabas.protocol.topic_partition import TopicPartition

_NO_ID: Final = 0
_MAX_EPOCH: Final = (1 << 31) - 1


class WantedPartition(NamedTuple):
    """What to fetch of a partition; `topic_id` is zeros for a topic without an id."""

    topic_id: bytes
    fetch: PartitionToFetch


class FetchSession:
    """One session. Requests are sent one after the other."""

    def __init__(self) -> None:
        self._id = _NO_ID
        self._epoch = NEW_SESSION
        self._sent: dict[TopicPartition, WantedPartition] = {}

    def next_query(
        self,
        wanted: Mapping[TopicPartition, WantedPartition],
        *,
        max_wait_ms: int,
        min_bytes: int,
        max_bytes: int,
        replica_id: int = NO_REPLICA,
    ) -> FetchQuery:
        """Return the request by which the broker fetches all `wanted` partitions, in their order."""
        forgotten: list[tuple[TopicPartition, bytes]] = []
        if self._epoch == NEW_SESSION:
            changed = list(wanted.items())
        else:
            changed = [each for each in wanted.items() if self._sent.get(each[0]) != each[1]]
            for key, sent in self._sent.items():
                now = wanted.get(key)
                if now is None or now.topic_id != sent.topic_id:
                    forgotten.append((key, sent.topic_id))
        self._sent = dict(wanted)
        return FetchQuery(
            max_wait_ms,
            min_bytes,
            max_bytes,
            _topics(changed),
            self._id,
            self._epoch,
            _forgotten(forgotten),
            replica_id=replica_id,
        )

    def accepted(self, answer: FetchAnswer) -> bool:
        """Take the answer in. Return False if it refuses the session; then the next request opens another one."""
        if answer.error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            self._id = _NO_ID
            self._epoch = NEW_SESSION
            return False
        if answer.error is not ErrorCode.NONE:
            self.lost()
            return False
        if answer.session_id == _NO_ID:
            self._id = _NO_ID
            self._epoch = NEW_SESSION
        elif self._epoch == NEW_SESSION:
            self._id = answer.session_id
            self._epoch = 1
        else:
            self._epoch = self._epoch % _MAX_EPOCH + 1
        return True

    def lost(self) -> None:
        """Note that a request had no valid answer: the next one closes the session and opens another one."""
        self._epoch = NEW_SESSION


def _topics(partitions: Iterable[tuple[TopicPartition, WantedPartition]]) -> list[TopicToFetch]:
    """Group neighbours of one topic, so that the order of the partitions stays."""
    topics: list[tuple[str, bytes, list[PartitionToFetch]]] = []
    for key, wanted in partitions:
        if not topics or topics[-1][:2] != (key.topic, wanted.topic_id):
            topics.append((key.topic, wanted.topic_id, []))
        topics[-1][2].append(wanted.fetch)
    return [TopicToFetch(*each) for each in topics]


def _forgotten(partitions: Iterable[tuple[TopicPartition, bytes]]) -> list[ForgottenTopic]:
    numbers: defaultdict[tuple[str, bytes], list[int]] = defaultdict(list)
    for key, topic_id in partitions:
        numbers[key.topic, topic_id].append(key.partition)
    return [ForgottenTopic(topic, topic_id, each) for (topic, topic_id), each in numbers.items()]
