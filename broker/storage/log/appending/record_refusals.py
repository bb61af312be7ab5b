"""The records that caused the refusal of a batch, which Produce answers contain from version 8 on.

A producer fails those records with their own message, and the others of the batch with that of the batch. The records
are examined only after a batch is refused. Source: Kafka LogValidator.ApiRecordError, ProduceResponse.RecordError.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Final

from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.records.reader import read_records
from barnabas.protocol.records.record import Record

RECORDS_MAX: Final = 100
"""At most so many records are listed: a batch may have tens of thousands."""


def refusal_of_records(
    code: ErrorCode, message: str, batch: RecordBatch, fault_of: Callable[[Record], str | None]
) -> BrokerError:
    """Return the error for a whole batch, with the index and fault of each record for which `fault_of` returns one."""
    faults = ((index, fault_of(record)) for index, record in enumerate(read_records(batch)))
    named = islice(((index, fault) for index, fault in faults if fault is not None), RECORDS_MAX)
    return BrokerError(code, message, tuple(named))
