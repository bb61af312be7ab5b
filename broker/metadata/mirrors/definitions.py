"""Creation, change and deletion of mirrors' definitions: functions from an image and a request to records.

The first definition raises the next producer id to a range of this cluster's own: copied batches keep the producer ids
of the source, and an id that this broker handed out as well would end in duplicates or gaps of sequence numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.mirrors.image import mirror_record
from barnabas.broker.metadata.mirrors.producer_ids import plan_own_producer_ids
from barnabas.broker.metadata.plan import Plan
from barnabas.config.regex import RegexError, compiled
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.metadata.records import MetadataRecord
from barnabas.protocol.mirrors.definition import (
    DesiredState,
    MirrorDefinition,
    definition_of,
    parse_definition,
)
from barnabas.protocol.mirrors.fields import DEFINITION_PREFIX, MirrorFormatError
from barnabas.protocol.mirrors.topic import TopicMirrorState, topic_mirror_key

MAX_MIRRORS: Final = 100
"""Most definitions: each has connections and tasks of its own."""


def plan_create_mirror(
    image: MetadataImage, name: str, fields: Mapping[str, Any], *, node_id: int, cluster_id: str
) -> Plan[MirrorDefinition]:
    """Plan a new definition, the only result. Raises BrokerError."""
    definition = _checked(lambda: definition_of(name, fields), name)
    _ensure_served(definition)
    if definition.key in image.mirrors.texts:
        raise BrokerError(ErrorCode.DUPLICATE_RESOURCE, f"mirror '{name}' already exists")
    if len(image.mirrors.definitions) >= MAX_MIRRORS:
        raise BrokerError(ErrorCode.POLICY_VIOLATION, f"there are {MAX_MIRRORS} mirrors, the most that are allowed")
    if definition.desired is DesiredState.PROMOTED:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "a mirror cannot be created promoted")
    records: list[MetadataRecord] = [mirror_record(definition.key, definition.text())]
    records += plan_own_producer_ids(image, node_id=node_id, cluster_id=cluster_id).records
    return Plan([definition], records)


def plan_alter_mirror(image: MetadataImage, name: str, fields: Mapping[str, Any]) -> Plan[MirrorDefinition]:
    """Plan other values of some fields; the new definition is the only result. Raises BrokerError.

    Topics of the mirror that were deleted here may be created again afterwards. A definition that cannot be read is
    replaced if `fields` are a whole one.
    """
    before = image.mirrors.definitions.get(name)
    if before is None and DEFINITION_PREFIX + name in image.mirrors.texts:
        after = _checked(lambda: definition_of(name, fields), name)
    elif before is None:
        raise unknown_mirror(name)
    else:
        found = before
        after = _checked(lambda: found.changed_by(fields), name)
        _ensure_possible(before, after)
    _ensure_served(after, before)
    records: list[MetadataRecord] = []
    if after != before:
        records.append(mirror_record(after.key, after.text()))
    for topic, each in image.mirrors.topics_of(name).items():
        if each.state is TopicMirrorState.DELETED_HERE:
            records.append(mirror_record(topic_mirror_key(topic), None))
    return Plan([after], records)


def plan_replace_mirror(image: MetadataImage, name: str, text: str) -> Plan[MirrorDefinition]:
    """Plan another whole definition, in its stored form, of an existing mirror. Raises BrokerError.

    An unchanged one has no effect: kafka-configs 3.9 sends all configs of a resource when it changes one of them.
    """
    definition = _checked(lambda: parse_definition(name, text), name)
    if definition == image.mirrors.definitions.get(name):
        return Plan([definition], [])
    if DEFINITION_PREFIX + name not in image.mirrors.texts:
        message = f"mirror '{name}' does not exist: create it with `barnabas mirror create`"
        raise BrokerError(ErrorCode.INVALID_REQUEST, message)
    return plan_alter_mirror(image, name, definition.fields())


def plan_delete_mirror(image: MetadataImage, name: str, *, releases_topics: bool) -> Plan[str]:
    """Plan the deletion of a definition; the results are the topics that become writable. Raises BrokerError.

    Without `releases_topics` a mirror with read-only topics is not deleted. Released topics keep their records as they
    are: open transactions stay open.
    """
    key = DEFINITION_PREFIX + name
    if key not in image.mirrors.texts:
        raise unknown_mirror(name)
    topics = image.mirrors.topics_of(name)
    released = sorted(topic for topic, each in topics.items() if each.is_read_only and image.mirror_of(topic) == each)
    if any(topics[each].state is TopicMirrorState.PROMOTING for each in released):
        raise BrokerError(ErrorCode.POLICY_VIOLATION, f"mirror '{name}' is being promoted: wait until that is done")
    if released and not releases_topics:
        raise BrokerError(
            ErrorCode.POLICY_VIOLATION,
            f"mirror '{name}' has {len(released)} read-only topic{'' if len(released) == 1 else 's'}: delete the "
            "topics first, promote the mirror, or release them as they are (--release-topics)",
        )
    records: list[MetadataRecord] = [mirror_record(topic_mirror_key(topic), None) for topic in topics]
    return Plan(released, [*records, mirror_record(key, None)])


def unknown_mirror(name: str) -> BrokerError:
    """Return the error for a mirror that does not exist, to be raised."""
    return BrokerError(ErrorCode.RESOURCE_NOT_FOUND, f"mirror '{name}' does not exist")


def pattern_fault(definition: MirrorDefinition, before: MirrorDefinition | None = None) -> str | None:
    """Return a clause about a pattern that is not served and that `before` does not have, or None.

    A stored definition may have one: an earlier Barnabas matched with another engine.
    """
    for field in ("topics", "groups"):
        for pattern in getattr(definition, field):
            if before is not None and pattern in getattr(before, field):
                continue
            try:
                compiled(pattern)
            except RegexError as error:
                return f"{field}: {error}"
    return None


def _ensure_served(definition: MirrorDefinition, before: MirrorDefinition | None = None) -> None:
    fault = pattern_fault(definition, before)
    if fault is not None:
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"mirror '{definition.name}': {fault}")


def _ensure_possible(before: MirrorDefinition, after: MirrorDefinition) -> None:
    """Raise BrokerError for a change that would leave the topics of a promoted mirror in doubt."""
    if before.desired is DesiredState.PROMOTED and after.desired is not DesiredState.PROMOTED:
        raise BrokerError(
            ErrorCode.INVALID_REQUEST, f"mirror '{before.name}' is promoted: its topics are written here, delete it"
        )
    if after.desired is DesiredState.PROMOTED and before.desired is not DesiredState.PROMOTED:
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"a mirror is promoted by `barnabas mirror promote {before.name}`")


def _checked(build: Callable[[], MirrorDefinition], name: str) -> MirrorDefinition:
    try:
        return build()
    except MirrorFormatError as error:
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"mirror '{name}': {error}") from error
