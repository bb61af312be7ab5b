"""The log of a partition that is promoted: is cut where its promotion says, and gets the missing end markers.

Repeating it after a crash drops what the first attempt wrote from `copied_end` on, and writes the same again. What is
dropped is kept in a file: a standby that takes over may have copied records of clients behind the markers, without the
news that the promotion was finished. Blocks: the functions run on threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from barnabas.broker.mirrors.promotion.evidence import open_entries
from barnabas.broker.storage.files.failpoints import failpoint
from barnabas.broker.storage.log.append import TransactionEnd
from barnabas.broker.storage.producers.entry import MAX_EPOCH
from barnabas.protocol.mirrors.promotion import PartitionPromotion
from barnabas.protocol.records.end_marker import EndMarker

if TYPE_CHECKING:
    from collections.abc import Collection

    from barnabas.broker.mirrors.copied_log import CopiedLog
    from barnabas.broker.storage.log.partition_log import PartitionLog

_ANY_TRANSACTION_VERSION: Final = 0
"""Of the markers: their producers' version is not known, and the older rules accept both kinds of epochs."""


def settle_log(
    log: PartitionLog, copied: CopiedLog, planned: PartitionPromotion, commits: Collection[int], leader_epoch: int
) -> PartitionPromotion:
    """Cut the log to `copied_end`, end its open transactions and make it durable; return what has been done.

    Transactions of the producers in `commits` are committed, all others aborted. Markers have the epoch after the
    data's, which ends the producer's session in this log. Raises BrokerError, StorageError, OSError.
    """
    if log.log_end_offset > planned.copied_end:
        copied.cut_for_promotion(planned.copied_end)
    failpoint("promotion.cut")
    committed = aborted = 0
    for entry in open_entries(log):
        is_commit = entry.producer_id in commits
        marker = EndMarker(is_commit, max(entry.coordinator_epoch, 0))
        epoch = min(entry.epoch + 1, MAX_EPOCH)
        end = TransactionEnd(entry.producer_id, epoch, marker, _ANY_TRANSACTION_VERSION)
        log.append_marker(end, leader_epoch=leader_epoch)
        failpoint("promotion.marker")
        committed += is_commit
        aborted += not is_commit
    if log.latest_leader_epoch != leader_epoch:
        log.assign_epoch_start_offset(leader_epoch, log.log_end_offset)
    log.flush()
    return planned._replace(end=log.log_end_offset, committed=committed, aborted=aborted)
