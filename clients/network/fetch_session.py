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
from barnabas.protocol.messages.data.fetch import (
    NEW_SESSION,
    NO_REPLICA,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
)
from barnabas.protocol.topic_partition import TopicPartition

_NO_ID: Final = 0
_MAX_EPOCH: Final = (1 << 31) - 1


class WantedPartition(NamedTuple):
    """What to fetch of a partition: see FetchPartition. `topic_id` is zeros for a topic without an id."""

    topic_id: bytes
    offset: int
    max_bytes: int
    current_leader_epoch: int = -1
    last_fetched_epoch: int = -1


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
    ) -> FetchRequest:
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
        return FetchRequest(
            max_wait_ms=max_wait_ms,
            min_bytes=min_bytes,
            max_bytes=max_bytes,
            topics=_topics(changed),
            session_id=self._id,
            session_epoch=self._epoch,
            forgotten=_forgotten(forgotten),
            replica_id=replica_id,
        )

    def accepted(self, answer: FetchResponse) -> bool:
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


def _topics(partitions: Iterable[tuple[TopicPartition, WantedPartition]]) -> list[FetchTopic]:
    """Group neighbours of one topic, so that the order of the partitions stays."""
    topics: list[FetchTopic] = []
    fetched: list[FetchPartition] = []
    last: tuple[str, bytes] | None = None
    for key, wanted in partitions:
        if (key.topic, wanted.topic_id) != last:
            last = key.topic, wanted.topic_id
            fetched = []
            topics.append(FetchTopic(name=key.topic, topic_id=wanted.topic_id, partitions=fetched))
        fetched.append(
            FetchPartition(
                partition=key.partition,
                offset=wanted.offset,
                max_bytes=wanted.max_bytes,
                current_leader_epoch=wanted.current_leader_epoch,
                last_fetched_epoch=wanted.last_fetched_epoch,
            )
        )
    return topics


def _forgotten(partitions: Iterable[tuple[TopicPartition, bytes]]) -> list[ForgottenTopic]:
    numbers: defaultdict[tuple[str, bytes], list[int]] = defaultdict(list)
    for key, topic_id in partitions:
        numbers[key.topic, topic_id].append(key.partition)
    return [
        ForgottenTopic(name=topic, topic_id=topic_id, partitions=each) for (topic, topic_id), each in numbers.items()
    ]
