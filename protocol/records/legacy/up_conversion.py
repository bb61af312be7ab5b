"""Converts old message sets to record batches of version 2 with the same offsets, keys, values and timestamps.

A wrapper becomes one batch with its codec; messages without a codec are collected up to BATCH_BYTES, as long as their
timestamp type (under LogAppendTime: their timestamp) is the same. Batches of version 2 in between are copied. Format 0
has no timestamps: they become -1, CreateTime. Leader epoch, producer id and sequence are -1. The result is bounded by
`max_bytes`, so a wrapper that would not fit is left for the next call. Source: Kafka RecordsUtil (which converts down,
at fetch; Kafka converts up only at produce, in LogValidator).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from barnabas.protocol.compression import Codec
from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.records.builder import RecordBatchBuilder
from barnabas.protocol.records.errors import CorruptRecordError
from barnabas.protocol.records.layout import HEADER_SIZE, LOG_OVERHEAD, MAGIC_POSITION, MAGIC_V2, TimestampType
from barnabas.protocol.records.legacy.messages import LegacyMessage, read_legacy_records
from barnabas.protocol.records.reader import MAX_DECOMPRESSED_BYTES
from barnabas.protocol.records.record import Record

BATCH_BYTES: Final = 16 * 1024
"""Size of the batches of messages without a codec: the default of Kafka's producer."""

_MAX_DELTA: Final = 2**31 - 1
_UNLIMITED: Final = 1 << 62


class _LooseRecord(NamedTuple):
    """A message's record, whose key and value are views of the message."""

    offset: int
    timestamp: int
    key: memoryview | None
    value: memoryview | None


def convert_to_v2(
    data: memoryview,
    max_bytes: int,
    *,
    at_least_one_batch: bool = True,
    max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES,
) -> bytes:
    """Convert the complete entries of `data`, which starts with one, to version 2.

    Returns at most `max_bytes`, except for a first batch if `at_least_one_batch`. Raises CorruptRecordError if the
    first entry is damaged; at a later one the conversion stops before it, so that the good entries are read first.
    """
    work = _Conversion(max_bytes, at_least_one_batch, max_decompressed_bytes)
    position = 0
    try:
        while not work.is_full and len(data) - position > MAGIC_POSITION:
            length = int.from_bytes(data[position + 8 : position + LOG_OVERHEAD], "big", signed=True)
            if length + LOG_OVERHEAD > len(data) - position:
                break
            if data[position + MAGIC_POSITION] == MAGIC_V2:
                batch = RecordBatch(data, position)
                work.add_batch(batch.bytes)
                position += batch.size_bytes
            else:
                message = LegacyMessage(data, position)
                message.ensure_valid()
                work.add_message(message)
                position += message.size_bytes
    except CorruptRecordError:
        work.end_run()
        if not work.output:
            raise
    else:
        work.end_run()
    return bytes(work.output)


class _Conversion:
    """The output so far, and the run of messages being collected."""

    def __init__(self, max_bytes: int, at_least_one_batch: bool, max_decompressed_bytes: int) -> None:
        self.output = bytearray()
        self.is_full = False
        self._max_bytes = max_bytes
        self._at_least_one_batch = at_least_one_batch
        self._max_decompressed_bytes = max_decompressed_bytes
        self._run: RecordBatchBuilder | None = None

    def add_batch(self, batch: bytes | memoryview) -> None:
        """Take a complete batch of version 2, if there is room after the current run."""
        if self.end_run():
            self._add(batch)

    def add_message(self, message: LegacyMessage) -> None:
        """Take a message or a wrapper."""
        if message.is_wrapper:
            if self.end_run():
                self._add(self._batch_of(message))
            return
        run = self._run
        record = _LooseRecord(message.offset, message.timestamp, *message.key_and_value())
        if run is not None and _belongs(run, message) and _append(run, record):
            return
        if self.end_run():
            room = max(min(BATCH_BYTES, self._max_bytes - len(self.output)), HEADER_SIZE)
            run = _builder(message, message.offset, Codec.NONE, room)
            _append(run, record)
            self._run = run

    def end_run(self) -> bool:
        """Add the collected messages. Return whether there is room after them."""
        run, self._run = self._run, None
        if run is not None:
            self._add(run.build())
        return not self.is_full

    def _batch_of(self, wrapper: LegacyMessage) -> bytes:
        records = read_legacy_records(wrapper, max_decompressed_bytes=self._max_decompressed_bytes)
        base_offset = records[0].offset
        if records[-1].offset - base_offset > _MAX_DELTA:
            raise CorruptRecordError(f"message of offset {wrapper.offset}: it holds offset {base_offset}, too far off")
        builder = _builder(wrapper, base_offset, wrapper.codec, _UNLIMITED)
        for record in records:
            _append(builder, record)
        return builder.build()

    def _add(self, batch: bytes | memoryview) -> None:
        is_first = self._at_least_one_batch and not self.output
        if self.is_full or (len(self.output) + len(batch) > self._max_bytes and not is_first):
            self.is_full = True
        else:
            self.output += batch


def _belongs(run: RecordBatchBuilder, message: LegacyMessage) -> bool:
    """Return whether one batch can hold the message with those before it."""
    if message.timestamp_type is not run.timestamp_type or message.offset - run.base_offset > _MAX_DELTA:
        return False
    return run.timestamp_type is TimestampType.CREATE_TIME or message.timestamp == run.append_timestamp


def _append(builder: RecordBatchBuilder, record: Record | _LooseRecord) -> bool:
    """Return whether there was room. Raises CorruptRecordError if an offset goes back or a timestamp is too far off."""
    try:
        return builder.append(record.timestamp, record.key, record.value, offset=record.offset)
    except ValueError as error:
        raise CorruptRecordError(f"message of offset {record.offset}: {error}") from error


def _builder(message: LegacyMessage, base_offset: int, codec: Codec, max_bytes: int) -> RecordBatchBuilder:
    return RecordBatchBuilder(
        codec,
        max_bytes=max_bytes,
        timestamp_type=message.timestamp_type,
        append_timestamp=message.timestamp,
        base_offset=base_offset,
    )
