"""TopicMirror: the record that a topic is, or was, a copy of another cluster's topic.

Stored as the ConfigRecord `barnabas.mirror.topic.<topic>` (broker.metadata.mirrors.image), whose value is a JSON
object. It names the topic's id, because Apache Kafka carries the record without knowing it: a topic that is deleted and
created again under Kafka has another id and is no mirror.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.mirrors.fields import (
    TOPIC_PREFIX,
    MirrorFormatError,
    object_text,
    optional_text_field,
    parse_object,
    text_field,
)
from barnabas.protocol.mirrors.promotion import TopicPromotion, parse_promotion
from barnabas.protocol.uuids import parse_uuid, uuid_text

_FIELDS: Final = ("mirror", "topic_id", "source_id", "state", "promoted")


class TopicMirrorState(StrEnum):
    """What has become of a mirrored topic."""

    MIRRORED = "mirrored"
    FAILED = "failed"
    DELETED_AT_SOURCE = "deleted_at_source"
    PROMOTING = "promoting"
    """Copying has ended; open transactions are being settled."""
    PROMOTED = "promoted"
    DELETED_HERE = "deleted_here"
    """Deleted in this cluster: the mirror does not create it again until it is altered."""


READ_ONLY_STATES: Final = frozenset(
    {
        TopicMirrorState.MIRRORED,
        TopicMirrorState.FAILED,
        TopicMirrorState.DELETED_AT_SOURCE,
        TopicMirrorState.PROMOTING,
    }
)
"""States in which only the mirror writes to the topic."""


@dataclass(frozen=True, slots=True)
class TopicMirror:
    """One topic of a mirror. `source_id` is None where the source has no topic ids."""

    mirror: str
    topic_id: bytes
    source_id: bytes | None = None
    state: TopicMirrorState = TopicMirrorState.MIRRORED
    promoted: TopicPromotion | None = None
    """The promotion, from its beginning on."""

    @property
    def is_read_only(self) -> bool:
        """Whether only the mirror writes to the topic."""
        return self.state in READ_ONLY_STATES

    def text(self) -> str:
        """Return the stored form. Raises MirrorFormatError if it is too long."""
        fields: dict[str, Any] = {
            "mirror": self.mirror,
            "topic_id": uuid_text(self.topic_id),
            "source_id": None if self.source_id is None else uuid_text(self.source_id),
            "state": self.state.value,
        }
        if self.promoted is not None:
            fields["promoted"] = self.promoted.fields()
        return object_text(fields)


def topic_mirror_key(topic: str) -> str:
    """Return the name of the config that holds a topic's record."""
    return TOPIC_PREFIX + topic


def parse_topic_mirror(text: str) -> TopicMirror:
    """Parse the stored form. Raises MirrorFormatError."""
    fields = parse_object(text, _FIELDS)
    state, source_id, promoted = fields.get("state"), optional_text_field(fields, "source_id"), fields.get("promoted")
    if state not in [each.value for each in TopicMirrorState]:
        raise MirrorFormatError(f"state is not one of {', '.join(TopicMirrorState)}")
    if promoted is not None and not isinstance(promoted, dict):
        raise MirrorFormatError("promoted is not a JSON object")
    return TopicMirror(
        text_field(fields, "mirror"),
        _id("topic_id", text_field(fields, "topic_id")),
        None if source_id is None else _id("source_id", source_id),
        TopicMirrorState(state),
        None if promoted is None else parse_promotion(promoted),
    )


def _id(field: str, text: str) -> bytes:
    try:
        return parse_uuid(text)
    except DecodeError as error:
        raise MirrorFormatError(f"{field}: {text!r} is not a topic id") from error
