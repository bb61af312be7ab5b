"""Blocks of 1,000 producer ids, allocated in the metadata log. No id is ever used twice.

A ProducerIds record holds the first id of the next block; it is durable before the first id of its block is used.
After a crash the unused rest of a block is lost: ids are int64. Source: Kafka ProducerIdControlManager,
ProducerIdsBlock.
"""

from __future__ import annotations

from barnabas.broker.metadata.image import MetadataImage
from barnabas.broker.metadata.plan import Plan
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.metadata.records import ProducerIdsRecord

BLOCK_SIZE = 1000

SKIPPED_BY_TAKEOVER = 1000 * BLOCK_SIZE
"""More ids than a broker hands out between its standby's last copy of the metadata and its loss."""

_MAX_PRODUCER_ID = 2**63 - 1
_NO_BROKER_EPOCH = -1


def plan_producer_id_block(image: MetadataImage, *, node_id: int) -> Plan[range]:
    """Plan the next block, the only result. Raises BrokerError when the ids are exhausted."""
    first = image.next_producer_id
    following = first + BLOCK_SIZE
    if following > _MAX_PRODUCER_ID:
        raise BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, "all producer ids have been handed out")
    return Plan([range(first, following)], [ProducerIdsRecord(node_id, _NO_BROKER_EPOCH, following)])


def skipped_ids_record(image: MetadataImage, *, node_id: int) -> ProducerIdsRecord:
    """Return the record of a takeover: the lost broker may have handed out ids of blocks that were not copied."""
    following = min(image.next_producer_id + SKIPPED_BY_TAKEOVER, _MAX_PRODUCER_ID)
    return ProducerIdsRecord(node_id, _NO_BROKER_EPOCH, following)
