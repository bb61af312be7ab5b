"""Layout of the record batch, version 2, on disk and on the wire. All integers are big-endian.

    position  size  field
           0     8  base_offset              offset of the first record; a client writes 0, the leader stamps it
           8     4  length                   bytes that follow this field
          12     4  partition_leader_epoch   stamped by the leader
          16     1  magic                    2
          17     4  crc                      CRC-32C of everything from `attributes` to the end
          21     2  attributes               bits 0-2 codec, 3 time type, 4 transactional, 5 control, 6 delete horizon
          23     4  last_offset_delta        last offset - base offset; survives compaction
          27     8  base_timestamp           base of the records' deltas; with bit 6 the delete horizon
          35     8  max_timestamp            of the records; under LogAppendTime the append time, for all of them
          43     8  producer_id              -1 without idempotence
          51     2  producer_epoch           -1 without idempotence
          53     4  base_sequence            -1 without idempotence
          57     4  record_count
          61     -  the records one after the other, compressed together by the codec

    record := varint size of the rest | int8 attributes (unused) | varlong timestamp - base_timestamp
              | varint offset - base_offset | varint key size (-1 = null), key | varint value size (-1 = null), value
              | varint header count | per header: varint key size, key (UTF-8), varint value size (-1 = null), value

Source: Kafka's DefaultRecordBatch and DefaultRecord.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final

LOG_OVERHEAD: Final = 12
"""Base offset and length: the bytes that `length` does not count."""

HEADER_SIZE: Final = 61

MAGIC_V2: Final = 2

NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_TIMESTAMP: Final = -1
NO_PARTITION_LEADER_EPOCH: Final = -1

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
assert HEADER.size == HEADER_SIZE

MAGIC_POSITION: Final = 16
CRC_POSITION: Final = 17
ATTRIBUTES_POSITION: Final = 21
MAX_TIMESTAMP_POSITION: Final = 35

CODEC_MASK: Final = 0x07
TIMESTAMP_TYPE_MASK: Final = 0x08
TRANSACTIONAL_MASK: Final = 0x10
CONTROL_MASK: Final = 0x20
DELETE_HORIZON_MASK: Final = 0x40

MIN_RECORD_SIZE: Final = 7
"""Smallest record: size, attributes, two deltas, null key, null value and header count 0, one byte each."""


class TimestampType(IntEnum):
    """Whether a batch's timestamps are the producer's or the broker's (`message.timestamp.type`)."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1
