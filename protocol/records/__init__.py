"""Record batches of version 2: views, checks, reading, building and patching.

Names are Kafka's. The per-record work is done by the kernels, compiled if possible (kernels/kernel.py).
"""

from barnabas.protocol.compression import Codec
from barnabas.protocol.errors import DecompressionError
from barnabas.protocol.records.batch import BatchIterator, RecordBatch, iter_batches
from barnabas.protocol.records.builder import RecordBatchBuilder
from barnabas.protocol.records.errors import CorruptRecordError, InvalidRecordError, UnsupportedMagicError
from barnabas.protocol.records.kernels.kernel import KERNEL, find_batch, murmur2
from barnabas.protocol.records.layout import (
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_V2,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TimestampType,
)
from barnabas.protocol.records.reader import (
    MAX_DECOMPRESSED_BYTES,
    check_records,
    find_record_by_timestamp,
    first_record_with_max_timestamp,
    read_records,
)
from barnabas.protocol.records.rebuild import rebuild_batch
from barnabas.protocol.records.record import Headers, Record, RecordsSummary

__all__ = [
    "HEADER_SIZE",
    "KERNEL",
    "LOG_OVERHEAD",
    "MAGIC_V2",
    "MAX_DECOMPRESSED_BYTES",
    "NO_PARTITION_LEADER_EPOCH",
    "NO_PRODUCER_EPOCH",
    "NO_PRODUCER_ID",
    "NO_SEQUENCE",
    "NO_TIMESTAMP",
    "BatchIterator",
    "Codec",
    "CorruptRecordError",
    "DecompressionError",
    "Headers",
    "InvalidRecordError",
    "Record",
    "RecordBatch",
    "RecordBatchBuilder",
    "RecordsSummary",
    "TimestampType",
    "UnsupportedMagicError",
    "check_records",
    "find_batch",
    "find_record_by_timestamp",
    "first_record_with_max_timestamp",
    "iter_batches",
    "murmur2",
    "read_records",
    "rebuild_batch",
]
