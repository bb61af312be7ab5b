"""A group's metadata hash: two that differ mean that a topic of the group came, went or got more partitions.

Of each topic that there is, its id, name and number of partitions; of the group, those of its topics in the order of
their names, 0 where it has none. Kafka keeps it in the group's record, to find out at the next heartbeat.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.broker.metadata.image import MetadataImage, TopicImage

_INT64 = struct.Struct(">q")
_INT32 = struct.Struct(">i")


def group_hash(topics: Iterable[str], image: MetadataImage) -> int:
    """A signed 64-bit number."""
    found = [image.topics[name] for name in sorted(topics) if name in image.topics]
    if not found:
        return 0
    data = b"".join(_topic_bytes(topic) for topic in found)
    value: int = _INT64.unpack(hashlib.blake2b(data, digest_size=_INT64.size).digest())[0]
    return value


def _topic_bytes(topic: TopicImage) -> bytes:
    name = topic.name.encode()
    return b"".join((topic.topic_id, _INT32.pack(len(name)), name, _INT32.pack(len(topic.partitions))))
