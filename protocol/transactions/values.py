"""Values of the records in `__transaction_state`: the state of one transactional id.

    int16 version | producer id int64 | producer epoch int16 | timeout int32 ms | status int8 | partitions
                  | last update int64 ms | start int64 ms | tagged fields (version 1)

    partitions    array of topic string, array of int32; null in state Empty
    version 0     int32 array counts, int16 string sizes
    version 1     flexible; tag 0 previous producer id, 1 next producer id (int64), 2 client's transaction version,
                  3 next producer epoch (int16), each left out at its default

Kafka 4.3 writes version 1 from transaction.version 1 on, and never tag 3. Source: Kafka's TransactionLogValue.json,
TransactionLog.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct, pack
from typing import Final, NamedTuple

from barnabas.protocol import varint
from barnabas.protocol.errors import DecodeError
from barnabas.protocol.groups.classic_fields import MAX_STRING_BYTES, read_string
from barnabas.protocol.primitives import Reader

NEWEST_VERSION: Final = 1

_NO_PRODUCER_ID: Final = -1
_NO_EPOCH: Final = -1
_PREVIOUS_ID_TAG, _NEXT_ID_TAG, _CLIENT_VERSION_TAG, _NEXT_EPOCH_TAG = range(4)

_HEAD: Final = Struct(">hqhib")
_TIMES: Final = Struct(">qq")
_INT16: Final = Struct(">h")
_INT32: Final = Struct(">i")
_INT64: Final = Struct(">q")
_TAGGED_INT16: Final = Struct(">BBh")
_TAGGED_INT64: Final = Struct(">BBq")
_USUAL_END: Final = Struct(">qqBBBqBBh")
"""Times, and the tagged fields of a state in which the client has an epoch for each transaction."""

TopicPartitions = tuple[str, Sequence[int]]


class TransactionLogValue(NamedTuple):
    """`status`: the number of Kafka's TransactionState. `topics`: in the order of the record, None for null."""

    producer_id: int
    producer_epoch: int
    timeout_ms: int
    status: int
    topics: Sequence[TopicPartitions] | None
    update_ms: int
    start_ms: int
    previous_producer_id: int = _NO_PRODUCER_ID
    next_producer_id: int = _NO_PRODUCER_ID
    client_version: int = 0
    next_producer_epoch: int = _NO_EPOCH


def encode_transaction_value(
    value: TransactionLogValue, version: int, topics: bytes | bytearray | None = None
) -> bytearray:
    """Encode a value; version 0 leaves out the tagged fields. Raises ValueError for a topic above 32,767 bytes.

    `topics`: `encode_topics` of the value's topics, for callers that have it.
    """
    data = bytearray(_HEAD.pack(version, value.producer_id, value.producer_epoch, value.timeout_ms, value.status))
    data += encode_topics(value.topics, version) if topics is None else topics
    (
        _,
        _,
        _,
        _,
        _,
        update_ms,
        start_ms,
        previous_producer_id,
        next_producer_id,
        client_version,
        next_producer_epoch,
    ) = value
    if (
        version
        and next_producer_id == _NO_PRODUCER_ID
        and client_version
        and previous_producer_id != _NO_PRODUCER_ID
        and next_producer_epoch == _NO_EPOCH
    ):
        data += _USUAL_END.pack(
            update_ms,
            start_ms,
            2,
            _PREVIOUS_ID_TAG,
            _INT64.size,
            previous_producer_id,
            _CLIENT_VERSION_TAG,
            _INT16.size,
            client_version,
        )
        return data
    data += _TIMES.pack(update_ms, start_ms)
    if version == 0:
        return data
    count_at = len(data)
    data.append(0)
    if previous_producer_id != _NO_PRODUCER_ID:
        data += _TAGGED_INT64.pack(_PREVIOUS_ID_TAG, _INT64.size, previous_producer_id)
        data[count_at] += 1
    if next_producer_id != _NO_PRODUCER_ID:
        data += _TAGGED_INT64.pack(_NEXT_ID_TAG, _INT64.size, next_producer_id)
        data[count_at] += 1
    if client_version != 0:
        data += _TAGGED_INT16.pack(_CLIENT_VERSION_TAG, _INT16.size, client_version)
        data[count_at] += 1
    if next_producer_epoch != _NO_EPOCH:
        data += _TAGGED_INT16.pack(_NEXT_EPOCH_TAG, _INT16.size, next_producer_epoch)
        data[count_at] += 1
    return data


def encode_topics(topics: Sequence[TopicPartitions] | None, version: int) -> bytearray:
    """Encode the partitions of a value. Raises ValueError for a topic above 32,767 bytes."""
    data = bytearray()
    if version == 0:
        _write_topics(data, topics)
    else:
        _write_compact_topics(data, topics)
    return data


def is_known_version(data: bytes) -> bool:
    """Return whether a value has a version that `decode_transaction_value` decodes; False if it is cut off."""
    return len(data) >= _INT16.size and 0 <= _INT16.unpack_from(data)[0] <= NEWEST_VERSION


def decode_transaction_value(data: bytes) -> TransactionLogValue:
    """Decode a value. Raises DecodeError, also for an unknown version."""
    reader = Reader(data)
    version = reader.int16()
    if not 0 <= version <= NEWEST_VERSION:
        raise DecodeError(f"a transaction's state has version {version}, the newest known is {NEWEST_VERSION}")
    producer_id, epoch, timeout_ms, status = reader.int64(), reader.int16(), reader.int32(), reader.int8()
    topics = _read_topics(reader) if version == 0 else _read_compact_topics(reader)
    update_ms, start_ms = reader.int64(), reader.int64()
    tagged = reader.tagged_fields() if version else {}
    reader.ensure_end()
    return TransactionLogValue(
        producer_id,
        epoch,
        timeout_ms,
        status,
        topics,
        update_ms,
        start_ms,
        _tagged(tagged, _PREVIOUS_ID_TAG, _INT64, _NO_PRODUCER_ID),
        _tagged(tagged, _NEXT_ID_TAG, _INT64, _NO_PRODUCER_ID),
        _tagged(tagged, _CLIENT_VERSION_TAG, _INT16, 0),
        _tagged(tagged, _NEXT_EPOCH_TAG, _INT16, _NO_EPOCH),
    )


def _write_topics(data: bytearray, topics: Sequence[TopicPartitions] | None) -> None:
    data += _INT32.pack(-1 if topics is None else len(topics))
    for topic, partitions in topics or ():
        name = _name_of(topic)
        data += _INT16.pack(len(name)) + name + pack(f">{len(partitions) + 1}i", len(partitions), *partitions)


def _write_compact_topics(data: bytearray, topics: Sequence[TopicPartitions] | None) -> None:
    if topics is None:
        data.append(0)
        return
    varint.append_unsigned(data, len(topics) + 1)
    for topic, partitions in topics:
        name = _name_of(topic)
        varint.append_unsigned(data, len(name) + 1)
        data += name
        varint.append_unsigned(data, len(partitions) + 1)
        data += pack(f">{len(partitions)}i", *partitions)
        data.append(0)  # no tagged fields


def _name_of(topic: str) -> bytes:
    name = topic.encode()
    if len(name) > MAX_STRING_BYTES:
        raise ValueError(f"a topic of {len(name)} bytes is longer than {MAX_STRING_BYTES}")
    return name


def _read_topics(reader: Reader) -> list[TopicPartitions] | None:
    count = reader.int32()
    if count < 0:
        return None
    _ensure_plausible(count, reader)
    topics: list[TopicPartitions] = []
    for _ in range(count):
        name, partitions = read_string(reader), reader.int32()
        _ensure_plausible(partitions, reader)
        topics.append((name, [reader.int32() for _ in range(partitions)]))
    return topics


def _read_compact_topics(reader: Reader) -> list[TopicPartitions] | None:
    count = reader.compact_nullable_array_length()
    if count is None:
        return None
    topics: list[TopicPartitions] = []
    for _ in range(count):
        topics.append((reader.compact_string(), reader.compact_array(reader.int32)))
        reader.tagged_fields()
    return topics


def _ensure_plausible(count: int, reader: Reader) -> None:
    if not 0 <= count <= reader.remaining:
        raise DecodeError(f"array of {count} items at position {reader.position}, {reader.remaining} bytes are left")


def _tagged(fields: dict[int, bytes], tag: int, layout: Struct, default: int) -> int:
    data = fields.get(tag)
    if data is None:
        return default
    if len(data) != layout.size:
        raise DecodeError(f"tagged field {tag} of a transaction's state has {len(data)} bytes")
    value: int = layout.unpack(data)[0]
    return value
