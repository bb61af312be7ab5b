"""Fields of the records of streams groups."""

from __future__ import annotations

from collections.abc import Iterable
from operator import itemgetter
from typing import Final

from barnabas.protocol.kafka.schema import (
    INT16,
    INT32,
    STRING,
    UINT16,
    Array,
    Computed,
    Struct,
    Type,
    rows,
)
from barnabas.protocol.messages.groups.streams_topology import (
    CopartitionGroup,
    Endpoint,
    KeyValue,
    Subtopology,
    Tasks,
    TopicInfo,
)

KEY_VALUES = Array(Struct(KeyValue, key=STRING, value=STRING), make=tuple)
ENDPOINT = Struct(Endpoint, host=STRING, port=UINT16)
TOPIC_INFOS = Array(
    Struct(TopicInfo, name=STRING, partitions=INT32, replication_factor=INT16, configs=KEY_VALUES), make=tuple
)
_NAMES = Array(STRING, make=tuple)
_POSITIONS = Array(INT16, make=tuple)
TOPOLOGY_FIELDS: Final[dict[str, Type]] = {
    "epoch": INT32,
    "subtopologies": Array(
        Struct(
            Subtopology,
            subtopology_id=STRING,
            source_topics=_NAMES,
            source_topic_regex=_NAMES,
            changelog_topics=TOPIC_INFOS,
            repartition_sink_topics=_NAMES,
            repartition_source_topics=TOPIC_INFOS,
            copartition_groups=Array(
                Struct(
                    CopartitionGroup,
                    source_topics=_POSITIONS,
                    source_topic_regex=_POSITIONS,
                    repartition_source_topics=_POSITIONS,
                ),
                make=tuple,
            ),
        ),
        make=tuple,
    ),
}
PARTITIONS_BY_NAME = rows(name=Computed(STRING, itemgetter(0)), partitions=Computed(Array(INT32), itemgetter(1)))
"""An array of pairs of a topic, or a subtopology id, and its partitions."""


def sorted_tasks(tasks: Tasks | None) -> Iterable[tuple[str, list[int]]] | None:
    """Return tasks in the order of subtopologies and partitions."""
    return None if tasks is None else [(each, sorted(tasks[each])) for each in sorted(tasks)]
