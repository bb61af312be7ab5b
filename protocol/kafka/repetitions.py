"""Requests that list a partition more than once, reduced as Kafka does by reading them into a map.

The last entry counts, at the position of the first, and a topic without partitions is dropped. No client does this on
purpose; one that does gets Kafka's response. Source: Kafka's FetchRequest.fetchData,
KafkaApis.handleDeleteRecordsRequest.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from barnabas.protocol.messages.data.delete_records import DeleteRecordsTopic
from barnabas.protocol.messages.data.fetch import FetchTopic

T = TypeVar("T", FetchTopic, DeleteRecordsTopic)


def without_repetitions(topics: list[T]) -> list[T]:
    """Return each topic, and each of its partitions, once; `topics` itself if nothing repeats."""
    first: dict[bytes | str, T] = {}
    partitions: dict[bytes | str, dict[int, Any]] = {}
    total = 0
    for topic in topics:
        key = getattr(topic, "topic_id", None) or topic.name
        first.setdefault(key, topic)
        named = partitions.setdefault(key, {})
        total += len(topic.partitions)
        for each in topic.partitions:
            named[each.partition] = each
    if len(first) == len(topics) and all(partitions.values()) and sum(map(len, partitions.values())) == total:
        return topics
    return [replace(first[key], partitions=list(named.values())) for key, named in partitions.items() if named]
