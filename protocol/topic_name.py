"""Rules for legal and colliding topic names.

1 to 249 characters out of `a-z A-Z 0-9 . _ -`, but not `.` and `..`: a name becomes a directory name. Two names that
differ only in `.` and `_` collide, because Kafka's metrics write both as `_`. Source: Kafka's Topic.
"""

from __future__ import annotations

import re
from typing import Final

from barnabas.protocol.errors import BrokerError, ErrorCode

MAX_TOPIC_NAME_LENGTH = 249

OFFSETS_TOPIC: Final = "__consumer_offsets"
TRANSACTION_TOPIC: Final = "__transaction_state"
SHARE_STATE_TOPIC: Final = "__share_group_state"

INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, TRANSACTION_TOPIC, SHARE_STATE_TOPIC})
"""Topics that the broker creates for itself; `broker.metadata.own_topics` has their partitions and configs."""

CLUSTER_METADATA_TOPIC = "__cluster_metadata"
"""The metadata log: a partition directory, but no topic of clients."""

INTERNAL_PREFIX: Final = "__"
"""Names of topics and groups of brokers and their tools begin with it."""

_LEGAL = re.compile(r"[a-zA-Z0-9._-]*", re.ASCII)


def topic_name_fault(name: str) -> str | None:
    """Return what is wrong with a topic name, as half a sentence, or None if it is legal."""
    if not name:
        return "the empty string is not allowed"
    if name in (".", ".."):
        return f"'{name}' is not allowed"
    if len(name) > MAX_TOPIC_NAME_LENGTH:
        return f"the length of '{name}' is longer than the max allowed length {MAX_TOPIC_NAME_LENGTH}"
    if _LEGAL.fullmatch(name) is None:
        return f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
    return None


def validate_topic_name(name: str) -> None:
    """Raise BrokerError INVALID_TOPIC_EXCEPTION (17) unless the name is legal."""
    fault = topic_name_fault(name)
    if fault is not None:
        raise BrokerError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {fault}")


def has_collision_characters(name: str) -> bool:
    """Return whether the name can collide with another one at all."""
    return "." in name or "_" in name


def collision_key(name: str) -> str:
    """Return a key that is equal for two names that differ only in `.` and `_`."""
    return name.replace(".", "_")


def is_internal(name: str) -> bool:
    """Return whether the broker creates and writes this topic itself."""
    return name in INTERNAL_TOPICS
