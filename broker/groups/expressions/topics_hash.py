"""A group's metadata hash: two that differ mean that a topic of the group came, went or got more partitions.

    topic    byte 0 | topic id: two int64 | name: UTF-16, then its length int32 | partitions int32 | their numbers int32
    group    the hashes of its topics that there are, int64, in the order of their names; no topic: 0

Integers are little-endian. The same as Kafka's (Utils.computeTopicHash and computeGroupHash), which keeps it in the
group's record: so a group that goes from one to the other does not rebalance for it. There are no racks here.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from barnabas.broker.groups.expressions.xxh3 import xxh3_64

if TYPE_CHECKING:
    from barnabas.broker.metadata.image import MetadataImage

_MAGIC: Final = b"\x00"
_ID: Final = struct.Struct(">QQ")
_ID_WRITTEN: Final = struct.Struct("<QQ")
_HASH: Final = struct.Struct("<Q")
_INT32: Final = struct.Struct("<i")


def group_hash(topics: Iterable[str], image: MetadataImage) -> int:
    """A signed 64-bit number."""
    found = [image.topics[name] for name in sorted(topics) if name in image.topics]
    if not found:
        return 0
    return _signed(
        xxh3_64(b"".join(_HASH.pack(_topic_hash(each.topic_id, each.name, len(each.partitions))) for each in found))
    )


@lru_cache(maxsize=10_000)
def _topic_hash(topic_id: bytes, name: str, partitions: int) -> int:
    text = name.encode("utf-16-le", "surrogatepass")
    return xxh3_64(
        b"".join(
            (
                _MAGIC,
                _ID_WRITTEN.pack(*_ID.unpack(topic_id)),
                text,
                _INT32.pack(len(text) // 2),
                _INT32.pack(partitions),
                *map(_INT32.pack, range(partitions)),
            )
        )
    )


def _signed(value: int) -> int:
    return value - ((value >> 63) << 64)
