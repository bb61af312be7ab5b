"""What an operator has to act on, in sentences: the urgent part of what is explained. Pure.

The thresholds are those of the alert rules in config/alerts.yml.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from barnabas.explanation.compaction import failure_sentence
from barnabas.explanation.group import retention_sentence
from barnabas.explanation.group_findings import ExplainedGroup, Verdict
from barnabas.explanation.mirror import partition_sentence
from barnabas.explanation.setting import problem_sentence
from barnabas.explanation.space import forecast_sentence
from barnabas.explanation.space_findings import FileSystemSpace
from barnabas.explanation.transaction import holder_sentences
from barnabas.explanation.transaction_findings import PartitionFinding
from barnabas.explanation.wording import counted
from barnabas.protocol.messages.cluster.mirrors import MirrorDescription
from barnabas.protocol.messages.topics.explain_topic import ExplainTopicResponse

FULL_WITHIN_DAYS: Final = 1.0
OVERTAKEN_WITHIN_MS: Final = 3600 * 1000
MIRROR_BEHIND_SECONDS: Final = 300.0

_SHOWN_MAX: Final = 10


def space_warnings(found: FileSystemSpace) -> Iterator[str]:
    """A file system that is full within a day at the present rate."""
    if found.full_in_days is not None and found.full_in_days < FULL_WITHIN_DAYS:
        yield f"{', '.join(found.file_system.paths)}: {forecast_sentence(found)}"


def group_warnings(explained: ExplainedGroup) -> Iterator[str]:
    """Each config that is not used, and each partition that retention has overtaken the group in, or soon will."""
    for problem in explained.facts.problems:
        yield f"group {explained.group_id}: {problem}"
    now_ms = explained.facts.now_ms
    for finding in explained.partitions:
        earliest_ms = finding.overtaken_earliest_ms
        is_soon = bool(finding.at_risk) and earliest_ms is not None and earliest_ms < now_ms + OVERTAKEN_WITHIN_MS
        if finding.verdict is Verdict.LOST or is_soon:
            where = f"group {explained.group_id}, {finding.lag.topic}-{finding.lag.partition}"
            yield f"{where}: {retention_sentence(finding, now_ms)}"


def compaction_warnings(topic: str, explained: ExplainTopicResponse) -> Iterator[str]:
    """Each partition whose compaction failed."""
    for each in explained.partitions:
        if each.compaction is not None and each.compaction.error is not None:
            yield f"{topic}-{each.partition}: {failure_sentence(each.compaction)}"


def config_warnings(topic: str, explained: ExplainTopicResponse) -> Iterator[str]:
    """Each stored config that is not understood, because of which the topic's logs are kept."""
    for each in explained.settings:
        if each.problem is not None:
            yield f"topic {topic}: {problem_sentence(each)}"


def mirror_warnings(mirror: MirrorDescription) -> Iterator[str]:
    """A mirror without progress, topics that are not copied, and partitions that failed or are far behind."""
    who = f"mirror {mirror.name}"
    if mirror.error is not None:
        yield f"{who} makes no progress: {mirror.error}"
    for problem in mirror.problems:
        yield f"{who}, topic {problem.topic}: {problem.reason}"
    for each in mirror.partitions:
        is_behind = bool(each.lag_records) and (each.lag_seconds or 0.0) > MIRROR_BEHIND_SECONDS
        if each.error is not None or is_behind:
            yield f"{who}: {partition_sentence(each)}"


def transaction_warnings(finding: PartitionFinding, hanging_from: Mapping[int, int], *, now_ms: int) -> Iterator[str]:
    """The transactions that hang in a partition. `hanging_from`: the first offset of each, by producer id."""
    for holder in finding.holders:
        if hanging_from.get(holder.transaction.producer_id) == holder.transaction.start_offset:
            sentence, advice = holder_sentences(holder, finding, now_ms)
            yield f"{finding.partition.topic_partition}: {sentence}; {advice}"


def shortened(sentences: list[str], noun: str) -> list[str]:
    """The first ten sentences of one kind, and how many more there are."""
    if len(sentences) <= _SHOWN_MAX:
        return sentences
    return [*sentences[:_SHOWN_MAX], f"and {counted(len(sentences) - _SHOWN_MAX, noun)} more"]
