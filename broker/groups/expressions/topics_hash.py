"""The metadata hash of a group: it changes when a subscribed topic is created, deleted or gets more partitions.

    topic    byte 0 | topic id: two int64 | name: UTF-16, then its length int32 | partition count int32 |
             partition numbers int32
    group    the hashes of its existing topics, int64, in the order of their names; 0 without a topic

Hashed with XXH3 (64 bits, seed 0). Integers are little-endian. Kafka stores the same number in the group's record
(Utils.computeTopicHash and computeGroupHash), so a group that moves between Kafka and Barnabas does not rebalance for
it. Racks are left out: no broker here has one.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Final

import xxhash

if TYPE_CHECKING:
    from barnabas.broker.metadata.image import MetadataImage

_MAGIC: Final = b"\x00"
_ID: Final = struct.Struct(">QQ")
_ID_WRITTEN: Final = struct.Struct("<QQ")
_HASH: Final = struct.Struct("<Q")
_INT32: Final = struct.Struct("<i")


def group_hash(topics: Iterable[str], image: MetadataImage) -> int:
    """Return the hash as a signed 64-bit number."""
    found = [image.topics[name] for name in sorted(topics) if name in image.topics]
    if not found:
        return 0
    hashes = [_HASH.pack(_topic_hash(each.topic_id, each.name, len(each.partitions))) for each in found]
    return _signed(xxhash.xxh3_64_intdigest(b"".join(hashes)))


@lru_cache(maxsize=10_000)
def _topic_hash(topic_id: bytes, name: str, partitions: int) -> int:
    text = name.encode("utf-16-le", "surrogatepass")
    return xxhash.xxh3_64_intdigest(
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
