"""MirrorDefinition: where a mirror copies from, which topics and groups, and how.

Stored as the ConfigRecord `barnabas.mirror.definition.<name>` (broker.metadata.mirrors.image), whose value is a JSON
object. It has no passwords: `command_config` names a file of client properties on the broker's machine.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from barnabas.protocol.mirrors.fields import (
    DEFINITION_PREFIX,
    MirrorFormatError,
    boolean_field,
    ensure_known,
    object_text,
    optional_text_field,
    parse_object,
    text_field,
    texts_field,
)

EARLIEST: Final = "earliest"
LATEST: Final = "latest"

DEFAULT_METADATA_MAX_AGE_MS: Final = 5_000
_METADATA_AGES_MS: Final = range(100, 3_600_001)

_NAME: Final = re.compile(r"[a-zA-Z0-9._-]{1,100}")
_ADDRESS: Final = re.compile(r"(\[[0-9a-fA-F:.%]+\]|[^\s:,\[\]/]+):([0-9]{1,5})")
_MAX_PORT: Final = 65535


class DesiredState(StrEnum):
    """What a mirror shall do."""

    RUNNING = "running"
    PAUSED = "paused"
    PROMOTED = "promoted"


@dataclass(frozen=True, slots=True)
class MirrorDefinition:
    """One mirror. `topics` and `groups` are regular expressions that match whole names; they may be any text here.

    `start` is where a new topic's copy begins: `earliest`, `latest`, or a time in ms as digits.
    """

    name: str
    bootstrap: tuple[str, ...]
    topics: tuple[str, ...]
    groups: tuple[str, ...] = ()
    command_config: str | None = None
    start: str = EARLIEST
    follow_configs: bool = True
    max_bytes_per_second: int | None = None
    keep_cut: bool = False
    """Whether records that a truncation drops are kept in a file."""
    take_existing: tuple[str, ...] = ()
    """Names of existing topics that are taken, as at a failback: what the source does not have is cut from them."""
    metadata_max_age_ms: int = DEFAULT_METADATA_MAX_AGE_MS
    """Longest time between two looks at the source's topics and leaders."""
    desired: DesiredState = DesiredState.RUNNING

    @property
    def key(self) -> str:
        """The name of the config that holds the definition."""
        return DEFINITION_PREFIX + self.name

    def fields(self) -> dict[str, Any]:
        """Return the fields of the stored object; the name is not among them."""
        found = asdict(self)
        del found["name"]
        return found

    def text(self) -> str:
        """Return the stored form. Raises MirrorFormatError if it is too long."""
        return object_text(self.fields())

    def changed_by(self, fields: Mapping[str, Any]) -> MirrorDefinition:
        """Return the definition with other values of some fields. Raises MirrorFormatError."""
        ensure_known(fields, FIELDS)
        return definition_of(self.name, {**self.fields(), **fields})


FIELDS: Final = tuple(name for name in MirrorDefinition.__dataclass_fields__ if name != "name")
"""Names of the fields of the stored object."""


def parse_definition(name: str, text: str) -> MirrorDefinition:
    """Parse the stored form. Raises MirrorFormatError."""
    return definition_of(name, parse_object(text, FIELDS))


def definition_of(name: str, fields: Mapping[str, Any]) -> MirrorDefinition:
    """Return a valid definition of these fields; those that are missing have defaults, except bootstrap and topics.

    Raises MirrorFormatError for a wrong or unknown field and for an illegal name.
    """
    ensure_known(fields, FIELDS)
    ensure_mirror_name(name)
    desired = fields.get("desired", DesiredState.RUNNING)
    if desired not in [each.value for each in DesiredState]:
        raise MirrorFormatError(f"desired is not one of {', '.join(DesiredState)}")
    definition = MirrorDefinition(
        name,
        _addresses(texts_field(fields, "bootstrap")),
        tuple(dict.fromkeys(texts_field(fields, "topics"))),
        tuple(dict.fromkeys(texts_field(fields, "groups"))),
        optional_text_field(fields, "command_config"),
        _start(text_field({"start": EARLIEST, **fields}, "start")),
        boolean_field(fields, "follow_configs", True),
        _rate(fields.get("max_bytes_per_second")),
        boolean_field(fields, "keep_cut", False),
        texts_field(fields, "take_existing"),
        _max_age(fields.get("metadata_max_age_ms", DEFAULT_METADATA_MAX_AGE_MS)),
        DesiredState(desired),
    )
    if not definition.bootstrap:
        raise MirrorFormatError("bootstrap is empty: name at least one broker of the source as host:port")
    if not definition.topics:
        raise MirrorFormatError("topics is empty: give at least one pattern")
    definition.text()
    return definition


def ensure_mirror_name(name: str) -> None:
    """Raise MirrorFormatError for an illegal name of a mirror."""
    if not _NAME.fullmatch(name):
        raise MirrorFormatError("a mirror's name has 1 to 100 characters of a-z, A-Z, 0-9, '.', '_' and '-'")


def _addresses(texts: Sequence[str]) -> tuple[str, ...]:
    for text in texts:
        found = _ADDRESS.fullmatch(text)
        if found is None or not 0 < int(found[2]) <= _MAX_PORT:
            raise MirrorFormatError(f"bootstrap: {text!r} is not host:port")
    return tuple(dict.fromkeys(texts))


def _start(text: str) -> str:
    """Return `earliest`, `latest` or ms as digits. A time without a zone is UTC's."""
    if text in (EARLIEST, LATEST):
        return text
    if text.isascii() and text.isdigit() and int(text) < 2**63:
        return str(int(text))

    try:
        found = datetime.fromisoformat(text)
        if found.tzinfo is None:
            found = found.replace(tzinfo=UTC)
        return str(max(0, round(found.timestamp() * 1000)))
    except (ValueError, OverflowError) as error:
        message = f"start: {text!r} is not earliest, latest, a time such as 2026-01-31T12:00:00Z, or a number of ms"
        raise MirrorFormatError(message) from error


def _rate(value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 < value < 2**63:
        raise MirrorFormatError("max_bytes_per_second is not a number of bytes above 0")
    return value


def _max_age(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value not in _METADATA_AGES_MS:
        raise MirrorFormatError(
            f"metadata_max_age_ms is not a number of ms from {_METADATA_AGES_MS[0]} to {_METADATA_AGES_MS[-1]:,}"
        )
    return value
