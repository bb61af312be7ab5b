# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False, cdivision=True
"""Produce requests of versions 3 to 13 in their plain form, and responses in which every append succeeded.

codec.py and data/produce.py are the reference and have the layouts. Plain: at least one topic, each with at least one
partition, no null where a value is expected, records that contain a batch header, no tagged fields, no bytes after the
request, at most MAX_ITEMS topics and partitions, and zstd only in versions that allow it. Strings are not checked to be
UTF-8: the caller compares them with valid ones or decodes them.

Every read is preceded by a comparison with the end of the frame, by subtraction, which cannot overflow.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from barnabas.protocol.records.kernels._big_endian cimport int16_at, int32_at, put_int16, put_int32, put_int64
from barnabas.protocol.records.kernels._varint cimport put_unsigned

from barnabas.protocol.compression import Codec
from barnabas.protocol.wire.structures import MAX_ITEMS as _MAX_ITEMS
from barnabas.protocol.records import layout

cdef enum:
    LOWEST_VERSION = 3
    HIGHEST_VERSION = 13
    LOG_START_FROM = 5
    ZSTD_FROM = 7
    MESSAGES_FROM = 8
    FLEXIBLE_FROM = 9
    TOPIC_IDS_FROM = 13
    ID_SIZE = 16
    BATCH_HEADER_SIZE = 61
    MAGIC_POSITION = 16
    MAGIC_V2 = 2
    ATTRIBUTES_POSITION = 22  # their low byte
    CODEC_MASK = 0x07
    ZSTD = 4
    TRANSACTIONAL_MASK = 0x10
    MAX_ITEMS = 50000
    RESULT_BYTES = 30  # of a result from version 5 on: partition, error, base offset, append time, log start offset
    MESSAGE_MAX = 32767

if (
    layout.HEADER_SIZE != BATCH_HEADER_SIZE
    or layout.MAGIC_POSITION != MAGIC_POSITION
    or layout.MAGIC_V2 != MAGIC_V2
    or layout.CODEC_MASK != CODEC_MASK
    or layout.TRANSACTIONAL_MASK != TRANSACTIONAL_MASK
    or Codec.ZSTD != ZSTD
    or _MAX_ITEMS != MAX_ITEMS
):
    raise ImportError("the produce kernel was built for other constants")


cdef struct Cursor:
    uint8_t* at
    uint8_t* end


# --- reading: each returns False where the frame ends or the value is not plain


cdef inline bint _int16(Cursor* cursor, int* value) noexcept nogil:
    if cursor.end - cursor.at < 2:
        return False
    value[0] = int16_at(cursor.at)
    cursor.at += 2
    return True


cdef inline bint _int32(Cursor* cursor, int32_t* value) noexcept nogil:
    if cursor.end - cursor.at < 4:
        return False
    value[0] = int32_at(cursor.at)
    cursor.at += 4
    return True


cdef inline bint _unsigned(Cursor* cursor, int64_t* value) noexcept nogil:
    """Read an unsigned varint of at most 32 bits."""
    cdef uint64_t found = 0
    cdef int shift = 0
    cdef uint8_t byte
    while cursor.at < cursor.end:
        byte = cursor.at[0]
        cursor.at += 1
        found |= <uint64_t> (byte & 0x7F) << shift
        if byte < 0x80:
            value[0] = <int64_t> found
            return found >> 32 == 0
        shift += 7
        if shift > 28:
            return False
    return False


cdef inline bint _no_tags(Cursor* cursor) noexcept nogil:
    if cursor.at == cursor.end or cursor.at[0] != 0:
        return False
    cursor.at += 1
    return True


cdef inline bint _bytes(Cursor* cursor, int64_t size, const uint8_t** data, Py_ssize_t* data_size) noexcept nogil:
    """Read `size` bytes; -1 is null."""
    data[0] = cursor.at
    data_size[0] = size
    if size < 0:
        return size == -1
    if size > cursor.end - cursor.at:
        return False
    cursor.at += size
    return True


cdef inline bint _string(Cursor* cursor, bint flexible, const uint8_t** data, Py_ssize_t* size) noexcept nogil:
    cdef int classic
    cdef int64_t compact
    if flexible:
        return _unsigned(cursor, &compact) and _bytes(cursor, compact - 1, data, size)
    return _int16(cursor, &classic) and _bytes(cursor, classic, data, size)


cdef inline bint _count(Cursor* cursor, bint flexible, int64_t* count) noexcept nogil:
    """Read the count of an array that has entries."""
    cdef int32_t classic
    if flexible:
        if not _unsigned(cursor, count):
            return False
        count[0] -= 1
    else:
        if not _int32(cursor, &classic):
            return False
        count[0] = classic
    return 0 < count[0] <= MAX_ITEMS


# --- the request


cdef bint parse_frame(uint8_t* data, Py_ssize_t size, ProduceFrame* frame) noexcept nogil:
    cdef Cursor cursor
    clear_frame(frame)
    cursor.at = data
    cursor.end = data + size
    return _parse(&cursor, frame) and cursor.at == cursor.end


cdef bint _parse(Cursor* cursor, ProduceFrame* frame) noexcept nogil:
    cdef int api, length
    cdef int32_t timeout_ms
    cdef int64_t topic_count
    cdef bint flexible
    if not _int16(cursor, &api) or api != 0:
        return False
    if not _int16(cursor, &frame.version) or not LOWEST_VERSION <= frame.version <= HIGHEST_VERSION:
        return False
    flexible = frame.version >= FLEXIBLE_FROM
    frame.by_id = frame.version >= TOPIC_IDS_FROM
    frame.has_transactional = False
    if not _int32(cursor, &frame.correlation_id):
        return False
    if not _int16(cursor, &length) or not _bytes(cursor, length, &frame.client_id, &frame.client_id_size):
        return False
    if flexible and not _no_tags(cursor):
        return False
    if not _string(cursor, flexible, &frame.transactional_id, &frame.transactional_id_size):
        return False
    if not _int16(cursor, &frame.acks) or not _int32(cursor, &timeout_ms):
        return False
    if not _count(cursor, flexible, &topic_count):
        return False
    while topic_count > 0:
        topic_count -= 1
        if not add_topic(frame) or not _parse_topic(cursor, frame, &frame.topics[frame.topic_count - 1], flexible):
            return False
        if frame.topic_count + frame.batch_count > MAX_ITEMS:
            return False
    return not flexible or _no_tags(cursor)


cdef bint _parse_topic(Cursor* cursor, ProduceFrame* frame, ProduceTopic* topic, bint flexible) noexcept nogil:
    cdef int64_t count
    if frame.by_id:
        if not _bytes(cursor, ID_SIZE, &topic.name, &topic.name_size):
            return False
    elif not _string(cursor, flexible, &topic.name, &topic.name_size) or topic.name_size < 0:
        return False
    if not _count(cursor, flexible, &count):
        return False
    topic.batch_count = count
    while count > 0:
        count -= 1
        if not add_batch(frame) or not _parse_batch(cursor, frame, &frame.batches[frame.batch_count - 1], flexible):
            return False
    return not flexible or _no_tags(cursor)


cdef bint _parse_batch(Cursor* cursor, ProduceFrame* frame, ProduceBatch* batch, bint flexible) noexcept nogil:
    cdef int32_t classic_size
    cdef int64_t size
    cdef uint8_t attributes
    if not _int32(cursor, &batch.partition):
        return False
    if flexible:
        if not _unsigned(cursor, &size):
            return False
        size -= 1
    else:
        if not _int32(cursor, &classic_size):
            return False
        size = classic_size
    if size < BATCH_HEADER_SIZE or size > cursor.end - cursor.at:
        return False
    batch.records = cursor.at
    batch.size = size
    cursor.at += size
    attributes = batch.records[ATTRIBUTES_POSITION]
    if frame.version < ZSTD_FROM and attributes & CODEC_MASK == ZSTD:
        return False
    if attributes & TRANSACTIONAL_MASK and batch.records[MAGIC_POSITION] >= MAGIC_V2:
        frame.has_transactional = True
    return not flexible or _no_tags(cursor)


# --- the response


cdef Py_ssize_t response_bound(const ProduceFrame* frame) noexcept nogil:
    cdef Py_ssize_t size = 32  # size, correlation id, two lists of tagged fields, count of topics, throttle time
    cdef Py_ssize_t index
    for index in range(frame.topic_count):
        size += frame.topics[index].name_size + 16
    return size + 48 * frame.batch_count


cdef Py_ssize_t encode_response(ProduceFrame* frame, int32_t throttle_ms, uint8_t* out) noexcept nogil:
    cdef uint8_t* at = out + 4
    cdef const ProduceTopic* topic
    cdef ProduceBatch* batch = frame.batches
    cdef ProduceBatch* topic_end
    cdef Py_ssize_t index
    cdef bint flexible = frame.version >= FLEXIBLE_FROM
    at = put_int32(at, <uint32_t> frame.correlation_id)
    if flexible:
        at[0] = 0
        at = put_unsigned(at + 1, frame.topic_count + 1)
    else:
        at = put_int32(at, <uint32_t> frame.topic_count)
    for index in range(frame.topic_count):
        topic = &frame.topics[index]
        if not flexible:
            at = put_int16(at, <int> topic.name_size)
        elif not frame.by_id:
            at = put_unsigned(at, topic.name_size + 1)
        memcpy(at, topic.name, topic.name_size)
        at += topic.name_size
        at = put_unsigned(at, topic.batch_count + 1) if flexible else put_int32(at, <uint32_t> topic.batch_count)
        topic_end = batch + topic.batch_count
        while batch < topic_end:
            batch.result_at = at - out
            at = _put_result(at, frame.version, batch)
            batch += 1
        if flexible:
            at[0] = 0
            at += 1
    at = put_int32(at, <uint32_t> throttle_ms)
    if flexible:
        at[0] = 0
        at += 1
    put_int32(out, <uint32_t> (at - out - 4))
    return at - out


cdef inline uint8_t* _put_result(uint8_t* at, int version, const ProduceBatch* batch) noexcept nogil:
    at = put_int32(at, <uint32_t> batch.partition)
    at = put_int16(at, 0)  # error
    at = put_int64(at, batch.base_offset)
    at = put_int64(at, batch.log_append_time_ms)
    if version >= LOG_START_FROM:
        at = put_int64(at, batch.log_start_offset)
    if version >= FLEXIBLE_FROM:
        at[0] = 1  # no record errors
        at[1] = 0  # null message
        at[2] = 0  # no tagged fields
        at += 3
    elif version >= MESSAGES_FROM:
        at = put_int16(put_int32(at, 0), -1)  # no record errors, null message
    return at


cdef bytes with_failure(bytes response, int version, Py_ssize_t result_at, int code, str message):
    cdef bytes text = message.encode()[:MESSAGE_MAX]
    cdef bytearray patched = bytearray(response)
    cdef uint8_t* out = <uint8_t*> <char*> patched
    cdef uint8_t[8] size
    cdef Py_ssize_t at
    put_int64(put_int16(out + result_at + 4, code), -1)
    if version < MESSAGES_FROM:
        return bytes(patched)
    at = result_at + (RESULT_BYTES + 1 if version >= FLEXIBLE_FROM else RESULT_BYTES + 4)
    if version >= FLEXIBLE_FROM:
        patched[at : at + 1] = size[: put_unsigned(size, len(text) + 1) - size] + text
    else:
        put_int16(size, <int> len(text))
        patched[at : at + 2] = size[:2] + text
    put_int32(<uint8_t*> <char*> patched, <uint32_t> (len(patched) - 4))
    return bytes(patched)


cdef bytes with_throttle(bytes response, int version, int32_t throttle_ms):
    cdef bytearray patched = bytearray(response)
    put_int32(<uint8_t*> <char*> patched + len(patched) - 4 - (version >= FLEXIBLE_FROM), <uint32_t> throttle_ms)
    return bytes(patched)


# --- for tests


def parsed(frame):
    """Return the fields of a plain request, None for another one."""
    cdef ProduceFrame found
    cdef uint8_t[::1] data = frame
    cdef ProduceBatch* batch
    cdef Py_ssize_t index, number
    begin_frame(&found)
    try:
        if data.shape[0] == 0 or not parse_frame(&data[0], data.shape[0], &found):
            return None
        topics = []
        batch = found.batches
        for index in range(found.topic_count):
            partitions = []
            for number in range(found.topics[index].batch_count):
                partitions.append((batch.partition, bytes(batch.records[: batch.size])))
                batch += 1
            topics.append((bytes(found.topics[index].name[: found.topics[index].name_size]), partitions))
        return (
            found.version,
            found.correlation_id,
            bytes(found.client_id[: found.client_id_size]) if found.client_id_size >= 0 else None,
            bytes(found.transactional_id[: found.transactional_id_size]) if found.transactional_id_size >= 0 else None,
            found.acks,
            found.has_transactional,
            topics,
        )
    finally:
        release_frame(&found)


def response_of(frame, results, int32_t throttle_ms=0):
    """Return the response to a plain request, with each append's base offset, append time and log start offset."""
    cdef ProduceFrame found
    cdef uint8_t[::1] data = frame
    cdef Py_ssize_t index
    cdef bytearray out
    begin_frame(&found)
    try:
        if data.shape[0] == 0 or not parse_frame(&data[0], data.shape[0], &found):
            return None
        if len(results) != found.batch_count:
            raise ValueError(f"{len(results)} results of {found.batch_count} batches")
        for index in range(found.batch_count):
            (
                found.batches[index].base_offset,
                found.batches[index].log_append_time_ms,
                found.batches[index].log_start_offset,
            ) = results[index]
        out = bytearray(response_bound(&found))
        del out[encode_response(&found, throttle_ms, <uint8_t*> <char*> out):]
        return bytes(out)
    finally:
        release_frame(&found)
