"""Checks of a commit that do not depend on the group: do the partitions exist, is the metadata too long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from barnabas.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.metadata.image import MetadataImage, TopicImage
    from barnabas.protocol.messages.groups.offset_commit import (
        OffsetCommitPartition,
        OffsetCommitPartitionResult,
        OffsetCommitTopic,
        OffsetCommitTopicResult,
    )


class AcceptedPartition(NamedTuple):
    """A partition that exists, and its result, which further checks may turn into an error."""

    topic: TopicImage
    entry: OffsetCommitPartition
    result: OffsetCommitPartitionResult


def topic_names(image: MetadataImage, topics: Sequence[OffsetCommitTopic], *, by_id: bool = False) -> list[str]:
    """Return the names of a commit's topics; unknown ids have none."""
    names = (each.name if each.name or not by_id else image.names.get(each.topic_id) for each in topics)
    return [name for name in names if name is not None]


def accept_partitions(
    image: MetadataImage,
    topics: Sequence[OffsetCommitTopic],
    denied: frozenset[str] = frozenset(),
    *,
    by_id: bool = False,
) -> tuple[list[OffsetCommitTopicResult], list[AcceptedPartition]]:
    """Return results with the errors below, and the partitions that may be committed.

    `by_id`: a topic without a name is named by its id. The errors, in this order: UNKNOWN_TOPIC_ID,
    TOPIC_AUTHORIZATION_FAILED for the topics in `denied`, UNKNOWN_TOPIC_OR_PARTITION.
    """
    from barnabas.protocol.messages.groups.offset_commit import OffsetCommitPartitionResult, OffsetCommitTopicResult

    accepted = []
    answered = []
    for each in topics:
        has_id = by_id and not each.name
        topic = image.topic_by_id(each.topic_id) if has_id else image.topics.get(each.name)
        results = []
        for entry in each.partitions:
            result = OffsetCommitPartitionResult(entry.partition)
            results.append(result)
            if topic is None and has_id:
                result.error = ErrorCode.UNKNOWN_TOPIC_ID
            elif (each.name if topic is None else topic.name) in denied:
                result.error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif topic is None or entry.partition not in topic.partitions:
                result.error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            else:
                accepted.append(AcceptedPartition(topic, entry, result))
        answered.append(OffsetCommitTopicResult(name=each.name, partitions=results, topic_id=each.topic_id))
    return answered, accepted


def refuse_long_metadata(accepted: Sequence[AcceptedPartition], limit: int) -> list[AcceptedPartition]:
    """Return the partitions whose metadata is within offset.metadata.max.bytes; the others' results get the error."""
    kept = []
    for each in accepted:
        if _java_length(each.entry.metadata or "") > limit:
            each.result.error = ErrorCode.OFFSET_METADATA_TOO_LARGE
        else:
            kept.append(each)
    return kept


def _java_length(text: str) -> int:
    """Return the number of UTF-16 code units, in which Java counts the limit."""
    return len(text) if text.isascii() else len(text.encode("utf-16-be", "surrogatepass")) // 2
