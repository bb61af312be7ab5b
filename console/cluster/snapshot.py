"""Snapshot: what a cluster's topics, directories and groups were at one moment. Immutable, made by the observer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from barnabas.protocol.messages.groups.groups import ListedGroup
from barnabas.protocol.messages.nodes import BrokerAddress
from barnabas.protocol.topic_partition import TopicPartition


class PartitionFacts(NamedTuple):
    """One partition. Offsets and the size are None where the broker did not answer for it.

    `dirty_ratio` and `cleaning_state`: of a compacted topic of Barnabas, else None and "".
    """

    partition: int
    leader: int
    leader_epoch: int
    replicas: Sequence[int]
    isr: Sequence[int]
    start_offset: int | None
    end_offset: int | None
    size_bytes: int | None
    log_dir: str
    dirty_ratio: float | None = None
    cleaning_state: str = ""

    @property
    def records(self) -> int | None:
        """Number of offsets in the log, which is that of its records where nothing was compacted."""
        if self.start_offset is None or self.end_offset is None:
            return None
        return self.end_offset - self.start_offset


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """One topic with the sums of its partitions. Rates are None until a second observation."""

    name: str
    topic_id: str
    is_internal: bool
    partitions: Sequence[PartitionFacts]
    records_per_s: float | None = None
    bytes_per_s: float | None = None
    error: str | None = None

    @property
    def records(self) -> int:
        """Number of offsets in all logs whose ends are known."""
        return sum(each.records or 0 for each in self.partitions)

    @property
    def size_bytes(self) -> int:
        """Bytes of all logs whose size is known, one copy of each."""
        return sum(each.size_bytes or 0 for each in self.partitions)

    @property
    def dirty_ratio(self) -> float | None:
        """The highest of the partitions, None without a compacted one."""
        return max((each.dirty_ratio for each in self.partitions if each.dirty_ratio is not None), default=None)


class DirectoryFacts(NamedTuple):
    """A log directory of a broker; -1 for bytes that the broker does not tell. `error` is empty if it is online."""

    node_id: int
    path: str
    total_bytes: int
    usable_bytes: int
    size_bytes: int
    error: str


@dataclass(frozen=True, slots=True)
class GroupFacts:
    """One group, as listed. `lag` is None where no offsets are known."""

    listed: ListedGroup
    committed: Mapping[TopicPartition, int] = field(default_factory=dict)
    lag: int | None = None


@dataclass(frozen=True)
class Snapshot:
    """`problems` are sentences about what could not be asked, for example for lack of rights.

    What several pages need of all partitions is computed once.
    """

    taken_at_ms: int
    cluster_id: str
    controller_id: int
    brokers: Sequence[BrokerAddress]
    topics: Mapping[str, TopicFacts]
    directories: Sequence[DirectoryFacts]
    groups: Mapping[str, GroupFacts]
    problems: Sequence[str] = ()

    @cached_property
    def ends(self) -> Mapping[TopicPartition, int | None]:
        """The ends of all logs, None where a broker did not tell."""
        return {
            TopicPartition(topic.name, each.partition): each.end_offset
            for topic in self.topics.values()
            for each in topic.partitions
        }

    @cached_property
    def largest_lags(self) -> Mapping[str, int]:
        """The largest lag of a group in each topic that a group has committed offsets of."""
        largest: dict[str, int] = {}
        for group in self.groups.values():
            lags: dict[str, int] = {}
            for partition, offset in group.committed.items():
                end = self.ends.get(partition)
                if end is not None:
                    lags[partition.topic] = lags.get(partition.topic, 0) + max(0, end - offset)
            for topic, lag in lags.items():
                largest[topic] = max(lag, largest.get(topic, 0))
        return largest

    @property
    def records_per_s(self) -> float | None:
        """Records per second into all topics; None until a second observation."""
        return _sum(each.records_per_s for each in self.topics.values())

    @property
    def bytes_per_s(self) -> float | None:
        """Bytes per second into all topics, compressed as stored; None until a second observation."""
        return _sum(each.bytes_per_s for each in self.topics.values())


def _sum(values: Iterable[float | None]) -> float | None:
    known = [each for each in values if each is not None]
    return sum(known) if known else None
