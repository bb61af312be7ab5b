# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Fetch of Kafka's protocol, compiled: protocol/messages/data/fetch.py for plain requests.

Plain: versions 4 to 18 of a consumer, without forgotten topics and tagged fields, no topic without partitions; at least
one partition without a fetch session, any number in an incremental request. Everything else, undecodable requests among
them, is not parsed.
Positions are compared with the frame's end by subtraction before a byte is read.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy

from barnabas.protocol.records.kernels._big_endian cimport int16_at, int32_at, int64_at, put_int16, put_int32, put_int64
from barnabas.protocol.records.kernels._varint cimport put_unsigned

cdef enum:
    FETCH = 1
    FIRST_VERSION = 4
    LOG_START_FROM = 5
    SESSIONS_FROM = 7
    LEADER_EPOCH_FROM = 9
    PREFERRED_REPLICA_FROM = 11
    RACK_FROM = 11
    FLEXIBLE_FROM = 12
    TOPIC_IDS_FROM = 13
    REPLICA_STATE_FROM = 15
    LAST_VERSION = 18
    ID_SIZE = 16
    NO_SESSION = -1
    NO_SESSION_ID = 0


cdef struct Cursor:
    const uint8_t* data
    int64_t at
    int64_t end
    bint failed


cdef bint parse_frame(const uint8_t* data, Py_ssize_t size, FetchFrame* frame) except -1:
    """Read a frame without its size field. Returns whether it is plain. Raises MemoryError."""
    cdef Cursor cursor
    cdef bint flexible
    cdef int64_t topic_count, count, index, number
    cdef FetchTopic* topic
    cdef FetchEntry* entry
    cdef int32_t isolation
    clear_frame(frame)
    cursor.data = data
    cursor.at = 0
    cursor.end = size
    cursor.failed = size > FRAME_MAX
    if _int16(&cursor) != FETCH:
        return False
    frame.version = _int16(&cursor)
    if not FIRST_VERSION <= frame.version <= LAST_VERSION:
        return False
    flexible = frame.version >= FLEXIBLE_FROM
    frame.by_id = frame.version >= TOPIC_IDS_FROM
    frame.correlation_id = _int32(&cursor)
    frame.client_size = _int16(&cursor)
    frame.client_at = <int32_t> cursor.at
    _skip(&cursor, max(0, frame.client_size))
    if frame.client_size < 0:
        frame.client_size = -1
    if flexible and _uint8(&cursor) != 0:
        return False
    if frame.version < REPLICA_STATE_FROM and _int32(&cursor) >= 0:
        return False  # a follower
    frame.max_wait_ms = max(0, _int32(&cursor))
    frame.min_bytes = max(0, _int32(&cursor))
    frame.max_bytes = max(0, _int32(&cursor))
    isolation = _uint8(&cursor)
    frame.committed_only = isolation == 1
    frame.session_id = 0
    frame.session_epoch = NO_SESSION
    if frame.version >= SESSIONS_FROM:
        frame.session_id = _int32(&cursor)
        frame.session_epoch = _int32(&cursor)
    topic_count = _count(&cursor, flexible)
    if cursor.failed or isolation > 1:
        return False
    if frame.session_id == NO_SESSION_ID:
        if frame.session_epoch != NO_SESSION or topic_count == 0:
            return False
    elif frame.session_epoch <= 0:
        return False  # closes the session
    if topic_count > cursor.end - cursor.at:
        return False
    reserve_topics(frame, topic_count)
    frame.topic_count = <int32_t> topic_count
    frame.entry_count = 0
    for index in range(topic_count):
        topic = &frame.topics[index]
        topic.size = ID_SIZE if frame.version >= TOPIC_IDS_FROM else _text_size(&cursor, flexible)
        topic.at = <int32_t> cursor.at
        _skip(&cursor, topic.size)
        count = _count(&cursor, flexible)
        if cursor.failed or count <= 0 or count > cursor.end - cursor.at:
            return False
        topic.first = frame.entry_count
        topic.count = <int32_t> count
        reserve_entries(frame, frame.entry_count + count)
        for number in range(count):
            entry = &frame.entries[frame.entry_count]
            entry.number = _int32(&cursor)
            entry.leader_epoch = _int32(&cursor) if frame.version >= LEADER_EPOCH_FROM else -1
            entry.offset = _int64(&cursor)
            entry.last_fetched_epoch = _int32(&cursor) if flexible else -1
            if frame.version >= LOG_START_FROM:
                _skip(&cursor, 8)
            entry.max_bytes = max(0, _int32(&cursor))
            if flexible and _uint8(&cursor) != 0:
                return False
            if cursor.failed:
                return False
            frame.entry_count += 1
        if flexible and _uint8(&cursor) != 0:
            return False
    return not cursor.failed and _has_plain_tail(&cursor, frame.version, flexible)


cdef bint _has_plain_tail(Cursor* cursor, int32_t version, bint flexible) noexcept nogil:
    """Check what follows the topics. Python reads the forgotten topics, tagged fields, and a rack beyond ASCII."""
    cdef int64_t rack, at
    if version < SESSIONS_FROM:
        return True
    if _count(cursor, flexible) != 0 or cursor.failed:
        return False
    if version < RACK_FROM:
        return True
    rack = cursor.at
    _skip(cursor, _text_size(cursor, flexible))
    if flexible and _uint8(cursor) != 0:
        return False
    if cursor.failed:
        return False
    for at in range(rack, cursor.at):
        if cursor.data[at] >= 0x80:
            return False
    return True


cdef int64_t response_bound(const FetchFrame* frame) noexcept nogil:
    """Return a size that no response frame exceeds, its records left out."""
    cdef int64_t names = 0
    cdef int32_t index
    for index in range(frame.topic_count):
        names += frame.topics[index].size
    return 32 + names + 16 * <int64_t> frame.topic_count + 64 * <int64_t> frame.entry_count


cdef int64_t encode_response(
    const FetchFrame* frame, const uint8_t* data, FetchedPart* parts, bint with_records, uint8_t* out
) noexcept nogil:
    """Write the response frame and set each part's `records_at`, where its records belong. Returns its bytes.

    `data` is the request's frame. With records, space is left for them; without, they are to be inserted. `out` has
    room for `response_bound`, and for the records.
    """
    cdef bint flexible = frame.version >= FLEXIBLE_FROM
    cdef int64_t inserted = 0
    cdef int32_t index, number
    cdef const FetchTopic* topic
    cdef FetchedPart* part
    cdef uint8_t* at = put_int32(out + 4, frame.correlation_id)
    if flexible:
        at = _put_uint8(at, 0)
    at = put_int32(at, 0)  # throttle time
    if frame.version >= SESSIONS_FROM:
        at = put_int32(put_int16(at, 0), frame.session_id)  # after the error
    at = _put_count(at, frame.topic_count, flexible)
    for index in range(frame.topic_count):
        topic = &frame.topics[index]
        if frame.version < TOPIC_IDS_FROM:
            at = put_unsigned(at, topic.size + 1) if flexible else put_int16(at, topic.size)
        memcpy(at, data + topic.at, topic.size)
        at += topic.size
        at = _put_count(at, topic.count, flexible)
        for number in range(topic.first, topic.first + topic.count):
            part = &parts[number]
            at = put_int32(at, frame.entries[number].number)
            at = put_int16(at, 0)
            at = put_int64(at, part.high_watermark)
            at = put_int64(at, part.last_stable_offset)
            if frame.version >= LOG_START_FROM:
                at = put_int64(at, part.log_start_offset)
            at = _put_count(at, 0 if frame.committed_only else -1, flexible)  # aborted transactions
            if frame.version >= PREFERRED_REPLICA_FROM:
                at = put_int32(at, -1)
            if flexible:
                at = put_unsigned(at, part.records_size + 1)
            else:
                at = put_int32(at, <int32_t> part.records_size)
            part.records_at = at - out
            if with_records:
                at += part.records_size
            else:
                inserted += part.records_size
            if flexible:
                at = _put_uint8(at, 0)
        if flexible:
            at = _put_uint8(at, 0)
    if flexible:
        at = _put_uint8(at, 0)
    put_int32(out, <int32_t> (at - out - 4 + inserted))
    return at - out


# --- reading: a read beyond the end returns 0 and sets `failed` ------------------------------------------------------


cdef inline bint _has(Cursor* cursor, int64_t size) noexcept nogil:
    if cursor.failed or size > cursor.end - cursor.at:
        cursor.failed = True
        return False
    return True


cdef inline void _skip(Cursor* cursor, int64_t size) noexcept nogil:
    if _has(cursor, size):
        cursor.at += size


cdef inline int32_t _uint8(Cursor* cursor) noexcept nogil:
    if not _has(cursor, 1):
        return 0
    cursor.at += 1
    return cursor.data[cursor.at - 1]


cdef inline int32_t _int16(Cursor* cursor) noexcept nogil:
    cdef const uint8_t* at = cursor.data + cursor.at
    if not _has(cursor, 2):
        return 0
    cursor.at += 2
    return int16_at(at)


cdef inline int32_t _int32(Cursor* cursor) noexcept nogil:
    cdef const uint8_t* at = cursor.data + cursor.at
    if not _has(cursor, 4):
        return 0
    cursor.at += 4
    return int32_at(at)


cdef inline int64_t _int64(Cursor* cursor) noexcept nogil:
    cdef const uint8_t* at = cursor.data + cursor.at
    if not _has(cursor, 8):
        return 0
    cursor.at += 8
    return int64_at(at)


cdef inline int64_t _unsigned(Cursor* cursor) noexcept nogil:
    """Read an unsigned varint of at most three bytes: more than a frame can hold is refused in Python."""
    cdef int64_t value = 0
    cdef int32_t part
    cdef int shift
    for shift in range(0, 21, 7):
        part = _uint8(cursor)
        value |= <int64_t> (part & 0x7F) << shift
        if part < 0x80:
            return value
    cursor.failed = True
    return 0


cdef inline int64_t _count(Cursor* cursor, bint flexible) noexcept nogil:
    """Read the count of an array, which must not be null."""
    cdef int64_t count = _unsigned(cursor) - 1 if flexible else _int32(cursor)
    if count < 0:
        cursor.failed = True
        return 0
    return count


cdef inline int32_t _text_size(Cursor* cursor, bint flexible) noexcept nogil:
    """Read the size of a string, which must not be null."""
    cdef int64_t size = _unsigned(cursor) - 1 if flexible else _int16(cursor)
    if size < 0:
        cursor.failed = True
        return 0
    return <int32_t> size


# --- writing --------------------------------------------------------------------------------------------------------


cdef inline uint8_t* _put_uint8(uint8_t* at, uint8_t value) noexcept nogil:
    at[0] = value
    return at + 1


cdef inline uint8_t* _put_count(uint8_t* at, int32_t count, bint flexible) noexcept nogil:
    """Write the count of an array; -1 is null."""
    return put_unsigned(at, count + 1) if flexible else put_int32(at, count)
