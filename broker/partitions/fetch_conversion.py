"""Conversion of old message formats in a Fetch response to version 2, within the request's limit of bytes.

Kafka sends formats 0 and 1 as stored; here they are converted, so that a client needs to know one format. Sizes are
known only after the conversion: the parts are converted in the order of the response, each within what is left of the
limit, and a part without room is answered empty, as if it had not been read. Not for the event loop: a segment of small
messages takes milliseconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from barnabas.protocol.errors import BrokerError
from barnabas.protocol.messages.data.fetch import FetchPartitionResult
from barnabas.protocol.wire.pieces import NO_RECORDS, RecordBytes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from barnabas.broker.storage.log.readable_log import ReadableLog
    from barnabas.broker.storage.segment.old_format_slice import OldFormatSlice


class OldFormatPart(NamedTuple):
    """One partition's result whose records, read from `offset`, are to be converted."""

    result: FetchPartitionResult
    log: ReadableLog
    offset: int
    records: OldFormatSlice


def convert_parts(parts: Iterable[OldFormatPart], budget: int) -> None:
    """Put the converted records, or an error, into each part's result. `budget` is in bytes, for all parts."""
    for result, log, offset, records in parts:
        result.records = NO_RECORDS
        try:
            data = log.convert_old_format(offset, records, budget)
        except BrokerError as error:
            result.fail(error.code)
            continue
        if data:
            result.records = RecordBytes(data)
            budget = max(0, budget - len(data))
