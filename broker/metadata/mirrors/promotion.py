"""Plans of a promotion, in the order of its steps. Each is one atomic change, and repeating it has no effect.

    begin     the topics are `promoting`, so the mirror stops; without patterns the whole mirror is promoted
    prepare   outcomes of open transactions are stored, and the partitions get the leader epoch of this cluster
    finish    the topics are `promoted` and writable, with the offsets that a failback needs

The leader epoch is above every one that the source can have: consumers and committed offsets carry epochs, and one that
has seen a newer epoch ignores metadata with an older one. Each promotion begins a stride of epochs, so there is room
for more than a hundred in both directions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.mirrors.definitions import unknown_mirror
from barnabas.broker.metadata.mirrors.image import mirror_record
from barnabas.broker.metadata.mirrors.topics import plan_raise_leader_epochs
from barnabas.broker.metadata.plan import Plan
from barnabas.config.regex import Regex, RegexError
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.metadata.records import MetadataRecord
from barnabas.protocol.mirrors.definition import DesiredState
from barnabas.protocol.mirrors.promotion import TopicPromotion, Undecided
from barnabas.protocol.mirrors.topic import TopicMirror, TopicMirrorState, topic_mirror_key
from barnabas.protocol.topic_partition import TopicPartition

EPOCH_STRIDE: Final = 2**24
"""A cluster elects far fewer leaders of a partition than this; 2^31 / 2^24 promotions fit."""

_MAX_EPOCH: Final = 2**31 - 1


def promoted_epoch(epoch: int, switch_number: int = 0) -> int:
    """Return the leader epoch of a promotion, in the first epochs of a stride, at least half a stride above `epoch`.

    `switch_number` counts the takeovers by standbys. It is part of the epoch, because a broker that is lost during a
    promotion may have finished it, and its standby, which does not know that, must not write in the same epoch. At the
    end of the range there is no such epoch, and the next one has to do. Raises BrokerError if there is none.
    """
    if epoch >= _MAX_EPOCH:
        raise BrokerError(ErrorCode.POLICY_VIOLATION, f"there is no leader epoch above {epoch}")
    found = (epoch + EPOCH_STRIDE // 2) // EPOCH_STRIDE * EPOCH_STRIDE + EPOCH_STRIDE + switch_number
    return found if found < _MAX_EPOCH else epoch + 1


def promoting_topics(image: MetadataImage, mirror: str) -> dict[str, TopicMirror]:
    """Return the existing topics of a mirror that are being promoted."""
    return {
        topic: each
        for topic, each in image.mirrors.topics_of(mirror).items()
        if each.state is TopicMirrorState.PROMOTING and image.mirror_of(topic) == each
    }


def plan_begin_promotion(image: MetadataImage, name: str, patterns: Sequence[str], undecided: Undecided) -> Plan[str]:
    """Plan that topics of a mirror are promoted; the results are their names. Raises BrokerError.

    `patterns` match whole names. Without patterns all topics are promoted and the mirror copies nothing more.
    """
    definition = image.mirrors.definitions.get(name)
    if definition is None:
        raise unknown_mirror(name)
    try:
        chosen = [Regex(each) for each in patterns]
        topics = {
            topic: each
            for topic, each in image.mirrors.topics_of(name).items()
            if not chosen or any(pattern.matches(topic) for pattern in chosen)
        }
    except RegexError as error:
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"topics: {error}") from error
    if chosen and not topics:
        message = f"mirror '{name}' has no topic that matches {', '.join(patterns)}"
        raise BrokerError(ErrorCode.RESOURCE_NOT_FOUND, message)
    records: list[MetadataRecord] = []
    begun: list[str] = []
    for topic, each in sorted(topics.items()):
        if not each.is_read_only or image.mirror_of(topic) != each:
            continue
        begun.append(topic)
        if each.state is not TopicMirrorState.PROMOTING:
            records.append(_record(topic, each, TopicMirrorState.PROMOTING, TopicPromotion(undecided)))
    if not chosen and definition.desired is not DesiredState.PROMOTED:
        promoted = replace(definition, desired=DesiredState.PROMOTED)
        records.append(mirror_record(promoted.key, promoted.text()))
    return Plan(begun, records)


def plan_prepare_promotion(
    image: MetadataImage, name: str, promotions: Mapping[str, TopicPromotion]
) -> Plan[TopicPartition]:
    """Plan the outcomes and leader epochs of topics; the results are the partitions with another epoch."""
    promoting = promoting_topics(image, name)
    prepared = {topic: each for topic, each in promotions.items() if topic in promoting}
    raised = plan_raise_leader_epochs(
        image,
        {
            TopicPartition(topic, number): each.leader_epoch
            for topic, each in prepared.items()
            for number in image.topics[topic].partitions
        },
    )
    records = [_record(topic, promoting[topic], TopicMirrorState.PROMOTING, each) for topic, each in prepared.items()]
    return Plan(raised.results, [*raised.records, *records])


def plan_finish_promotion(image: MetadataImage, name: str, promotions: Mapping[str, TopicPromotion]) -> Plan[str]:
    """Plan that topics are promoted; the results are their names."""
    promoting = promoting_topics(image, name)
    done = [topic for topic in promotions if topic in promoting]
    return Plan(done, [_record(each, promoting[each], TopicMirrorState.PROMOTED, promotions[each]) for each in done])


def _record(topic: str, mirrored: TopicMirror, state: TopicMirrorState, promotion: TopicPromotion) -> MetadataRecord:
    return mirror_record(topic_mirror_key(topic), replace(mirrored, state=state, promoted=promotion).text())
