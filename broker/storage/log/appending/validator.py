"""Validates a client's batch before it is stored, and rewrites it as the topic's configuration requires.

The checks in their order, with the wire code of each:
    CORRUPT_MESSAGE (2)        a size below a header's; a magic that no version has; a wrong CRC
    INVALID_RECORD (87)        no bytes, or fewer than the batch claims (after code 2 the client would send the same
                               again); magic 0 or 1; bytes after the batch; base offset other than 0; a control bit; a
                               delete horizon (Kafka stores it, but the cleaner would trust it and could erase
                               tombstones); offsets that do not fit the count; a producer id without a sequence;
                               compressed records that Kafka's decoders do not read; any record that breaks the
                               format; a record without a key on a compacted topic
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED (53)   a transactional batch in a request without a transactional id
    MESSAGE_TOO_LARGE (10)     more bytes than max.message.bytes, as sent or as recompressed
    INVALID_TIMESTAMP (32)     a record too old or too far in the future (CreateTime); a batch with the timestamp type
                               LogAppendTime

The header is read by one struct call and kept in local variables: this runs for every request, in the event loop, and
costs about 1 us for a small batch with the compiled kernel. Source: Kafka LogValidator, UnifiedLog.
"""

from __future__ import annotations

import struct
from typing import NamedTuple, NoReturn

from barnabas.broker.storage.log.append import LargeBatchError
from barnabas.broker.storage.log.appending.record_refusals import Fault, refusal_of_records
from barnabas.config.log_config import LogConfig
from barnabas.protocol.compression import CODECS, Codec
from barnabas.protocol.crc32c import crc32c
from barnabas.protocol.errors import BrokerError, DecompressionError, DecompressionLimitError, ErrorCode
from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.records.errors import InvalidRecordError
from barnabas.protocol.records.kernels.kernel import check_payload
from barnabas.protocol.records.layout import (
    ATTRIBUTES_POSITION,
    CODEC_MASK,
    CONTROL_MASK,
    DELETE_HORIZON_MASK,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    MAGIC_V2,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
    TimestampType,
)
from barnabas.protocol.records.reader import MAX_DECOMPRESSED_BYTES, check_records
from barnabas.protocol.records.rebuild import rebuild_batch
from barnabas.protocol.records.record import Record
from barnabas.protocol.topic_partition import TopicPartition

_unpack_header = HEADER.unpack_from
_MIN_BATCH_SIZE = LOG_OVERHEAD + 14
"""That of the smallest message of format 0."""
_REFUSED_MASK = CONTROL_MASK | DELETE_HORIZON_MASK
_PLAIN_MASK = CODEC_MASK | TIMESTAMP_TYPE_MASK


class CheckedBatch(NamedTuple):
    """A valid batch, and the header fields that an append needs.

    `data` is the client's own buffer, patched in place, unless the topic recompresses.
    """

    data: memoryview | bytearray
    length: int
    last_offset_delta: int
    record_count: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    log_append_time_ms: int
    is_transactional: bool


_new_tuple = tuple.__new__


def stamp_again(checked: CheckedBatch, now_ms: int) -> CheckedBatch:
    """Give a batch that was checked earlier the log append time of its append; others stay as they are."""
    if checked.log_append_time_ms < 0:
        return checked
    RecordBatch(checked.data).stamp_timestamps(TimestampType.LOG_APPEND_TIME, now_ms)
    return checked._replace(max_timestamp=now_ms, log_append_time_ms=now_ms)


class ClientBatchRules:
    """The rules of one topic; `check` applies them. Replaced as a whole when the topic's configuration changes.

    `allows_transactions`: the rules for requests with a transactional id.
    """

    __slots__ = (
        "_after_max_ms",
        "_before_max_ms",
        "_codec",
        "_compact",
        "_level",
        "_log_append_time",
        "_max_message_bytes",
        "_refused_mask",
        "_topic_partition",
    )

    def __init__(
        self, topic_partition: TopicPartition, config: LogConfig, *, allows_transactions: bool = False
    ) -> None:
        self._refused_mask = _REFUSED_MASK if allows_transactions else _REFUSED_MASK | TRANSACTIONAL_MASK
        self._topic_partition = topic_partition
        self._max_message_bytes = config.max_message_bytes
        self._compact = config.needs_keys
        self._log_append_time = config.timestamp_type == "LogAppendTime"
        self._before_max_ms = config.timestamp_before_max_ms
        self._after_max_ms = config.timestamp_after_max_ms
        self._codec, self._level = _target_codec(config)

    def check(
        self, records: memoryview, now_ms: int, max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES
    ) -> CheckedBatch:
        """Validate one batch and patch its timestamps. Raises BrokerError with the codes listed above.

        Raises LargeBatchError for valid headers with records above `max_decompressed_bytes`, if that is below the
        usual limit.
        """
        try:
            (
                base_offset,
                length,
                _,
                magic,
                crc,
                attributes,
                last_offset_delta,
                base_timestamp,
                max_timestamp,
                producer_id,
                producer_epoch,
                base_sequence,
                record_count,
            ) = _unpack_header(records)
        except struct.error:
            self._refuse_header(records)
        if (
            base_offset
            or magic != MAGIC_V2
            or length + LOG_OVERHEAD != len(records)
            or length + LOG_OVERHEAD > self._max_message_bytes
            or crc32c(records[ATTRIBUTES_POSITION:]) != crc
            or attributes & self._refused_mask
            or record_count <= 0
            or last_offset_delta != record_count - 1
            or (producer_id >= 0 and base_sequence < 0)
        ):
            self._refuse_header(records)
        codec = self._codec
        if attributes & _PLAIN_MASK or (codec is not None and codec is not Codec.NONE):
            return self._check_uncommon(records, now_ms, max_decompressed_bytes)
        try:
            found_max, _, found_min, null_keys, _ = check_payload(
                records[HEADER_SIZE:], record_count, last_offset_delta, base_timestamp, True
            )
        except InvalidRecordError as error:
            raise self._refusal(ErrorCode.INVALID_RECORD, str(error)) from error
        if null_keys and self._compact:
            self._refuse_records(RecordBatch(records), now_ms)
        log_append_time_ms = -1
        if self._log_append_time:
            RecordBatch(records).stamp_timestamps(TimestampType.LOG_APPEND_TIME, now_ms)
            max_timestamp = log_append_time_ms = now_ms
        else:
            if found_max - now_ms > self._after_max_ms or (
                now_ms - found_min > self._before_max_ms and found_min != NO_TIMESTAMP
            ):
                self._refuse_records(RecordBatch(records), now_ms)
            if found_max != max_timestamp:
                RecordBatch(records).stamp_timestamps(TimestampType.CREATE_TIME, found_max)
                max_timestamp = found_max
        checked: CheckedBatch = _new_tuple(
            CheckedBatch,
            (
                records,
                length,
                last_offset_delta,
                record_count,
                max_timestamp,
                producer_id,
                producer_epoch,
                base_sequence,
                log_append_time_ms,
                attributes & TRANSACTIONAL_MASK != 0,
            ),
        )
        return checked

    def _check_uncommon(self, records: memoryview, now_ms: int, max_decompressed_bytes: int) -> CheckedBatch:
        """Check a batch that is compressed, will be, or has the timestamp type LogAppendTime."""
        batch = RecordBatch(records)
        try:
            source = batch.codec
            summary = check_records(batch, as_kafka=True, max_decompressed_bytes=max_decompressed_bytes)
        except DecompressionLimitError as error:
            if max_decompressed_bytes < MAX_DECOMPRESSED_BYTES:
                raise LargeBatchError from error
            raise self._refusal(ErrorCode.INVALID_RECORD, str(error)) from error
        except (InvalidRecordError, DecompressionError) as error:
            raise self._refusal(ErrorCode.INVALID_RECORD, str(error)) from error
        if summary.null_keys and self._compact:
            self._refuse_records(batch, now_ms)
        if batch.attributes & TIMESTAMP_TYPE_MASK and (self._log_append_time or summary.max_timestamp == NO_TIMESTAMP):
            self._refuse_records(batch, now_ms)
        if not self._log_append_time and (
            summary.max_timestamp - now_ms > self._after_max_ms
            or (summary.min_timestamp != NO_TIMESTAMP and now_ms - summary.min_timestamp > self._before_max_ms)
        ):
            self._refuse_records(batch, now_ms)
        data: memoryview | bytearray = records
        if self._codec is not None and self._codec is not source:
            data = rebuild_batch(batch, self._codec, level=self._level)
            if len(data) > self._max_message_bytes:
                raise self._refusal(
                    ErrorCode.MESSAGE_TOO_LARGE,
                    f"the batch has {len(data)} bytes as {self._codec.config_name}, "
                    f"max.message.bytes is {self._max_message_bytes}",
                )
            batch = RecordBatch(data)
        log_append_time_ms = -1
        if self._log_append_time:
            log_append_time_ms = now_ms
            batch.stamp_timestamps(TimestampType.LOG_APPEND_TIME, now_ms)
        else:
            batch.stamp_timestamps(TimestampType.CREATE_TIME, summary.max_timestamp)
        return CheckedBatch(
            data,
            batch.size_bytes - LOG_OVERHEAD,
            batch.last_offset_delta,
            batch.record_count,
            batch.max_timestamp,
            batch.producer_id,
            batch.producer_epoch,
            batch.base_sequence,
            log_append_time_ms,
            batch.is_transactional,
        )

    def _refuse_header(self, records: memoryview) -> NoReturn:
        """Raise the error of the first header rule, in Kafka's order, that the batch breaks."""
        present = len(records)
        if not present:
            # Not CORRUPT_MESSAGE: a client would send the same again.
            raise self._refusal(ErrorCode.INVALID_RECORD, "there must be one record batch, and there is none")
        if present < LOG_OVERHEAD:
            raise self._refusal(ErrorCode.INVALID_RECORD, f"{present} bytes cannot hold a header of {HEADER_SIZE}")
        batch_size = int.from_bytes(records[8:12], "big", signed=True) + LOG_OVERHEAD
        if batch_size < _MIN_BATCH_SIZE:
            raise self._refusal(ErrorCode.CORRUPT_MESSAGE, f"the batch claims {batch_size} bytes, fewer than a header")
        if present > MAGIC_POSITION and records[MAGIC_POSITION] > MAGIC_V2:
            raise self._refusal(ErrorCode.CORRUPT_MESSAGE, f"magic {records[MAGIC_POSITION]} is not {MAGIC_V2}")
        if batch_size > present:
            raise self._refusal(ErrorCode.INVALID_RECORD, f"the batch claims {batch_size} bytes, {present} were sent")
        if records[MAGIC_POSITION] != MAGIC_V2:
            raise self._refusal(ErrorCode.INVALID_RECORD, f"magic {records[MAGIC_POSITION]} is not {MAGIC_V2}")
        if batch_size < HEADER_SIZE:
            raise self._refusal(ErrorCode.CORRUPT_MESSAGE, f"the batch has {batch_size} bytes, fewer than a header")
        if batch_size < present:
            raise self._refusal(
                ErrorCode.INVALID_RECORD, f"{present - batch_size} bytes follow the batch; one batch is expected"
            )
        batch = RecordBatch(records)
        if batch.base_offset != 0:
            raise self._refusal(ErrorCode.INVALID_RECORD, f"base offset {batch.base_offset} is not 0")
        if batch_size > self._max_message_bytes:
            raise self._refusal(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"the batch has {batch_size} bytes, max.message.bytes is {self._max_message_bytes}",
            )
        computed = crc32c(records[ATTRIBUTES_POSITION:])
        if computed != batch.crc:
            raise self._refusal(ErrorCode.CORRUPT_MESSAGE, f"stored crc {batch.crc:#010x}, computed {computed:#010x}")
        if batch.record_count <= 0 or batch.last_offset_delta != batch.record_count - 1:
            raise self._refusal(
                ErrorCode.INVALID_RECORD,
                f"{batch.record_count} records do not fit a last offset delta of {batch.last_offset_delta}",
            )
        if batch.is_control:
            raise self._refusal(ErrorCode.INVALID_RECORD, "a client must not write control records")
        if batch.has_delete_horizon:
            raise self._refusal(ErrorCode.INVALID_RECORD, "a client must not set a delete horizon")
        if batch.is_transactional and self._refused_mask & TRANSACTIONAL_MASK:
            raise self._refusal(
                ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                "a transactional batch in a request without a transactional id",
            )
        raise self._refusal(
            ErrorCode.INVALID_RECORD,
            f"producer id {batch.producer_id} without a sequence (base sequence {batch.base_sequence})",
        )

    def _refuse_records(self, batch: RecordBatch, now_ms: int) -> NoReturn:
        """Raise the error of a batch with records that the topic does not take."""
        low, high = now_ms - self._before_max_ms, now_ms + self._after_max_ms

        def fault_of(record: Record) -> Fault | None:
            if self._compact and record.key is None:
                return Fault(ErrorCode.INVALID_RECORD, "a compacted topic cannot take a record without a key")
            if not self._log_append_time and record.timestamp != NO_TIMESTAMP:
                if low <= record.timestamp <= high:
                    return None
                text = f"timestamp {record.timestamp} is outside of [{low}, {high}]"
                return Fault(ErrorCode.INVALID_TIMESTAMP, text)
            if batch.attributes & TIMESTAMP_TYPE_MASK:
                text = "a producer must not set the timestamp type LogAppendTime"
                return Fault(ErrorCode.INVALID_TIMESTAMP, text)
            return None

        raise refusal_of_records(self._topic_partition, batch, fault_of)

    def _refusal(self, code: ErrorCode, reason: str) -> BrokerError:
        return BrokerError(code, f"{self._topic_partition}: {reason}")


def _target_codec(config: LogConfig) -> tuple[Codec | None, int | None]:
    """Return the codec that stored batches must have (None: as the producer sent them) and its level."""
    name = config.compression_type
    if name == "producer":
        return None, None
    if name == "uncompressed":
        return Codec.NONE, None
    codec = next(codec for codec in CODECS if codec.config_name == name)
    levels = {
        Codec.GZIP: config.compression_gzip_level if config.compression_gzip_level != -1 else None,
        Codec.LZ4: config.compression_lz4_level,
        Codec.ZSTD: config.compression_zstd_level,
    }
    return codec, levels.get(codec)
