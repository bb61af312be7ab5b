"""Decisions of Kafka's transaction coordinator, read from the `__transaction_state` partitions of data directories.

    key    int16 version 0 | transactional id (int16 length, UTF-8)
    value  int16 version 0 or 1 | producer id int64 | producer epoch int16 | timeout int32 ms | status int8 | ...

The last record of a key counts; a null value deletes it. A transaction with status PrepareCommit is committed: its
producer has received or will receive the confirmation, and only the markers are missing.
Source: Kafka TransactionLogValue.json, TransactionState.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from struct import Struct
from typing import NamedTuple

from barnabas.broker.storage.inspection.file_types import FileType, known_files
from barnabas.broker.storage.inspection.log_walk import LogWalk, StoredBatch
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.records.reader import read_records

TRANSACTION_STATE_TOPIC = "__transaction_state"

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

_KEY_HEAD = Struct(">hh")
_VALUE_HEAD = Struct(">hqhib")
_NEWEST_VALUE = 1


class Decision(NamedTuple):
    """Last state of a transactional id."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    status: int

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
        for partition in sorted(directory.glob(f"{TRANSACTION_STATE_TOPIC}-[0-9]*")):
            if partition.name.removeprefix(f"{TRANSACTION_STATE_TOPIC}-").isdigit():
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
    if key is None or len(key) < _KEY_HEAD.size:
        raise DecodeError(f"{where}: a key of {len(key or b'')} bytes is not a transactional id's")
    version, length = _KEY_HEAD.unpack_from(key)
    if version != 0:
        return  # a key of another, unknown type
    name = key[_KEY_HEAD.size : _KEY_HEAD.size + length].decode("utf-8", errors="replace")
    if value is None:
        found.pop(name, None)
        return
    if len(value) < _VALUE_HEAD.size:
        raise DecodeError(f"{where}: a transaction's state has {len(value)} bytes")
    value_version, producer_id, epoch, _, status = _VALUE_HEAD.unpack_from(value)
    if not 0 <= value_version <= _NEWEST_VALUE:
        raise DecodeError(f"{where}: a transaction's state has version {value_version}, the newest known is 1")
    found[name] = Decision(name, producer_id, epoch, status)
