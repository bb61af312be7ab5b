"""Structures as plain values, as Kafka's generated JSON converters write them."""

from __future__ import annotations

import base64
from typing import Any, Final

from barnabas.protocol.uuids import uuid_text
from barnabas.protocol.wire.fields import Array, is_structure, present
from barnabas.protocol.wire.structures import Struct
from barnabas.protocol.wire.types import Fixed

HIDDEN: Final = "[hidden]"


def plain(value: Struct, version: int) -> dict[str, Any]:
    """Return the fields that a version has, by Kafka's names; a tagged field with its default is left out.

    A uuid is text, bytes are base64, and secrets are hidden, unlike in Kafka.
    """
    found = {}
    for field in present(type(value), version):
        each = getattr(value, field.name)
        if field.tag is None or each != field.default:
            found[field.kafka_name] = _plain(field.kind, each, version)
    return found


def _plain(kind: Any, value: Any, version: int) -> Any:
    if value is None:
        return None
    if isinstance(kind, Array):
        return [_plain(kind.item, each, version) for each in value]
    if is_structure(kind):
        return plain(value, version)
    if isinstance(kind, Fixed):
        return uuid_text(value) if kind.name == "uuid" else value
    if kind.is_secret:
        return HIDDEN
    return value if kind.name == "string" else base64.b64encode(value).decode("ascii")
