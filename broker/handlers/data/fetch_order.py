"""Order of the partitions in a fetch and in its response, as in Kafka.

A fetch that lists a partition more than once is read into a map: the last entry counts, at the position of the first,
and a topic without partitions is dropped. A fetch keeps the order of its partitions even if a topic comes again after
another one, as clients of fetch sessions send it.

Results are in the order in which the partitions were read, and those of partitions that were not read, because the
client may not read them or they do not exist, follow. Adjacent results of the same topic share its entry. Source:
KafkaApis.handleFetchRequest, FetchResponse.toMessage, FetchRequest.fetchData.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.data.fetch import UNREAD_ERRORS, FetchTopic, FetchTopicResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from barnabas.protocol.messages.data.fetch import (
        FetchPartition,
        FetchPartitionResult,
        PartitionKey,
        TopicKey,
    )


_KNOWN_UNREAD_ERRORS = UNREAD_ERRORS - {ErrorCode.UNKNOWN_TOPIC_ID}


def fetched_once(topics: Sequence[FetchTopic]) -> Sequence[FetchTopic]:
    """Return each partition once, in order, adjacent ones of a topic together; `topics` itself if it is so already."""
    if len(topics) == 1 and len(topics[0].partitions) == 1:
        return topics
    entries: dict[PartitionKey, tuple[FetchTopic, FetchPartition]] = {}
    total = 0
    is_joined = True
    last_key: TopicKey | None = None
    for topic in topics:
        key = topic.key
        is_joined = is_joined and key != last_key and bool(topic.partitions)
        last_key = key
        total += len(topic.partitions)
        for each in topic.partitions:
            entries[key, each.partition] = topic, each
    if is_joined and len(entries) == total:
        return topics
    joined: list[FetchTopic] = []
    last_key = None
    partitions: list[FetchPartition] = []
    for (key, _), (topic, each) in entries.items():
        if key != last_key:
            last_key = key
            partitions = []
            joined.append(FetchTopic(name=topic.name, topic_id=topic.topic_id, partitions=partitions))
        partitions.append(each)
    return joined


def unread_last(topics: list[FetchTopicResult]) -> list[FetchTopicResult]:
    """Return the results with those of unread partitions at the end, first those of unknown topic ids."""
    ordered = matching(topics, lambda _, result: result.error not in UNREAD_ERRORS)
    _appended(ordered, topics, lambda _, result: result.error is ErrorCode.UNKNOWN_TOPIC_ID)
    return _appended(ordered, topics, lambda _, result: result.error in _KNOWN_UNREAD_ERRORS)


def matching(
    topics: list[FetchTopicResult], accepts: Callable[[FetchTopicResult, FetchPartitionResult], bool]
) -> list[FetchTopicResult]:
    """Return the results that `accepts(topic, result)`, in the same order."""
    return _appended([], topics, accepts)


def _appended(
    selected: list[FetchTopicResult],
    topics: Iterable[FetchTopicResult],
    accepts: Callable[[FetchTopicResult, FetchPartitionResult], bool],
) -> list[FetchTopicResult]:
    last_key: TopicKey | None = None
    last_results: list[FetchPartitionResult] = []
    if selected:
        last_key = selected[-1].key
        selected[-1].partitions = last_results = list(selected[-1].partitions)
    for topic in topics:
        results = [result for result in topic.partitions if accepts(topic, result)]
        if not results:
            continue
        key = topic.key
        if key != last_key:
            last_key = key
            last_results = []
            selected.append(FetchTopicResult(name=topic.name, topic_id=topic.topic_id, partitions=last_results))
        last_results += results
    return selected
