"""The partition counts of internal topics: Kafka's, with work in proportion to the topology."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.broker.groups.streams.topics.partition_counts import PartitionCounts, TopicsNotReadyError
from barnabas.broker.groups.streams.topics.topology import StreamsTopology
from barnabas.protocol.errors import BrokerError
from barnabas.protocol.messages.groups.streams_topology import CopartitionGroup, Subtopology, TopicInfo, Topology

EXISTING = {"in-2": 2, "in-5": 5}
REPARTITION = ["r0", "r1", "r2", "r3", "r4"]
MANY = 2000


class Counted(dict[str, int]):
    """Counts of existing topics, and how often one was looked up."""

    visits = 0

    def get(self, topic: str, default: int | None = None) -> int | None:  # type: ignore[override]
        self.visits += 1
        return super().get(topic, default)


class CountedTopics(tuple[TopicInfo, ...]):
    """Repartition topics that a subtopology reads; `visits`: how often one of them all was looked at."""

    visits = 0

    def __iter__(self):  # type: ignore[no-untyped-def]
        CountedTopics.visits += 1
        return super().__iter__()


def subtopology(
    name: str, sources: Sequence[str], reads: Sequence[TopicInfo], writes: Sequence[str], *, copartitions: bool = False
) -> Subtopology:
    groups = (CopartitionGroup(repartition_source_topics=tuple(range(len(reads)))),) if copartitions else ()
    return Subtopology(
        subtopology_id=name,
        source_topics=tuple(sources),
        repartition_sink_topics=tuple(writes),
        repartition_source_topics=tuple(reads),
        copartition_groups=groups,
    )


def repartition(name: str, partitions: int = 0) -> TopicInfo:
    return TopicInfo(name=name, partitions=partitions)


def kafkas(topology: Topology) -> dict[str, int] | None:
    """Return the counts as Kafka's passes find them; None for a loop, or a topic that nobody writes."""
    counts = {
        each.name: each.partitions
        for part in topology.subtopologies
        for each in part.repartition_source_topics
        if each.partitions
    }
    while True:
        progress, needed = False, False
        for part in topology.subtopologies:
            for sink in part.repartition_sink_topics:
                if sink not in counts:
                    read = [counts[each.name] for each in part.repartition_source_topics if each.name in counts]
                    read += [EXISTING[each] for each in part.source_topics]
                    progress |= bool(read)
                    needed |= not read
                    if read:
                        counts[sink] = max(read)
        if not needed:
            break
        if not progress:
            return None
    read_topics = {each.name for part in topology.subtopologies for each in part.repartition_source_topics}
    return counts if read_topics <= counts.keys() else None


PARTS = st.tuples(
    st.lists(st.sampled_from(sorted(EXISTING)), max_size=1),
    st.lists(st.builds(repartition, st.sampled_from(REPARTITION), st.sampled_from([0, 0, 0, 3, 7])), max_size=2),
    st.lists(st.sampled_from(REPARTITION), max_size=3),
)


@given(st.lists(PARTS, max_size=7))
@settings(max_examples=400)
def test_the_counts_of_repartition_topics_are_those_of_kafkas_passes(
    parts: list[tuple[list[str], list[TopicInfo], list[str]]],
) -> None:
    topology = Topology(
        epoch=0, subtopologies=tuple(subtopology(str(number), *part) for number, part in enumerate(parts))
    )
    expected = kafkas(topology)
    counts = PartitionCounts(StreamsTopology(topology), EXISTING)
    if expected is None:
        with pytest.raises(BrokerError, match="Failed to compute number of partitions for all repartition topics"):
            counts.decide()
    elif all(part[0] or part[1] for part in parts):  # otherwise a subtopology has no tasks
        counts.decide()
        assert counts.decided == expected


def test_a_chain_of_subtopologies_in_reverse_order_is_looked_at_a_few_times() -> None:
    chain = [
        subtopology(str(number), (), CountedTopics([repartition(f"r{number}")]), [f"r{number + 1}"])
        for number in range(MANY)
    ]
    counts = PartitionCounts(
        StreamsTopology(
            Topology(epoch=0, subtopologies=(*reversed(chain), subtopology("first", ["in-5"], (), ["r0"])))
        ),
        EXISTING,
    )
    CountedTopics.visits = 0
    counts.decide()
    assert set(counts.decided.values()) == {5}
    assert len(counts.decided) == MANY + 1
    assert CountedTopics.visits < 12 * MANY


@pytest.mark.parametrize("odd", [4, 3])
def test_copartition_groups_of_repartition_topics_with_fixed_counts_cost_one_look_at_each(odd: int) -> None:
    parts = [
        subtopology(str(number), (), [repartition(f"r{number}", 4 if number else odd)], (), copartitions=True)
        for number in range(MANY)
    ]
    existing = Counted()
    counts = PartitionCounts(StreamsTopology(Topology(epoch=0, subtopologies=tuple(parts))), existing)
    if odd == 4:
        counts.decide()
    else:
        with pytest.raises(TopicsNotReadyError, match=r"the same number of partitions: \[\{r0=3\}\]"):
            counts.decide()
    assert existing.visits <= 4 * MANY
