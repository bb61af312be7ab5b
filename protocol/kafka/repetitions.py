"""Requests that list a partition more than once, reduced as Kafka does by reading them into a map.

The last entry counts, at the position of the first, and a topic without partitions is dropped. A fetch keeps the order
of its partitions even if a topic comes again after another one, as clients of fetch sessions send it. Source:
Kafka's FetchRequest.fetchData, KafkaApis.handleDeleteRecordsRequest.
"""

from __future__ import annotations

from dataclasses import replace

from barnabas.protocol.messages.data.delete_records import DeleteRecordsPartition, DeleteRecordsTopic
from barnabas.protocol.messages.data.fetch import FetchPartition, FetchTopic, PartitionKey


def without_repetitions(topics: list[DeleteRecordsTopic]) -> list[DeleteRecordsTopic]:
    """Return each topic, and each of its partitions, once; `topics` itself if nothing repeats."""
    first: dict[str, DeleteRecordsTopic] = {}
    partitions: dict[str, dict[int, DeleteRecordsPartition]] = {}
    total = 0
    for topic in topics:
        first.setdefault(topic.name, topic)
        named = partitions.setdefault(topic.name, {})
        total += len(topic.partitions)
        for each in topic.partitions:
            named[each.partition] = each
    if len(first) == len(topics) and all(partitions.values()) and sum(map(len, partitions.values())) == total:
        return topics
    return [replace(first[key], partitions=list(named.values())) for key, named in partitions.items() if named]


def fetched_once(topics: list[FetchTopic]) -> list[FetchTopic]:
    """Return each partition once, in order, adjacent ones of a topic together; `topics` itself if it is so already."""
    entries: dict[PartitionKey, FetchPartition] = {}
    total = 0
    is_joined = True
    last_key: bytes | str | None = None
    for topic in topics:
        key = topic.topic_id or topic.name
        is_joined = is_joined and key != last_key and bool(topic.partitions)
        last_key = key
        total += len(topic.partitions)
        for each in topic.partitions:
            entries[key, each.partition] = each
    if is_joined and len(entries) == total:
        return topics
    joined: list[FetchTopic] = []
    last_key = None
    for (key, _), each in entries.items():
        if key != last_key:
            last_key = key
            joined.append(FetchTopic("", [], key) if isinstance(key, bytes) else FetchTopic(key, []))
        joined[-1].partitions.append(each)
    return joined
