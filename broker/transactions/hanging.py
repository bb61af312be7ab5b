"""Transactions that nothing will end: open in a partition, and not part of a transaction of any transactional id.

A power cut leaves them where markers were lost and the completed state was not (flush.messages), as does the deletion
of `__transaction_state`. read_committed consumers wait before them until an administrator writes the marker: whether
the transaction was committed is not known any more.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from barnabas.broker.printable import printable

if TYPE_CHECKING:
    from barnabas.broker.partitions.registry import PartitionRegistry
    from barnabas.broker.transactions.metadata import PartitionKey, TransactionMetadata

logger = logging.getLogger(__name__)


def warn_of_hanging(partitions: PartitionRegistry, states: Iterable[TransactionMetadata]) -> None:
    """Log one line if transactions hang. Called once the states of all transactional ids are loaded."""
    unstable = {key: producers for key, producers in partitions.open_transactions() if producers}
    if not unstable:
        return
    ended_later = {
        (key, metadata.producer_id)
        for metadata in states
        if not metadata.state.has_no_transaction
        for key in metadata.partitions
    }
    hanging = list(_without(unstable, ended_later))
    if not hanging:
        return
    (topic, number), producer_id = hanging[0]
    logger.warning(
        "transactions hang in %d partitions: no transactional id has them, and read_committed consumers wait before"
        " them, the first is of producer_id=%d in %s-%d; `barnabas transaction find-hanging --longer-than 0s` lists"
        " them, `barnabas transaction abort --topic TOPIC --partition N` aborts one",
        len({key for key, _ in hanging}),
        producer_id,
        printable(topic),
        number,
    )


def _without(
    unstable: dict[PartitionKey, list[int]], ended_later: set[tuple[PartitionKey, int]]
) -> Iterator[tuple[PartitionKey, int]]:
    for key, producers in unstable.items():
        for producer_id in producers:
            if (key, producer_id) not in ended_later:
                yield key, producer_id
