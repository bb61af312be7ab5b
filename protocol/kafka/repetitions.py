"""Fetches that list a partition more than once, reduced as Kafka does by reading them into a map.

The last entry counts, at the position of the first, and a topic without partitions is dropped. A fetch keeps the order
of its partitions even if a topic comes again after another one, as clients of fetch sessions send it. Source:
Kafka's FetchRequest.fetchData.
"""

from __future__ import annotations

from barnabas.protocol.messages.data.fetch import FetchPartition, FetchTopic, PartitionKey


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
