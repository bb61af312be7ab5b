"""Kafka's 16-byte ids (topic, directory, cluster) and their text: URL-safe base64, 22 characters, no padding.

Source: Kafka's org.apache.kafka.common.Uuid.
"""

from __future__ import annotations

import base64
import binascii
import os

from barnabas.protocol.errors import DecodeError

UUID_SIZE = 16

ZERO_UUID = bytes(UUID_SIZE)
"""Stands for no id."""

METADATA_TOPIC_UUID = bytes(15) + b"\x01"
"""The fixed topic id of `__cluster_metadata`, and the first of Kafka's 100 reserved ids."""

_RESERVED_BELOW = 100


def random_uuid() -> bytes:
    """Return a new random id, not reserved and not starting with `-` as text (it would look like an option)."""
    while True:
        candidate = bytearray(os.urandom(UUID_SIZE))
        candidate[6] = (candidate[6] & 0x0F) | 0x40  # RFC 4122 version 4, as java.util.UUID.randomUUID draws them
        candidate[8] = (candidate[8] & 0x3F) | 0x80  # RFC 4122 variant
        value = bytes(candidate)
        if int.from_bytes(value, "big") >= _RESERVED_BELOW and not uuid_text(value).startswith("-"):
            return value


def uuid_text(value: bytes) -> str:
    """Return the 22 characters by which Kafka's files and tools write the id."""
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode("ascii")


def parse_uuid(text: str) -> bytes:
    """Return the 16 bytes of an id from its text. Raises DecodeError for any other text."""
    try:
        value = base64.b64decode(text + "==", altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise DecodeError(f"uuid {text!r} is not url-safe base64: {error}") from error
    if len(value) != UUID_SIZE:
        raise DecodeError(f"uuid {text!r} holds {len(value)} bytes, not {UUID_SIZE}")
    return value
