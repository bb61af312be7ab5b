"""Metadata (key 3): brokers, topics and the leaders of their partitions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Final, Self

from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.authorized_operations import NOT_ASKED
from barnabas.protocol.messages.nodes import BrokerAddress
from barnabas.protocol.uuids import ZERO_UUID
from barnabas.protocol.wire.fields import since
from barnabas.protocol.wire.structures import Request, Struct
from barnabas.protocol.wire.types import SHARED, Bool, Error, Int32, Nullable, NullableString, String, Uuid

_TOPIC_IDS_FROM: Final = 12

Nodes = Annotated[tuple[Int32, ...], SHARED]


class PartitionMetadata(Struct):
    """`leader` is a node id, -1 without a leader; `offline` are the node ids of offline replicas."""

    error: Error = ErrorCode.NONE
    partition: Int32
    leader: Int32
    leader_epoch: Int32 = since(7, default=-1)
    replicas: Nodes = ()
    isr: Nodes = ()
    offline: Nodes = since(5, default=())


class TopicMetadata(Struct):
    """`topic_id` is 16 bytes, zeros for an unknown topic; `name` is None for an unknown id."""

    error: Error = ErrorCode.NONE
    name: Annotated[String | None, Nullable(12)]
    topic_id: Uuid = since(10, default=ZERO_UUID)
    is_internal: Bool = since(1, default=False)
    partitions: Sequence[PartitionMetadata] = ()
    authorized_operations: Int32 = since(8, default=NOT_ASKED)

    @property
    def topic_name(self) -> str:
        """The name, empty for an unknown id."""
        return self.name or ""


class MetadataResponse(Struct, flexible=9):
    """`cluster_id` is the text of an id, `controller_id` one of the brokers'. `error` is that of the whole request."""

    throttle_ms: Int32 = since(3, default=0)
    brokers: Sequence[BrokerAddress] = ()
    cluster_id: NullableString = since(2, default=None)
    controller_id: Int32 = since(1, default=-1)
    topics: Sequence[TopicMetadata] = ()
    authorized_operations: Int32 = since(8, until=10, default=NOT_ASKED)
    error: Error = since(13, default=ErrorCode.NONE)


class MetadataRequestTopic(Struct):
    """A topic by its name, or by its id."""

    topic_id: Uuid = since(10, default=ZERO_UUID)
    name: Annotated[String | None, Nullable(10)]


class MetadataRequest(Request[MetadataResponse], api=ApiKey.METADATA, flexible=9):
    """`topics` None: all, as an empty list in version 0. `allow_auto_creation`: create missing ones if the broker may.

    The `include` fields request authorized operations.
    """

    topics: Annotated[Sequence[MetadataRequestTopic] | None, Nullable(1)]
    allow_auto_creation: Bool = since(4, default=True)
    include_cluster_operations: Bool = since(8, until=10, default=False)
    include_topic_operations: Bool = since(8, default=False)

    @classmethod
    def of_names(cls, names: Iterable[str] | None, *, allow_auto_creation: bool = False) -> Self:
        """Return a request for topics by name, None for all."""
        topics = None if names is None else [MetadataRequestTopic(name=name) for name in names]
        return cls(topics=topics, allow_auto_creation=allow_auto_creation)

    @property
    def names(self) -> list[str] | None:
        """The names of topics, None for all."""
        topics = self.topics
        if topics is None or (self.version == 0 and not topics):
            return None
        return [each.name or "" for each in topics]

    @property
    def topic_ids(self) -> list[bytes] | None:
        """The ids of topics; None if the request names them, or all.

        Raises BrokerError INVALID_REQUEST in versions 10 and 11, which have the field, but take no ids.
        """
        topics = self.topics or ()
        found = [each.topic_id for each in topics if each.topic_id != ZERO_UUID]
        if self.version < _TOPIC_IDS_FROM and (found or any(each.name is None for each in topics)):
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"Metadata version {self.version} takes names, no ids")
        return found or None

    def refused(self, code: ErrorCode, message: str) -> MetadataResponse:
        """The code for every named topic, and from version 13 on for the whole answer."""
        topics = [TopicMetadata(name=each.name or "", topic_id=each.topic_id, error=code) for each in self.topics or ()]
        return MetadataResponse(topics=topics, error=code)
