"""Which records were why a batch was refused: what Produce tells a client from version 8 on.

A producer then fails those records with their own sentence, and the others as their neighbours. Looked for only once a
batch is refused, record by record. Source: Kafka LogValidator.ApiRecordError, ProduceResponse.RecordError.
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
"""More are not named: a batch may have tens of thousands."""


def refusal_of_records(
    code: ErrorCode, message: str, batch: RecordBatch, fault_of: Callable[[Record], str | None]
) -> BrokerError:
    """The refusal of a whole batch, with `fault_of` each record that has one."""
    faults = ((index, fault_of(record)) for index, record in enumerate(read_records(batch)))
    named = islice(((index, fault) for index, fault in faults if fault is not None), RECORDS_MAX)
    return BrokerError(code, message, tuple(named))
