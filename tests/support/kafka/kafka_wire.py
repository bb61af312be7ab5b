"""A blocking client of Kafka's protocol for tests that inspect or corrupt single frames.

Encoding and decoding are kio's, and share no code with the broker. Kafka's own definitions must agree to all that is
read.

    with KafkaWire(daemon.host, daemon.port) as kafka:
        answer = kafka.call("api_versions", 3, client_software_name="test", client_software_version="1")
"""

from __future__ import annotations

import io
import struct
from datetime import timedelta
from importlib import import_module
from types import ModuleType
from typing import Any
from uuid import UUID

from kio.serial import entity_reader, entity_writer

from tests.support.frame_connection import FrameConnection
from tests.support.kafka.definitions import NEWEST, definition, message_name


def schema(api: str, version: int, kind: str) -> ModuleType:
    """Return kio's module of a message; `kind` is "request" or "response"."""
    return import_module(f"kio.schema.{api}.v{version}.{kind}")


def message_type(api: str, version: int, kind: str) -> Any:
    """Return the class of a whole message."""
    return getattr(schema(api, version, kind), message_name(api, kind))


def written(entity: Any) -> bytes:
    """Encode an entity."""
    buffer = io.BytesIO()
    kind: Any = type(entity)
    entity_writer(kind)(buffer, entity)
    return buffer.getvalue()


def read(kind: Any, data: bytes) -> Any:
    """Decode an entity that must use all of `data`, which must be what Kafka's own definition writes, too."""
    entity, size = entity_reader(kind)(data, 0)
    assert size == len(data), f"{len(data) - size} bytes are left over behind a {kind.__name__}"
    message = definition(NEWEST, kind.__name__, kind.__version__)
    assert message.encode(message.decode(data)) == data, f"{kind.__name__} is not as Kafka writes it"
    return entity


def request_frame(request: Any, correlation_id: int, client_id: str | None = "wire") -> bytes:
    """Return a whole request including its size."""
    header = request.__header_schema__(
        request_api_key=request.__api_key__,
        request_api_version=request.__version__,
        correlation_id=correlation_id,
        client_id=client_id,
    )
    return framed(written(header) + written(request))


def framed(data: bytes) -> bytes:
    """Prefix `data` with its size."""
    return struct.pack(">i", len(data)) + data


def answer_of(api: str, version: int, frame: bytes) -> tuple[int, Any]:
    """Return the correlation id and the entity of a response frame without its size field."""
    kind = message_type(api, version, "response")
    header, size = entity_reader(kind.__header_schema__)(frame, 0)
    return header.correlation_id, read(kind, frame[size:])


def metadata_request(version: int, *topics: str) -> Any:
    """Build a Metadata request for topics, which are created if missing."""
    kio = schema("metadata", version, "request")
    key = {"topic_id": None} if version >= 10 else {}
    fields = {
        name: False
        for name in ("include_cluster_authorized_operations", "include_topic_authorized_operations")
        if name in kio.MetadataRequest.__dataclass_fields__
    }
    entries = tuple(kio.MetadataRequestTopic(name=topic, **key) for topic in topics)
    return kio.MetadataRequest(topics=entries, **fields)


def produce_request(
    version: int,
    topic: str,
    batch: bytes | bytearray | None,
    topic_id: UUID | None = None,
    *,
    partition: int = 0,
    acks: int = 1,
) -> Any:
    """Build a Produce request with one batch for one partition."""
    kio = schema("produce", version, "request")
    key = {"topic_id": topic_id} if version >= 13 else {"name": topic}
    data = kio.PartitionProduceData(index=partition, records=None if batch is None else bytes(batch))
    topics = (kio.TopicProduceData(**key, partition_data=(data,)),)
    return kio.ProduceRequest(transactional_id=None, acks=acks, timeout=timedelta(seconds=30), topic_data=topics)


def fetch_request(
    version: int,
    topic: str,
    offset: int,
    topic_id: UUID | None = None,
    *,
    partition: int = 0,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 1 << 20,
    leader_epoch: int = -1,
    last_fetched_epoch: int = -1,
    session_epoch: int = -1,
    replica_id: int = -1,
) -> Any:
    """Build a Fetch request for one partition."""
    kio = schema("fetch", version, "request")
    key = {"topic_id": topic_id} if version >= 13 else {"topic": topic}
    epoch = {"current_leader_epoch": leader_epoch} if version >= 9 else {}
    if version >= 12:
        epoch["last_fetched_epoch"] = last_fetched_epoch
    entry = kio.FetchPartition(partition=partition, fetch_offset=offset, partition_max_bytes=max_bytes, **epoch)
    fields: dict[str, Any] = {"replica_id": replica_id} if version < 15 else {}
    if version >= 15 and replica_id >= 0:
        fields["replica_state"] = kio.ReplicaState(replica_id=replica_id)
    if version >= 7:
        fields |= {"forgotten_topics_data": (), "session_epoch": session_epoch}
    if version >= 11:
        fields["rack_id"] = ""
    return kio.FetchRequest(
        max_wait=timedelta(milliseconds=max_wait_ms),
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=0,
        topics=(kio.FetchTopic(**key, partitions=(entry,)),),
        **fields,
    )


class KafkaWire(FrameConnection):
    """One connection. `call` sends a request and reads its response; `send` and `receive` do one half each."""

    def send(self, request: Any) -> None:
        """Send an entity with the next correlation id, without waiting for the response."""
        self.correlation_id += 1
        self.socket.sendall(request_frame(request, self.correlation_id))

    def receive(self, api: str, version: int) -> Any:
        """Read the next response, whose correlation id must be the last request's."""
        correlation_id, answer = answer_of(api, version, self.receive_frame())
        assert correlation_id == self.correlation_id
        return answer

    def call(self, api: str, version: int, **fields: Any) -> Any:
        """Send a request with these fields, and return the response."""
        self.send(message_type(api, version, "request")(**fields))
        return self.receive(api, version)

    # --- calls that most tests need

    def topic_id(self, topic: str) -> UUID:
        """Return the id of a topic, which is created if missing."""
        request = metadata_request(12, topic)
        self.send(request)
        (found,) = self.receive("metadata", 12).topics
        assert found.error_code == 0, found
        topic_id: UUID = found.topic_id
        return topic_id

    def produce(
        self, version: int, topic: str, batch: bytes | bytearray | None, *, partition: int = 0, acks: int = 1
    ) -> Any:
        """Produce one batch; return the partition's response."""
        self.send(produce_request(version, topic, batch, self._id(version, topic), partition=partition, acks=acks))
        return self.receive("produce", version).responses[0].partition_responses[0]

    def fetch(self, version: int, topic: str, offset: int, **settings: int) -> Any:
        """Fetch one partition; return its response."""
        self.send(fetch_request(version, topic, offset, self._id(version, topic), **settings))
        return self.receive("fetch", version).responses[0].partitions[0]

    def list_offset(self, version: int, topic: str, timestamp: int, *, leader_epoch: int = -1) -> Any:
        """List one partition's offset; return its response."""
        kio = schema("list_offsets", version, "request")
        epoch = {"current_leader_epoch": leader_epoch} if version >= 4 else {}
        entry = kio.ListOffsetsPartition(partition_index=0, timestamp=timestamp, **epoch)
        fields: dict[str, Any] = {"isolation_level": 0} if version >= 2 else {}
        if version >= 10:
            fields["timeout"] = timedelta(seconds=1)
        topics = (kio.ListOffsetsTopic(name=topic, partitions=(entry,)),)
        answer = self.call("list_offsets", version, replica_id=-1, topics=topics, **fields)
        return answer.topics[0].partitions[0]

    def _id(self, version: int, topic: str) -> UUID | None:
        return self.topic_id(topic) if version >= 13 else None
