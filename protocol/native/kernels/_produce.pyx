# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False, cdivision=True
"""Native produce requests in their plain form, and responses in which every append succeeded.

native/produce.py is the reference and has the layouts. Plain: the documented keys in any order, each once; at least one
topic, each with at least one partition; records that contain a batch header and together are all bytes after the
header. Strings are not checked to be UTF-8: the caller compares them with valid ones or decodes them.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t

from barnabas.protocol.messages.data.kernels._produce cimport (
    ProduceBatch,
    ProduceFrame,
    ProduceTopic,
    add_batch,
    add_topic,
    begin_frame,
    clear_frame,
    release_frame,
)
from barnabas.protocol.native.kernels._msgpack cimport (
    INT32_MAX,
    NAME_MAX,
    RESPONSE_PREFIX_SIZE,
    Cursor,
    Text,
    is_text,
    put_array,
    put_int,
    put_prefix,
    put_response_header,
    put_text,
    read_array,
    read_header,
    read_int,
    read_int32,
    read_map,
    read_optional_text,
    read_row,
    read_text,
)

from barnabas.protocol.records import layout

cdef enum:
    PRODUCE = 0
    INT16_MIN = -0x8000
    INT16_MAX = 0x7FFF
    BATCH_HEADER_SIZE = 61
    MAGIC_POSITION = 16
    MAGIC_V2 = 2
    ATTRIBUTES_POSITION = 22  # their low byte
    TRANSACTIONAL_MASK = 0x10
    HAS_ACKS = 1
    HAS_TIMEOUT = 2
    HAS_TOPICS = 4
    HAS_TRANSACTIONAL_ID = 8

if (
    layout.HEADER_SIZE != BATCH_HEADER_SIZE
    or layout.MAGIC_POSITION != MAGIC_POSITION
    or layout.MAGIC_V2 != MAGIC_V2
    or layout.TRANSACTIONAL_MASK != TRANSACTIONAL_MASK
):
    raise ImportError("the native produce kernel was built for other constants")


# --- the request


cdef bint parse_frame(uint8_t* data, Py_ssize_t size, ProduceFrame* frame) noexcept nogil:
    cdef Cursor header
    cdef Text client_id
    clear_frame(frame)
    if not read_header(data, size, PRODUCE, &header, &frame.correlation_id, &client_id):
        return False
    frame.is_native = True
    frame.version = 0
    frame.client_id = client_id.at
    frame.client_id_size = -1 if client_id.at == NULL else client_id.size
    frame.by_id = False
    return (
        _parse_body(&header, frame)
        and header.at == header.end
        and _place_records(<uint8_t*> header.end, size - (header.end - data), frame)
    )


cdef bint _parse_body(Cursor* header, ProduceFrame* frame) noexcept nogil:
    cdef Text key, transactional_id
    cdef int64_t count, value
    cdef int32_t timeout_ms
    cdef int found = 0
    cdef int field
    frame.transactional_id = NULL
    frame.transactional_id_size = -1
    if not read_map(header, &count):
        return False
    while count > 0:
        count -= 1
        if not read_text(header, NAME_MAX, &key):
            return False
        if is_text(&key, b"acks", 4):
            field = HAS_ACKS
            if not read_int(header, INT16_MIN, INT16_MAX, &value):
                return False
            frame.acks = <int> value
        elif is_text(&key, b"timeout_ms", 10):
            field = HAS_TIMEOUT
            if not read_int32(header, -INT32_MAX - 1, &timeout_ms):
                return False
        elif is_text(&key, b"topics", 6):
            field = HAS_TOPICS
            if found & HAS_TOPICS or not _parse_topics(header, frame):
                return False
        elif is_text(&key, b"transactional_id", 16):
            field = HAS_TRANSACTIONAL_ID
            if not read_optional_text(header, NAME_MAX, &transactional_id):
                return False
            frame.transactional_id = transactional_id.at
            frame.transactional_id_size = -1 if transactional_id.at == NULL else transactional_id.size
        else:
            return False
        if found & field:
            return False
        found |= field
    return found & (HAS_ACKS | HAS_TOPICS) == HAS_ACKS | HAS_TOPICS


cdef bint _parse_topics(Cursor* header, ProduceFrame* frame) noexcept nogil:
    cdef int64_t topic_count, batch_count
    cdef ProduceTopic* topic
    cdef Text name
    if not read_array(header, &topic_count) or topic_count == 0:
        return False
    while topic_count > 0:
        topic_count -= 1
        if not read_row(header, 2) or not read_text(header, NAME_MAX, &name):
            return False
        if not read_array(header, &batch_count) or batch_count == 0 or not add_topic(frame):
            return False
        topic = &frame.topics[frame.topic_count - 1]
        topic.name = name.at
        topic.name_size = name.size
        topic.batch_count = <Py_ssize_t> batch_count
        while batch_count > 0:
            batch_count -= 1
            if not add_batch(frame) or not _parse_batch(header, &frame.batches[frame.batch_count - 1]):
                return False
    return True


cdef inline bint _parse_batch(Cursor* header, ProduceBatch* batch) noexcept nogil:
    cdef int64_t size
    if not read_row(header, 2) or not read_int32(header, -INT32_MAX - 1, &batch.partition):
        return False
    if not read_int(header, BATCH_HEADER_SIZE, INT32_MAX, &size):
        return False
    batch.size = <Py_ssize_t> size
    return True


cdef bint _place_records(uint8_t* records, Py_ssize_t size, ProduceFrame* frame) noexcept nogil:
    """Find the records of each batch. Returns False unless their sizes add up to `size`."""
    cdef ProduceBatch* batch
    cdef Py_ssize_t index
    frame.has_transactional = False
    for index in range(frame.batch_count):
        batch = &frame.batches[index]
        if batch.size > size:
            return False
        batch.records = records
        records += batch.size
        size -= batch.size
        if batch.records[ATTRIBUTES_POSITION] & TRANSACTIONAL_MASK and batch.records[MAGIC_POSITION] >= MAGIC_V2:
            frame.has_transactional = True
    return size == 0


# --- the response


cdef Py_ssize_t response_bound(const ProduceFrame* frame) noexcept nogil:
    cdef Py_ssize_t size = 64  # the prefix, the header, the body's keys and the throttle time
    cdef Py_ssize_t index
    for index in range(frame.topic_count):
        size += frame.topics[index].name_size + 16
    return size + 48 * frame.batch_count


cdef Py_ssize_t encode_response(const ProduceFrame* frame, int32_t throttle_ms, uint8_t* out) noexcept nogil:
    cdef uint8_t* at = put_response_header(out + RESPONSE_PREFIX_SIZE, PRODUCE, frame.correlation_id)
    cdef const ProduceTopic* topic
    cdef const ProduceBatch* batch = frame.batches
    cdef const ProduceBatch* topic_end
    cdef Py_ssize_t index
    at[0] = 0x81 if throttle_ms == 0 else 0x82  # a map of one or two keys
    at = put_text(at + 1, b"topics", 6)
    at = put_array(at, frame.topic_count)
    for index in range(frame.topic_count):
        topic = &frame.topics[index]
        at = put_text(put_array(at, 2), topic.name, topic.name_size)
        at = put_array(at, topic.batch_count)
        topic_end = batch + topic.batch_count
        while batch < topic_end:
            at = put_int(put_array(at, 6), batch.partition)
            at = put_int(at, 0)  # error
            at[0] = 0xC0  # no message
            at = put_int(at + 1, batch.base_offset)
            at = put_int(at, batch.log_append_time_ms)
            at = put_int(at, batch.log_start_offset)
            batch += 1
    if throttle_ms != 0:
        at = put_int(put_text(at, b"throttle_ms", 11), throttle_ms)
    put_prefix(out, at - out - RESPONSE_PREFIX_SIZE, 0)
    return at - out


# --- for tests


def parsed(bytearray frame not None):
    """Return the fields of a plain request, None for another one."""
    cdef ProduceFrame found
    cdef uint8_t* data = <uint8_t*> <char*> frame
    cdef ProduceBatch* batch
    cdef Py_ssize_t index, number
    begin_frame(&found)
    try:
        if not parse_frame(data, len(frame), &found):
            return None
        topics = []
        batch = found.batches
        for index in range(found.topic_count):
            partitions = []
            for number in range(found.topics[index].batch_count):
                records = PyBytes_FromStringAndSize(<const char*> batch.records, batch.size)
                partitions.append((batch.partition, records))
                batch += 1
            topics.append((bytes(found.topics[index].name[: found.topics[index].name_size]), partitions))
        return (
            found.correlation_id,
            bytes(found.client_id[: found.client_id_size]) if found.client_id_size >= 0 else None,
            bytes(found.transactional_id[: found.transactional_id_size]) if found.transactional_id_size >= 0 else None,
            found.acks,
            found.has_transactional,
            topics,
        )
    finally:
        release_frame(&found)


def response_of(bytearray frame not None, results, int32_t throttle_ms=0):
    """Return the response to a plain request, with each append's base offset, append time and log start offset."""
    cdef ProduceFrame found
    cdef uint8_t* data = <uint8_t*> <char*> frame
    cdef Py_ssize_t index
    cdef bytearray out
    begin_frame(&found)
    try:
        if not parse_frame(data, len(frame), &found):
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
