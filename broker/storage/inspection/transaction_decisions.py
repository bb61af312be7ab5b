"""Decisions of Kafka's transaction coordinator, read from the `__transaction_state` partitions of data directories.

The last record of a key counts; a null value deletes it. A transaction with status PrepareCommit is committed: its
producer has received or will receive the confirmation, and only the markers are missing.
The codecs are those of `protocol.transactions`.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from barnabas.broker.storage.inspection.file_types import FileType, known_files
from barnabas.broker.storage.inspection.log_walk import LogWalk, StoredBatch
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.records.reader import read_records
from barnabas.protocol.topic_name import TRANSACTION_TOPIC
from barnabas.protocol.topic_partition import TopicPartition
from barnabas.protocol.transactions.records import TransactionLogValue, transactional_id_of

ONGOING = 1
PREPARE_COMMIT = 2
STATUS_NAMES = {
    0: "Empty",
    ONGOING: "Ongoing",
    PREPARE_COMMIT: "PrepareCommit",
    3: "PrepareAbort",
    4: "CompleteCommit",
    5: "CompleteAbort",
    6: "Dead",
    7: "PrepareEpochFence",
}

_UNFINISHED = frozenset({ONGOING, PREPARE_COMMIT, 3, 7})


class Decision(NamedTuple):
    """Last state of a transactional id. `start_ms`: -1 without a transaction."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    status: int
    timeout_ms: int
    start_ms: int
    partitions: frozenset[TopicPartition]

    @property
    def is_commit(self) -> bool:
        """Whether the transaction is committed and its markers may still be missing."""
        return self.status == PREPARE_COMMIT

    @property
    def is_open(self) -> bool:
        """Whether the transaction is not decided yet."""
        return self.status == ONGOING

    @property
    def is_unfinished(self) -> bool:
        """Whether the transaction is open, or markers of its decision may be missing."""
        return self.status in _UNFINISHED

    @property
    def status_name(self) -> str:
        """The status as printed by Kafka's tools."""
        return STATUS_NAMES.get(self.status, str(self.status))


def transaction_decisions(data_directories: Iterable[Path]) -> dict[int, Decision]:
    """Return the last decision per producer id. Raises OSError, DecodeError for an unreadable state."""
    found: dict[str, Decision] = {}
    for directory in data_directories:
        for partition in sorted(directory.glob(f"{TRANSACTION_TOPIC}-[0-9]*")):
            if partition.name.removeprefix(f"{TRANSACTION_TOPIC}-").isdigit():
                _read_partition(partition, found)
    return {decision.producer_id: decision for decision in found.values()}


def _read_partition(directory: Path, found: dict[str, Decision]) -> None:
    logs = (known for known in known_files(directory) if known.type is FileType.LOG and not known.stage)
    for known in sorted(logs, key=lambda known: known.offset):
        for step in LogWalk(known.path):
            if step.fault is not None:
                return  # recovery truncates here
            if not isinstance(step, StoredBatch) or step.batch.is_control:
                continue
            for record in read_records(step.batch):
                _apply(record.key, record.value, found, f"{known.path} at offset {record.offset}")


def _apply(key: bytes | None, value: bytes | None, found: dict[str, Decision], where: str) -> None:
    try:
        if key is None:
            raise DecodeError("the record has no key")
        name = transactional_id_of(key)
        if name is None:
            return  # a key of another, unknown type
        if value is None:
            found.pop(name, None)
            return
        state = TransactionLogValue.from_bytes(value)
    except DecodeError as error:
        raise DecodeError(f"{where}: {error}") from error
    found[name] = Decision(
        name,
        state.producer_id,
        state.producer_epoch,
        state.transaction_status,
        state.transaction_timeout_ms,
        state.transaction_start_timestamp_ms,
        frozenset(TopicPartition(*each) for each in state.partitions),
    )
