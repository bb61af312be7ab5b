"""What a mirror has to change here after a look at the source's topics. Pure functions, no I/O.

    take        topics of the source that do not exist here yet
    grow        mirrored topics that have more partitions at the source
    states      mirrored topics that were deleted at the source, or are there again
    replaced    topics that were deleted here, and created again at the source: nothing holds them back any more
    missing     topics that were deleted here, and that the source does not list: deleted there, too, or not shown
    problems    topics that are not copied, with the reason
    follow      topics whose partitions are copied

Internal topics are never mirrored: their records are about the source's own partitions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from barnabas.config.regex import Regex
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.mirrors.topic import TopicMirrorState
from barnabas.protocol.topic_name import CLUSTER_METADATA_TOPIC, is_internal

if TYPE_CHECKING:
    from barnabas.broker.metadata.image import MetadataImage
    from barnabas.broker.mirrors.source import SourceMetadata, SourceTopic
    from barnabas.protocol.mirrors.definition import MirrorDefinition
    from barnabas.protocol.mirrors.topic import TopicMirror

_PLAIN_NAME: Final = re.compile(r"(?:[a-zA-Z0-9_-]|\\[.-])+")
"""Patterns that match only one topic. A dot matches every character unless it is escaped, as `re.escape` does."""


@dataclass(slots=True)
class Discovery:
    """Topics by what is to be done about them."""

    take: dict[str, SourceTopic] = field(default_factory=dict)
    grow: dict[str, int] = field(default_factory=dict)
    """Topic -> number of partitions at the source."""
    states: dict[str, TopicMirrorState] = field(default_factory=dict)
    replaced: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)
    follow: dict[str, SourceTopic] = field(default_factory=dict)


class TopicFilter:
    """Chooses topics by the patterns of a definition, for one look: slow patterns have a limit in each."""

    def __init__(self, patterns: Sequence[str]) -> None:
        """Raises RegexError."""
        self._patterns = [Regex(each) for each in patterns]

    def matches(self, name: str) -> bool:
        """Return whether one of the patterns matches the whole name. Raises RegexError."""
        is_user_topic = not is_internal(name) and name != CLUSTER_METADATA_TOPIC
        return is_user_topic and any(each.matches(name) for each in self._patterns)


def named_topics(definition: MirrorDefinition, image: MetadataImage) -> frozenset[str] | None:
    """Return the topics to request metadata of, None for all.

    If each pattern is a plain name, these are the named topics, and the mirrored topics that the definition named
    before. The source may have thousands of other topics, whose metadata would be sent with every look.
    """
    if not all(_PLAIN_NAME.fullmatch(each) for each in definition.topics):
        return None
    names = frozenset(each.replace("\\", "") for each in definition.topics)
    return names | frozenset(image.mirrors.topics_of(definition.name))


def discover(definition: MirrorDefinition, metadata: SourceMetadata, image: MetadataImage) -> Discovery:
    """Compare the source's topics with those here. Raises RegexError."""
    chosen = TopicFilter(definition.topics)
    found = Discovery()
    for name, topic in metadata.topics.items():
        if not topic.is_internal and chosen.matches(name):
            _compare(found, definition, name, topic, image)
    for name, mirror in image.mirrors.topics_of(definition.name).items():
        if mirror.state is TopicMirrorState.DELETED_HERE and name not in metadata.topics:
            found.missing.append(name)
        is_promoting = mirror.promoted is not None
        if name in metadata.topics or is_promoting or not mirror.is_read_only or image.mirror_of(name) is None:
            continue
        if mirror.state is not TopicMirrorState.DELETED_AT_SOURCE:
            found.states[name] = TopicMirrorState.DELETED_AT_SOURCE
        found.problems[name] = "the topic does not exist at the source; its records are kept"
    return found


def _compare(
    found: Discovery, definition: MirrorDefinition, name: str, topic: SourceTopic, image: MetadataImage
) -> None:
    mirror_name = definition.name
    if topic.error is not ErrorCode.NONE:
        found.problems[name] = f"the source answers {topic.error.name} about the topic"
        return
    here = image.topics.get(name)
    recorded = image.mirrors.topics.get(name)
    is_deleted_here = (
        recorded is not None and recorded.mirror == mirror_name and recorded.state is TopicMirrorState.DELETED_HERE
    )
    if recorded is not None and is_deleted_here and _is_other(recorded, topic):
        found.replaced.append(name)
        is_deleted_here = False
    if here is None:
        if is_deleted_here:
            found.problems[name] = "the topic was deleted here; resume the mirror to copy it again"
        else:
            found.take[name] = topic
        return
    mirror = image.mirror_of(name)
    if name in definition.take_existing and (mirror is None or not mirror.is_read_only):
        found.take[name] = topic
    elif mirror is None:
        found.problems[name] = "a topic of this name exists here; delete it, or exclude it"
    elif mirror.mirror != mirror_name:
        found.problems[name] = f"the topic belongs to the mirror {mirror.mirror}"
    elif mirror.promoted is not None:
        found.problems[name] = "the topic was promoted"
    elif _is_other(mirror, topic):
        if mirror.state is not TopicMirrorState.FAILED:
            found.states[name] = TopicMirrorState.FAILED
        found.problems[name] = (
            "the topic was deleted and created again at the source: nothing more is copied; delete the topic here to "
            "copy the new one"
        )
    else:
        if mirror.state is not TopicMirrorState.MIRRORED:
            found.states[name] = TopicMirrorState.MIRRORED
        if len(topic.partitions) > len(here.partitions):
            found.grow[name] = len(topic.partitions)
        found.follow[name] = topic


def _is_other(mirror: TopicMirror, topic: SourceTopic) -> bool:
    """Return whether the source's topic of that name is certainly another one than the mirrored one."""
    return mirror.source_id is not None and topic.topic_id is not None and mirror.source_id != topic.topic_id


def needed_epochs(follow: Mapping[str, SourceTopic], image: MetadataImage) -> dict[str, dict[int, int]]:
    """Return, by topic and partition, leader epochs of the source that are above the partition's epoch here.

    A client that has read a record of an epoch ignores metadata with an older one.
    """
    needed: dict[str, dict[int, int]] = {}
    for name, topic in follow.items():
        for number, source in topic.partitions.items():
            state = image.partition(name, number)
            if state is not None and source.leader_epoch > state.leader_epoch:
                needed.setdefault(name, {})[number] = source.leader_epoch
    return needed
