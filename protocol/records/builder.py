"""Builds one record batch, record by record, up to a size.

Records are written as they arrive into one buffer, after room for the header; `build` compresses them together and
writes the header. So an abandoned batch costs no compression, and the size limit counts the written bytes, scaled by
the ratio that the caller expects (as in Kafka's producer). Layout: layout.py. Source: Kafka's MemoryRecordsBuilder.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from barnabas.protocol.compression import Codec, compress
from barnabas.protocol.records.kernels.kernel import append_record, append_records
from barnabas.protocol.records.layout import (
    CONTROL_MASK,
    HEADER_SIZE,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
    TimestampType,
)
from barnabas.protocol.records.seal import seal

Buffer = bytes | bytearray | memoryview

_NO_LIMIT: Final = -1
_ROOM_FOR_HEADER: Final = bytes(HEADER_SIZE)
_NO_PRODUCER: Final = (NO_PRODUCER_ID, NO_PRODUCER_EPOCH, NO_SEQUENCE)


class RecordBatchBuilder:
    """Builder of one batch of at most `max_bytes`; the first record is taken whatever its size.

    `expected_ratio` is compressed size / size and scales `max_bytes` for a codec; 1.0 scales nothing.
    `append_timestamp`, with LOG_APPEND_TIME, is the timestamp of the whole batch. The producer's fields may be set
    until `build` is called, and `build` may be called again after they changed.
    """

    __slots__ = (
        "_buffer",
        "_next_delta",
        "_record_limit",
        "append_timestamp",
        "base_offset",
        "base_sequence",
        "base_timestamp",
        "codec",
        "count",
        "expected_ratio",
        "is_control",
        "is_transactional",
        "level",
        "max_bytes",
        "max_timestamp",
        "partition_leader_epoch",
        "producer_epoch",
        "producer_id",
        "timestamp_type",
    )

    def __init__(
        self,
        codec: Codec = Codec.NONE,
        *,
        max_bytes: int,
        timestamp_type: TimestampType = TimestampType.CREATE_TIME,
        append_timestamp: int = NO_TIMESTAMP,
        base_offset: int = 0,
        partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        base_sequence: int = NO_SEQUENCE,
        is_transactional: bool = False,
        is_control: bool = False,
        level: int | None = None,
        expected_ratio: float = 1.0,
    ) -> None:
        if expected_ratio <= 0:
            raise ValueError(f"expected_ratio {expected_ratio} is not above 0")
        self.codec = codec
        self.level = level
        self.max_bytes = max_bytes
        self.expected_ratio = expected_ratio if codec else 1.0
        self.timestamp_type = timestamp_type
        self.append_timestamp = append_timestamp
        self.base_offset = base_offset
        self.partition_leader_epoch = partition_leader_epoch
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.is_transactional = is_transactional
        self.is_control = is_control
        self.count = 0
        self.base_timestamp = NO_TIMESTAMP
        self.max_timestamp = NO_TIMESTAMP
        self._next_delta = 0
        self._buffer = bytearray(_ROOM_FOR_HEADER)
        self._record_limit = max(0, HEADER_SIZE + int((max_bytes - HEADER_SIZE) / self.expected_ratio))

    @property
    def uncompressed_bytes(self) -> int:
        """The batch's size in bytes without a codec."""
        return len(self._buffer)

    def append(
        self,
        timestamp: int,
        key: Buffer | None,
        value: Buffer | None,
        headers: Sequence[tuple[str, Buffer | None]] = (),
        *,
        offset: int | None = None,
    ) -> bool:
        """Add a record, or return False when it does not fit.

        `timestamp` in ms. `offset` may leave a gap before the record, as compaction does; None: the next one. Raises
        ValueError for a number that does not fit its field, TypeError for a key or value that is not bytes; the batch
        is then unchanged.
        """
        delta = self._next_delta
        if offset is not None:
            delta = offset - self.base_offset
            if delta < self._next_delta:
                raise ValueError(f"offset {offset} comes before {self.base_offset + self._next_delta}, the next one")
        if self.count:
            size = append_record(
                self._buffer, self._record_limit, delta, timestamp - self.base_timestamp, key, value, headers
            )
            if not size:
                return False
        else:
            append_record(self._buffer, _NO_LIMIT, delta, 0, key, value, headers)
            self.base_timestamp = timestamp
        self.count += 1
        self._next_delta = delta + 1
        if timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        return True

    def append_values(
        self,
        timestamp: int,
        values: Sequence[Buffer | None],
        headers: Sequence[tuple[str, Buffer | None]] = (),
        keys: Sequence[Buffer | None] | None = None,
    ) -> int:
        """Add records at the next offsets as long as they fit; return how many. Raises as `append`, and adds none.

        `keys` None: without keys; else one for each value.
        """
        if keys is not None and len(keys) != len(values):
            raise ValueError(f"{len(keys)} keys for {len(values)} values")
        if not values:
            return 0
        buffer, delta = self._buffer, self._next_delta
        start = len(buffer)
        base_timestamp = self.base_timestamp if self.count else timestamp
        taken = 0
        try:
            if not self.count:
                append_record(buffer, _NO_LIMIT, delta, 0, None if keys is None else keys[0], values[0], headers)
                taken = 1
            taken += append_records(
                buffer, self._record_limit, delta + taken, timestamp - base_timestamp, keys, values, taken, headers
            )
        except BaseException:
            del buffer[start:]
            raise
        self.base_timestamp = base_timestamp
        self.count += taken
        self._next_delta = delta + taken
        if taken and timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        return taken

    def build(self) -> bytes:
        """Return the batch. Raises ValueError without records, or when a number does not fit its header field."""
        if not self.count:
            raise ValueError("a batch without records cannot be built")
        if self.codec:
            records = compress(self.codec, memoryview(self._buffer)[HEADER_SIZE:], self.level)
            buffer = bytearray(_ROOM_FOR_HEADER)
            buffer += records
        else:
            buffer = self._buffer
        attributes = int(self.codec)
        if self.is_transactional:
            attributes |= TRANSACTIONAL_MASK
        if self.is_control:
            attributes |= CONTROL_MASK
        max_timestamp = self.max_timestamp
        if self.timestamp_type:
            attributes |= TIMESTAMP_TYPE_MASK
            max_timestamp = self.append_timestamp
        fields = (
            attributes,
            self._next_delta - 1,
            self.base_timestamp,
            max_timestamp,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.count,
        )
        seal(buffer, self.base_offset, self.partition_leader_epoch, fields)
        return bytes(buffer)
