"""The topics in a consumer's subscription, which is its metadata in a JoinGroup of the protocol type `consumer`.

    int16 version | topics: int32 count, strings with an int16 size | user data: int32 size (-1 null), bytes |
    what later versions have more

All versions begin alike, and every reader takes all of them. The topics are all that the broker and eager assignors
need; what later versions add is for cooperative ones. Source: Kafka's ConsumerProtocolSubscription, ConsumerProtocol.
"""

from __future__ import annotations

from typing import Final

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.groups.classic_fields import read_array_length, read_string
from barnabas.protocol.primitives import Reader

CONSUMER: Final = "consumer"
"""The protocol type of consumers; Connect and others have their own."""


def subscribed_topics(metadata: bytes) -> frozenset[str]:
    """By name. Raises DecodeError."""
    reader = Reader(metadata)
    version = reader.int16()
    if version < 0:
        raise DecodeError(f"version {version} of a subscription is negative")
    return frozenset(read_string(reader) for _ in range(read_array_length(reader)))
