"""Recompresses a batch with another codec, for a topic whose compression.type is not `producer`.

The header keeps everything but size, codec and CRC, and the records keep every byte: they are decompressed and
compressed, not decoded. Source: Kafka's LogValidator, which rebuilds record by record.
"""

from __future__ import annotations

from barnabas.protocol.compression import Codec, compress
from barnabas.protocol.records.batch import RecordBatch
from barnabas.protocol.records.layout import CODEC_MASK, HEADER_SIZE
from barnabas.protocol.records.reader import MAX_DECOMPRESSED_BYTES, borrow_payload
from barnabas.protocol.records.seal import seal


def rebuild_batch(
    batch: RecordBatch,
    codec: Codec,
    *,
    level: int | None = None,
    max_decompressed_bytes: int = MAX_DECOMPRESSED_BYTES,
) -> bytearray:
    """Return the batch recompressed with `codec` in a new, writable buffer. Does not check the records.

    Raises DecompressionError, or InvalidRecordError for an unknown codec in the batch.
    """
    rebuilt = bytearray(HEADER_SIZE)
    rebuilt += compress(codec, borrow_payload(batch, max_decompressed_bytes, as_kafka=True), level)
    fields = (
        batch.attributes & ~CODEC_MASK | codec,
        batch.last_offset_delta,
        batch.base_timestamp,
        batch.max_timestamp,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        batch.record_count,
    )
    seal(rebuilt, batch.base_offset, batch.partition_leader_epoch, fields)
    return rebuilt
