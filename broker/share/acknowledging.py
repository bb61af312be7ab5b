"""Acknowledgements of a request: which are refused, and the answers to the others.

INVALID_REQUEST for a partition with offsets that are not in order, with a wrong number of types, with an unknown type,
or with RENEW in a request that is no renewal. Source: Kafka's KafkaApis.validateAcknowledgementBatches, which lets a
batch begin at the last offset of the one before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from barnabas.broker.network.deferred import Deferred
from barnabas.broker.share.partition.share_partition import REJECT, RENEW, Acknowledgement
from barnabas.protocol.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from barnabas.broker.share.partitions import SharePartitions
    from barnabas.protocol.messages.share.share_acknowledge import AcknowledgementBatch, AcknowledgeTopic

Acknowledged = dict[tuple[bytes, int], BrokerError | None]
"""The error of each partition, by topic id and number."""


def acknowledge(
    shares: SharePartitions,
    group_id: str,
    member_id: str,
    topics: Iterable[AcknowledgeTopic],
    *,
    ensure_usable: Callable[[bytes, int], None],
    may_renew: bool,
    is_renewal: bool,
) -> Deferred[Acknowledged]:
    """Carry out the acknowledgements. `ensure_usable` raises BrokerError for what the client may not use."""
    errors: Acknowledged = {}
    answer: Deferred[Acknowledged] = Deferred()
    waits: list[tuple[tuple[bytes, int], Deferred[BrokerError | None]]] = []
    for topic in topics:
        for each in topic.partitions:
            key = topic.topic_id, each.partition
            try:
                given = _checked(each.batches, may_renew=may_renew, is_renewal=is_renewal)
                ensure_usable(*key)
                if not given:
                    errors[key] = None
                    continue
                served = shares.find(group_id, *key)
                if served is None:
                    raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "nothing was acquired of the partition")
            except BrokerError as error:
                errors[key] = error
            else:
                waits.append((key, served.acknowledge(member_id, given)))
    left = len(waits)
    if not left:
        answer.resolve(errors)

    def acknowledged(key: tuple[bytes, int], error: BrokerError | None) -> None:
        nonlocal left
        errors[key] = error
        left -= 1
        if left == 0:
            answer.resolve(errors)

    for key, wait in waits:
        wait.then(lambda error, key=key: acknowledged(key, error))  # type: ignore[misc]
    return answer


def _checked(batches: Sequence[AcknowledgementBatch], *, may_renew: bool, is_renewal: bool) -> list[Acknowledgement]:
    """Return acknowledgements that are in order. Raises BrokerError."""
    highest = RENEW if may_renew else REJECT
    before = -1
    for each in batches:
        offsets = each.last_offset - each.first_offset + 1
        if (
            offsets < 1
            or each.first_offset <= before
            or not each.types
            or (len(each.types) > 1 and len(each.types) != offsets)
            or not all(0 <= kind <= highest for kind in each.types)
            or (RENEW in each.types and not is_renewal)
        ):
            raise BrokerError(ErrorCode.INVALID_REQUEST, "the acknowledgements are invalid")
        before = each.last_offset
    return [Acknowledgement(each.first_offset, each.last_offset, each.types) for each in batches]
