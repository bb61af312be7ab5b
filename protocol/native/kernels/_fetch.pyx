# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Native fetch requests in their plain form, and responses without errors and aborted transactions.

native/fetch.py is the reference and has the layouts. Plain: the documented keys in any order, each once; at least one
topic, each with at least one partition; no bytes after the header. Topics are not checked to be UTF-8: the caller
compares them with valid names.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t

from barnabas.protocol.messages.data.kernels._fetch cimport (
    FetchedPart,
    FetchEntry,
    FetchFrame,
    FetchTopic,
    clear_frame,
    reserve_entries,
    reserve_topics,
)
from barnabas.protocol.native.kernels._msgpack cimport (
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
    read_row,
    read_text,
)

from barnabas.protocol.messages.data.fetch import READ_COMMITTED as _READ_COMMITTED
from barnabas.protocol.messages.data.fetch import READ_UNCOMMITTED as _READ_UNCOMMITTED
from barnabas.protocol.messages.data.fetch import DEFAULT_MAX_BYTES as _DEFAULT_MAX_BYTES

cdef enum:
    FETCH = 1
    READ_UNCOMMITTED = 0
    READ_COMMITTED = 1
    DEFAULT_MIN_BYTES = 1
    DEFAULT_MAX_BYTES = 52428800
    NO_SESSION = -1
    HAS_MAX_WAIT = 1
    HAS_MIN_BYTES = 2
    HAS_MAX_BYTES = 4
    HAS_ISOLATION = 8
    HAS_TOPICS = 16

cdef int64_t INT64_MAX = 0x7FFFFFFFFFFFFFFF

if (_READ_UNCOMMITTED, _READ_COMMITTED, _DEFAULT_MAX_BYTES) != (READ_UNCOMMITTED, READ_COMMITTED, DEFAULT_MAX_BYTES):
    raise ImportError("the native fetch kernel was built for other constants")


cdef bint parse_frame(const uint8_t* data, Py_ssize_t size, FetchFrame* frame) except -1:
    """Read a frame without its size field. Returns whether it is plain. Raises MemoryError."""
    cdef Cursor header
    cdef Text client_id
    clear_frame(frame)
    if not read_header(data, size, FETCH, &header, &frame.correlation_id, &client_id) or header.end != data + size:
        return False
    frame.is_native = True
    frame.by_id = False
    frame.version = 0
    frame.client_at = 0 if client_id.at == NULL else <int32_t> (client_id.at - data)
    frame.client_size = -1 if client_id.at == NULL else <int32_t> client_id.size
    frame.max_wait_ms = 0
    frame.min_bytes = DEFAULT_MIN_BYTES
    frame.max_bytes = DEFAULT_MAX_BYTES
    frame.committed_only = False
    frame.session_id = 0
    frame.session_epoch = NO_SESSION
    return _parse_body(&header, data, frame) and header.at == header.end


cdef bint _parse_body(Cursor* header, const uint8_t* data, FetchFrame* frame) except -1:
    cdef Text key
    cdef int64_t count, isolation
    cdef int found = 0
    cdef int field
    if not read_map(header, &count):
        return False
    while count > 0:
        count -= 1
        if not read_text(header, NAME_MAX, &key):
            return False
        if is_text(&key, b"max_wait_ms", 11):
            field = HAS_MAX_WAIT
            if not read_int32(header, 0, &frame.max_wait_ms):
                return False
        elif is_text(&key, b"min_bytes", 9):
            field = HAS_MIN_BYTES
            if not read_int32(header, 0, &frame.min_bytes):
                return False
        elif is_text(&key, b"max_bytes", 9):
            field = HAS_MAX_BYTES
            if not read_int32(header, 0, &frame.max_bytes):
                return False
        elif is_text(&key, b"isolation", 9):
            field = HAS_ISOLATION
            if not read_int(header, READ_UNCOMMITTED, READ_COMMITTED, &isolation):
                return False
            frame.committed_only = isolation == READ_COMMITTED
        elif is_text(&key, b"topics", 6):
            field = HAS_TOPICS
            if found & HAS_TOPICS or not _parse_topics(header, data, frame):
                return False
        else:
            return False
        if found & field:
            return False
        found |= field
    return found & HAS_TOPICS != 0


cdef bint _parse_topics(Cursor* header, const uint8_t* data, FetchFrame* frame) except -1:
    cdef int64_t topic_count, count, index, number
    cdef FetchTopic* topic
    cdef Text name
    # Every value has at least one byte: no more memory is taken than the frame has values.
    if not read_array(header, &topic_count) or topic_count == 0 or topic_count > header.end - header.at:
        return False
    reserve_topics(frame, topic_count)
    frame.topic_count = <int32_t> topic_count
    frame.entry_count = 0
    for index in range(topic_count):
        topic = &frame.topics[index]
        if not read_row(header, 2) or not read_text(header, NAME_MAX, &name):
            return False
        if not read_array(header, &count) or count == 0 or count > header.end - header.at:
            return False
        topic.at = <int32_t> (name.at - data)
        topic.size = <int32_t> name.size
        topic.first = frame.entry_count
        topic.count = <int32_t> count
        reserve_entries(frame, frame.entry_count + count)
        for number in range(count):
            if not _parse_entry(header, &frame.entries[frame.entry_count]):
                return False
            frame.entry_count += 1
    return True


cdef inline bint _parse_entry(Cursor* header, FetchEntry* entry) noexcept nogil:
    entry.leader_epoch = -1
    entry.last_fetched_epoch = -1
    # Negative partitions are unknown, negative offsets out of range, as any others.
    return (
        read_row(header, 3)
        and read_int32(header, 0, &entry.number)
        and read_int(header, 0, INT64_MAX, &entry.offset)
        and read_int32(header, 0, &entry.max_bytes)
    )


cdef int64_t response_bound(const FetchFrame* frame) noexcept nogil:
    """Return a size that no response frame exceeds, its records left out."""
    cdef int64_t names = 0
    cdef int32_t index
    for index in range(frame.topic_count):
        names += frame.topics[index].size
    return 64 + names + 16 * <int64_t> frame.topic_count + 64 * <int64_t> frame.entry_count


cdef int64_t encode_response(
    const FetchFrame* frame, const uint8_t* data, FetchedPart* parts, bint with_records, uint8_t* out
) noexcept nogil:
    """Write the response frame and set each part's `records_at`, where its records belong. Returns its bytes.

    `data` is the request's frame. With records, space is left for them at the end; without, they are to be inserted
    there. `out` has room for `response_bound`, and for the records.
    """
    cdef uint8_t* at = put_response_header(out + RESPONSE_PREFIX_SIZE, FETCH, frame.correlation_id)
    cdef int64_t records_size = 0
    cdef int32_t index, number
    cdef int64_t end
    cdef const FetchTopic* topic
    cdef const FetchedPart* part
    at[0] = 0x81  # a map of one key
    at = put_text(at + 1, b"topics", 6)
    at = put_array(at, frame.topic_count)
    for index in range(frame.topic_count):
        topic = &frame.topics[index]
        at = put_text(put_array(at, 2), data + topic.at, topic.size)
        at = put_array(at, topic.count)
        for number in range(topic.first, topic.first + topic.count):
            part = &parts[number]
            at = put_int(put_array(at, 7), frame.entries[number].number)
            at = put_int(at, 0)  # error
            at = put_int(at, part.high_watermark)
            at = put_int(at, part.last_stable_offset)
            at = put_int(at, part.log_start_offset)
            at = put_array(at, 0)  # aborted transactions
            at = put_int(at, part.records_size)
            records_size += part.records_size
    end = at - out
    put_prefix(out, end - RESPONSE_PREFIX_SIZE, records_size)
    for number in range(frame.entry_count):
        parts[number].records_at = end
        if with_records:
            end += parts[number].records_size
    return end
