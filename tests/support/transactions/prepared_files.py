"""A prepared transaction in the files of a stopped broker, Barnabas or Kafka: decided, but without its markers.

A broker leaves it only if it is killed between two writes, which no signal can hit reliably.
"""

from __future__ import annotations

import time
from pathlib import Path

from barnabas.broker.transactions.checks import ProducerIdAndEpoch
from barnabas.broker.transactions.outcomes import end
from barnabas.broker.transactions.records import decode_metadata, encode_metadata
from barnabas.protocol.records import RecordBatchBuilder, iter_batches, read_records
from barnabas.protocol.transactions.records import TransactionLogKey


def prepare_commit(log_dir: Path, transactional_id: str, *, transaction_version: int) -> None:
    """Append the decision to commit the id's open transaction to `__transaction_state-0`, as its coordinator would."""
    path = max((log_dir / "__transaction_state-0").glob("*.log"))
    key = TransactionLogKey(transactional_id).to_bytes()
    value, next_offset, epoch = None, 0, 0
    for batch in iter_batches(path.read_bytes()):
        next_offset, epoch = batch.next_offset, batch.partition_leader_epoch
        for record in read_records(batch):
            if record.key == key:
                value = record.value
    assert value is not None, f"{path} has no state of {transactional_id}"
    current = decode_metadata(transactional_id, value)
    prepared = end(
        current,
        ProducerIdAndEpoch(current.producer_id, current.producer_epoch),
        is_commit=True,
        version=min(current.client_version, transaction_version),
        new_producer_id=None,
        now_ms=time.time_ns() // 1_000_000,
    )
    assert prepared is not None
    builder = RecordBatchBuilder(max_bytes=1 << 20, base_offset=next_offset, partition_leader_epoch=epoch)
    assert builder.append(prepared.update_ms, key, encode_metadata(prepared, transaction_version))
    with path.open("ab") as file:
        file.write(builder.build())
