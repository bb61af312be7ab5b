"""What a group's leader gives to one consumer: its assignment in a SyncGroup of the protocol type `consumer`.

    int16 version | topics: int32 count, each: name with an int16 size, int32 count, int32 partitions |
    user data: int32 size (-1 null), bytes

Versions 0 to 3 are the same bytes, and every reader takes a later one for these. A member that gets nothing may get no
bytes at all. Source: Kafka's ConsumerProtocolAssignment, ConsumerProtocol.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from barnabas.protocol.errors import DecodeError
from barnabas.protocol.groups.classic_fields import read_array_length, read_string, write_string
from barnabas.protocol.primitives import Reader, Writer
from barnabas.protocol.topic_partition import TopicPartition

_VERSION: Final = 0
_NO_USER_DATA: Final = -1


def encode_assignment(partitions: Iterable[TopicPartition]) -> bytes:
    """These partitions, by topic in the order of their first mention, as version 0."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    writer = Writer().int16(_VERSION).int32(len(by_topic))
    for topic, numbers in by_topic.items():
        write_string(writer, topic).int32(len(numbers))
        for number in numbers:
            writer.int32(number)
    return writer.int32(_NO_USER_DATA).to_bytes()


def decode_assignment(data: bytes) -> tuple[TopicPartition, ...]:
    """The partitions, in the order of the bytes; none for no bytes. Raises DecodeError."""
    if not data:
        return ()
    reader = Reader(data)
    version = reader.int16()
    if version < 0:
        raise DecodeError(f"version {version} of an assignment is negative")
    found = []
    for _ in range(read_array_length(reader)):
        topic = read_string(reader)
        found += [TopicPartition(topic, reader.int32()) for _ in range(read_array_length(reader))]
    return tuple(found)
