"""The records that caused the refusal of a batch, which Produce answers contain from version 8 on.

A producer fails those records with their own message, and the others of the batch with that of the batch. The records
are examined only after a batch is refused. Source: Kafka LogValidator.ApiRecordError, ProduceResponse.RecordError.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.records.reader import read_records
from barnabas.protocol.records.record import Record
from barnabas.protocol.topic_partition import TopicPartition

RECORDS_MAX: Final = 100
"""At most so many records are listed: a batch may have tens of thousands."""


class Fault(NamedTuple):
    """What is wrong with one record."""

    code: ErrorCode
    text: str


def refusal_of_records(
    topic_partition: TopicPartition, batch: RecordBatch, fault_of: Callable[[Record], Fault | None]
) -> BrokerError:
    """Return the error for a whole batch, with the index of each record for which `fault_of` returns a fault.

    INVALID_TIMESTAMP if any record has such a fault, otherwise INVALID_RECORD.
    """
    records = read_records(batch)
    found = [(index, fault_of(record)) for index, record in enumerate(records)]
    faults = [(index, fault) for index, fault in found if fault is not None]
    has_timestamps = any(fault.code is ErrorCode.INVALID_TIMESTAMP for _, fault in faults)
    code = ErrorCode.INVALID_TIMESTAMP if has_timestamps else ErrorCode.INVALID_RECORD
    first = next((fault.text for _, fault in faults if fault.code is code), "of its header")
    return BrokerError(
        code,
        f"{topic_partition}: {len(faults)} of {len(records)} records are refused: {first}",
        tuple((index, fault.text) for index, fault in faults[:RECORDS_MAX]),
    )
