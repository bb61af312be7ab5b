"""The source cluster as a mirror sees it: what is asked of it, and the answers.

Its methods raise ClientError: the source cannot be reached, refuses the client, or answers nonsense.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from barnabas.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.mirrors.partition_copier import EpochEnd, FetchedPartition
    from barnabas.protocol.topic_partition import TopicPartition


class SourcePartition(NamedTuple):
    """Leader of a partition (-1: none now) and its epoch (-1: the source's version of Metadata has none)."""

    leader: int
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class SourceTopic:
    """A topic, or the error for it. `topic_id` is None where the source has no ids."""

    error: ErrorCode = ErrorCode.NONE
    topic_id: bytes | None = None
    is_internal: bool = False
    partitions: Mapping[int, SourcePartition] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SourceMetadata:
    """The topics that this client may describe."""

    cluster_id: str | None
    topics: Mapping[str, SourceTopic]


class FetchFrom(NamedTuple):
    """Where to fetch a partition from. `last_fetched_epoch` -1: the source compares nothing."""

    topic_id: bytes | None
    offset: int
    leader_epoch: int
    last_fetched_epoch: int
    max_bytes: int


class OffsetRange(NamedTuple):
    """First offset and end offset of a partition, or the error."""

    error: ErrorCode
    start: int = -1
    end: int = -1


class SourceNode(Protocol):
    """A connection to one broker of the source. Requests may be sent one after the other."""

    async def fetch(
        self,
        partitions: Mapping[TopicPartition, FetchFrom],
        *,
        max_wait_ms: int,
        max_bytes: int,
        compares: bool = False,
    ) -> Mapping[TopicPartition, FetchedPartition]:
        """Fetch from several partitions; wait up to `max_wait_ms` for a first byte.

        `compares`: the offsets do not say what a standby has.
        """
        ...

    async def offset_ranges(self, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, OffsetRange]:
        """Return the first and the end offset of partitions."""
        ...

    async def offsets_at(
        self, partitions: Sequence[TopicPartition], timestamp_ms: int
    ) -> Mapping[TopicPartition, OffsetRange]:
        """Return, as `start`, the offset of the first record at or after a timestamp, -1 if there is none."""
        ...

    async def epoch_ends(
        self, epochs: Mapping[TopicPartition, int], leader_epochs: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, EpochEnd | ErrorCode]:
        """Return the end offset of a leader epoch of each partition."""
        ...

    def close(self) -> None:
        """Close the connection; requests in flight fail."""
        ...


class Source(Protocol):
    """A cluster."""

    async def metadata(self, topics: Collection[str] | None = None) -> SourceMetadata:
        """Return these topics where they exist, or all that this client may describe."""
        ...

    async def topic_configs(self, topics: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
        """Return the configs that are set on topics; a topic whose configs are refused is left out."""
        ...

    async def node(self, node_id: int) -> SourceNode:
        """Open a connection to a broker."""
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...
