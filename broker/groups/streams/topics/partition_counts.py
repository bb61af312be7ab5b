"""The partition counts of an application's internal topics.

    repartition topic   the count that the application asks for, else the highest of the topics that the subtopologies
                        read which write to it
    copartition group   all source topics have the same count; repartition topics without a count of their own get it
    changelog topic     the highest count of its subtopology's source topics

Source: Kafka's RepartitionTopics, CopartitionedTopicsEnforcer, ChangelogTopics, InternalTopicManager.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from heapq import heappop, heappush
from typing import TYPE_CHECKING

from barnabas.broker.groups.streams.topics.topology import StreamsTopology, source_topics
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.groups.streams_group_heartbeat import StatusCode

if TYPE_CHECKING:
    from barnabas.protocol.messages.groups.streams_topology import CopartitionGroup, Subtopology


class TopicsNotReadyError(Exception):
    """The topics do not fit the topology yet: the group waits, and its members are told the status."""

    def __init__(self, status: StatusCode, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class PartitionCounts:
    """Counts of the topics that exist (`existing`), and of the internal topics, as they are decided."""

    def __init__(self, topology: StreamsTopology, existing: Mapping[str, int]) -> None:
        self._subtopologies = list(topology.subtopologies.values())
        self._existing = existing
        self.decided: dict[str, int] = {}

    def decide(self) -> None:
        """Decide the counts. Raises TopicsNotReadyError, BrokerError STREAMS_INVALID_TOPOLOGY."""
        self.decided.update(self._repartition_counts())
        self._copartition()
        for each in self._subtopologies:
            count = self.tasks_of(each)
            self.decided.update((topic.name, count) for topic in each.changelog_topics)

    def of(self, topic: str) -> int:
        """Return the count of a topic; the existing one counts. Raises BrokerError STREAMS_INVALID_TOPOLOGY."""
        count = self._existing.get(topic, self.decided.get(topic))
        if count is None:
            raise invalid_topology(f"The number of partitions of topic {topic} is not known.")
        return count

    def tasks_of(self, subtopology: Subtopology) -> int:
        """Return the number of tasks: the highest count of the source topics. Raises BrokerError as `of`."""
        counts = [self.of(topic) for topic in source_topics(subtopology)]
        if not counts:
            raise invalid_topology(f"No source topics found for subtopology {subtopology.subtopology_id}")
        return max(counts)

    def _repartition_counts(self) -> dict[str, int]:
        counts = {
            topic.name: topic.partitions
            for each in self._subtopologies
            for topic in each.repartition_source_topics
            if topic.partitions != 0
        }
        self._count_sinks(counts)
        if any(sink not in counts for each in self._subtopologies for sink in each.repartition_sink_topics):
            raise invalid_topology(
                "Failed to compute number of partitions for all repartition topics. There may be loops in the "
                "topology that cannot be resolved."
            )
        if any(topic.name not in counts for each in self._subtopologies for topic in each.repartition_source_topics):
            raise invalid_topology(
                "Failed to compute number of partitions for all repartition topics, because a repartition source topic "
                "is never used as a sink topic."
            )
        return counts

    def _count_sinks(self, counts: dict[str, int]) -> None:
        """Add the counts of the topics that subtopologies write, as far as they can be known.

        Kafka passes over all subtopologies until nothing is missing. In the first pass that finds a topic counted that
        a subtopology reads, it counts those that it writes, once and for all. Here a subtopology is due in just that
        pass, because a chain in reverse order takes as many passes as it has links.
        """
        readers: dict[str, list[int]] = {}
        for position, each in enumerate(self._subtopologies):
            for topic in each.repartition_source_topics:
                readers.setdefault(topic.name, []).append(position)
        due = [
            (0, position)
            for position, each in enumerate(self._subtopologies)
            if self._count_of_sinks(each, counts) is not None
        ]
        scheduled = {position for _, position in due}
        while due:
            number, position = heappop(due)
            each = self._subtopologies[position]
            count = self._count_of_sinks(each, counts)
            assert count is not None
            for sink in each.repartition_sink_topics:
                if sink in counts:
                    continue
                counts[sink] = count
                for reader in readers.get(sink, ()):
                    if reader not in scheduled:
                        scheduled.add(reader)
                        heappush(due, (number if reader > position else number + 1, reader))

    def _count_of_sinks(self, subtopology: Subtopology, counts: Mapping[str, int]) -> int | None:
        """Return the highest count of the topics that the subtopology reads, as far as they are known."""
        known = [counts.get(topic.name) for topic in subtopology.repartition_source_topics]
        known += [self._existing.get(topic) for topic in subtopology.source_topics]
        return max((count for count in known if count is not None), default=None)

    def _copartition(self) -> None:
        repartition_topics = [topic for each in self._subtopologies for topic in each.repartition_source_topics]
        fixed = {topic.name for topic in repartition_topics if topic.partitions != 0}
        flexible = {topic.name for topic in repartition_topics if topic.partitions == 0}
        fixed_counts = {self.of(topic) for topic in fixed}  # no group changes them
        for subtopology in self._subtopologies:
            for group in subtopology.copartition_groups:
                self._enforce(_members_of(subtopology, group), fixed, flexible, fixed_counts)

    def _enforce(
        self, topics: Collection[str], fixed: Set[str], flexible: Set[str], fixed_counts: Collection[int]
    ) -> None:
        if not topics:
            return
        internal = {topic: self.of(topic) for topic in topics if topic in fixed or topic in flexible}
        external = {topic: self.of(topic) for topic in topics if topic not in internal}
        if external:
            count = _same(set(external.values()), external)
        elif fixed:
            count = _same(fixed_counts, internal)
        else:
            count = max(internal.values())
        for topic, present in internal.items():
            if topic in fixed and present != count:
                raise incorrectly_partitioned(
                    f"Number of partitions [{present}] of repartition topic [{topic}] doesn't match number of "
                    f"partitions [{count}] of the source topic."
                )
            self.decided[topic] = count


def incorrectly_partitioned(message: str) -> TopicsNotReadyError:
    """Return the fault of topics whose partition counts contradict the topology."""
    return TopicsNotReadyError(StatusCode.INCORRECTLY_PARTITIONED_TOPICS, message)


def invalid_topology(message: str) -> BrokerError:
    """Return the refusal of a topology that no topics can fit."""
    return BrokerError(ErrorCode.STREAMS_INVALID_TOPOLOGY, message)


def _same(counts: Collection[int], shown: Mapping[str, int]) -> int:
    """Return the only one of the counts. Raises TopicsNotReadyError, which shows the counts of `shown`."""
    if len(counts) > 1:
        text = ", ".join(f"{topic}={shown[topic]}" for topic in sorted(shown))
        raise incorrectly_partitioned(f"Following topics do not have the same number of partitions: [{{{text}}}]")
    return next(iter(counts))


def _members_of(subtopology: Subtopology, group: CopartitionGroup) -> list[str]:
    sources, internal = subtopology.source_topics, subtopology.repartition_source_topics
    try:
        found = [*(sources[_position(each)] for each in group.source_topics)]
        found += [internal[_position(each)].name for each in group.repartition_source_topics]
    except IndexError:
        raise invalid_topology(
            f"A copartition group of subtopology {subtopology.subtopology_id} names a topic that it does not have."
        ) from None
    return list(dict.fromkeys(found))


def _position(value: int) -> int:
    if value < 0:
        raise IndexError(value)
    return value
