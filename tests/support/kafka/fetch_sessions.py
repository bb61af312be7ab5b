"""A client of fetch sessions on a raw connection: requests as given, results as plain tuples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

from barnabas.protocol.errors import ErrorCode
from tests.support.kafka.kafka_wire import KafkaWire, schema

Place = tuple[str, int]
"""Topic name and partition number."""

Result = tuple[str, int, int, int, int, int]
"""Topic, partition, error, high watermark, log start offset, bytes of records."""


@dataclass(frozen=True)
class SessionAnswer:
    """A fetch response."""

    error: int
    session_id: int
    results: list[Result]

    @property
    def places(self) -> list[Place]:
        """The partitions in the response, in its order."""
        return [(topic, partition) for topic, partition, *_ in self.results]


@dataclass
class SessionFetcher:
    """Keeps session id and epoch as a client does; both can be overridden."""

    wire: KafkaWire
    version: int = 17
    ids: dict[str, UUID] = field(default_factory=dict)
    """Topic ids, filled when a topic is first fetched; set one to fetch an id that the broker does not know."""
    session_id: int = 0
    epoch: int = 0

    def send(self, positions: Mapping[Place, int], forget: Iterable[Place] = (), **settings: Any) -> None:
        """Send a fetch of these offsets. `settings`: max_wait_ms, min_bytes, max_bytes, partition_bytes, isolation,
        replica_id, session_id, epoch, leader_epoch, last_epoch."""
        kio = schema("fetch", self.version, "request")
        request: dict[str, Any] = {
            "max_wait": timedelta(milliseconds=settings.get("max_wait_ms", 0)),
            "min_bytes": settings.get("min_bytes", 1),
            "max_bytes": settings.get("max_bytes", 50 << 20),
            "isolation_level": settings.get("isolation", 0),
            "session_id": settings.get("session_id", self.session_id),
            "session_epoch": settings.get("epoch", self.epoch),
        }
        replica_id = settings.get("replica_id", -1)
        if self.version < 15:
            request["replica_id"] = replica_id
        elif replica_id >= 0:
            request["replica_state"] = kio.ReplicaState(replica_id=replica_id)
        if self.version >= 11:
            request["rack_id"] = ""
        epoch = {"current_leader_epoch": settings.get("leader_epoch", -1)} if self.version >= 9 else {}
        if self.version >= 12:
            epoch["last_fetched_epoch"] = settings.get("last_epoch", -1)
        entries: list[tuple[str, list[Any]]] = []
        for (topic, number), offset in positions.items():
            if not entries or entries[-1][0] != topic:
                entries.append((topic, []))
            limit = settings.get("partition_bytes", 1 << 20)
            entry = kio.FetchPartition(partition=number, fetch_offset=offset, partition_max_bytes=limit, **epoch)
            entries[-1][1].append(entry)
        request["topics"] = tuple(kio.FetchTopic(**self._key(name), partitions=tuple(each)) for name, each in entries)
        request["forgotten_topics_data"] = tuple(
            kio.ForgottenTopic(**self._key(topic), partitions=(number,)) for topic, number in forget
        )
        self.wire.send(kio.FetchRequest(**request))

    def receive(self) -> SessionAnswer:
        """Read the response, and continue its session."""
        answer = self.wire.receive("fetch", self.version)
        names = {topic_id: name for name, topic_id in self.ids.items()}
        results = [
            (
                names[topic.topic_id] if self.version >= 13 else topic.topic,
                each.partition_index,
                int(each.error_code),
                each.high_watermark,
                each.log_start_offset,
                len(each.records or b""),
            )
            for topic in answer.responses
            for each in topic.partitions
        ]
        if answer.error_code == ErrorCode.NONE:
            self.session_id = answer.session_id
            self.epoch = self.epoch + 1 if answer.session_id else 0
        return SessionAnswer(int(answer.error_code), answer.session_id, results)

    def fetch(self, positions: Mapping[Place, int], forget: Iterable[Place] = (), **settings: Any) -> SessionAnswer:
        """Send a fetch and read its response."""
        self.send(positions, forget, **settings)
        return self.receive()

    def open(self, positions: Mapping[Place, int], **settings: Any) -> SessionAnswer:
        """Send a full request, which opens a session, and closes an open one."""
        self.epoch = 0
        return self.fetch(positions, **settings)

    def _key(self, topic: str) -> dict[str, Any]:
        if self.version < 13:
            return {"topic": topic}
        if topic not in self.ids:
            # On another connection: responses of this one may be due.
            with KafkaWire(*self.wire.socket.getpeername()[:2]) as other:
                self.ids[topic] = other.topic_id(topic)
        return {"topic_id": self.ids[topic]}
