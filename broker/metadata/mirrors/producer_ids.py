"""Producer ids beside those of mirrored batches.

A cluster with mirrors allocates ids from a range that depends on its cluster id, so that neither the ids of a source
(which begin at 0) nor those of another Barnabas with mirrors occur in it, except by chance: there are 2**20 ranges of
2**40 ids.
"""

from __future__ import annotations

from typing import Final

from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.plan import Plan
from barnabas.broker.metadata.view import MetadataView
from barnabas.protocol.crc32c import crc32c
from barnabas.protocol.metadata.records import ProducerIdsRecord

RANGE_IDS: Final = 2**40
_RANGES: Final = 2**20
_NO_BROKER_EPOCH: Final = -1


def own_range(cluster_id: str) -> range:
    """Return the producer ids of a cluster that has mirrors."""
    first = RANGE_IDS * (1 + crc32c(cluster_id.encode()) % _RANGES)
    return range(first, first + RANGE_IDS)


def lowest_producer_id(metadata: MetadataView) -> int:
    """Return the lowest producer id that may be handed out; a block taken before the first mirror has lower ones."""
    return own_range(metadata.cluster_id).start if metadata.image.mirrors.texts else 0


def plan_own_producer_ids(image: MetadataImage, *, node_id: int, cluster_id: str) -> Plan[int]:
    """Plan that new producer ids are of the cluster's own range; the next id is the only result."""
    return plan_producer_ids_from(image, own_range(cluster_id).start, node_id=node_id)


def plan_producer_ids_from(image: MetadataImage, first: int, *, node_id: int) -> Plan[int]:
    """Plan that new producer ids are at least `first`; the next id is the only result."""
    if image.next_producer_id >= first:
        return Plan([image.next_producer_id], [])
    return Plan([first], [ProducerIdsRecord(node_id, _NO_BROKER_EPOCH, first)])
