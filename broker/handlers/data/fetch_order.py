"""Order of the partitions in a fetch response, as in Kafka.

Results are in the order in which the partitions were read, and those of partitions that were not read, because the
client may not read them or they do not exist, follow. Adjacent results of the same topic share its entry. Source:
KafkaApis.handleFetchRequest, FetchResponse.toMessage.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.data.fetch import UNREAD_ERRORS, FetchTopicResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from barnabas.protocol.messages.data.fetch import FetchPartitionResult


_KNOWN_UNREAD_ERRORS = UNREAD_ERRORS - {ErrorCode.UNKNOWN_TOPIC_ID}


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
    for topic in topics:
        results = [result for result in topic.partitions if accepts(topic, result)]
        if not results:
            continue
        last = selected[-1] if selected else None
        if last is not None and (last.topic_id or last.name) == (topic.topic_id or topic.name):
            last.partitions += results
        else:
            selected.append(FetchTopicResult(topic.name, results, topic.topic_id))
    return selected
