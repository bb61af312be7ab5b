# cython: language_level=3
"""Walk over the records of a version 2 payload as inline C, for all compiled kernels.

Call `start_walk`, then `step` once per record; it checks the record before anything of it is used, so positions and
sizes in Walk are within the payload. kernel_python.walk is the plain Python form and has the rules; faults are in its
order.
"""

from libc.stdint cimport int64_t, uint8_t

from barnabas.protocol.records.kernels._varint cimport VARINT_CUT, VARINT_FINE, Varint, get_varint, get_varlong

cdef extern from *:
    bint add_overflow "__builtin_add_overflow"(int64_t, int64_t, int64_t*) noexcept nogil

cdef enum:
    MIN_RECORD_SIZE = 7  # as in layout.py
    NO_TIMESTAMP = -1

cdef enum Fault:
    FINE
    CUT_SHORT
    BAD_VARINT
    BAD_SIZE
    BAD_OFFSET
    BAD_TIMESTAMP
    BAD_KEY
    BAD_VALUE
    BAD_HEADERS
    LEFT_OVER
    BAD_COUNT
    BYTES_AFTER_LAST

cdef struct Payload:
    const uint8_t* data
    int64_t total
    int64_t count
    int64_t last_offset_delta
    int64_t base_timestamp
    bint contiguous

cdef struct Walk:
    # The position of the walk and the record that it passed last. Positions and sizes are within the payload; a key or
    # value size of -1 is null.
    int64_t at
    int64_t index
    int64_t offset_delta
    int64_t timestamp
    int64_t key_at
    int64_t key_size
    int64_t value_at
    int64_t value_size
    int64_t headers_at
    int64_t header_count

cdef struct Summary:
    int64_t max_timestamp
    int64_t max_offset_delta
    int64_t min_timestamp
    int64_t null_keys


cdef inline Payload payload_of(
    Py_buffer* view, int64_t count, int64_t last_offset_delta, int64_t base_timestamp, bint contiguous
) noexcept nogil:
    cdef Payload records
    records.data = <const uint8_t*> view.buf
    records.total = view.len
    records.count = count
    records.last_offset_delta = last_offset_delta
    records.base_timestamp = base_timestamp
    records.contiguous = contiguous
    return records


cdef inline Fault start_walk(const Payload* records, Walk* walk) noexcept nogil:
    walk.at = 0
    walk.index = 0
    walk.offset_delta = -1
    if records.count < 0 or records.count > records.total // MIN_RECORD_SIZE:
        return BAD_COUNT
    return FINE


cdef inline Fault step(const Payload* records, Walk* walk) noexcept nogil:
    """Check the record at walk.at and move past it. The caller increments walk.index."""
    cdef const uint8_t* data = records.data
    cdef int64_t at = walk.at
    cdef int64_t size, end, value
    cdef Fault fault = _int32(data, &at, records.total, &size, CUT_SHORT)
    if fault != FINE:
        return fault
    if size < MIN_RECORD_SIZE - 1:
        return BAD_SIZE
    if size > records.total - at:
        return CUT_SHORT
    end = at + size
    at += 1  # attributes: no bit is defined
    fault = _int64(data, &at, end, &value)
    if fault != FINE:
        return fault
    if add_overflow(records.base_timestamp, value, &walk.timestamp):
        return BAD_TIMESTAMP
    fault = _int32(data, &at, end, &value, BAD_SIZE)
    if fault != FINE:
        return fault
    if records.contiguous:
        if value != walk.index:
            return BAD_OFFSET
    elif value <= walk.offset_delta or value > records.last_offset_delta:
        return BAD_OFFSET
    walk.offset_delta = value
    fault = _int32(data, &at, end, &value, BAD_SIZE)
    if fault != FINE:
        return fault
    if value < -1 or value > end - at:
        return BAD_KEY
    walk.key_at = at
    walk.key_size = value
    if value > 0:
        at += value
    fault = _int32(data, &at, end, &value, BAD_SIZE)
    if fault != FINE:
        return fault
    if value < -1 or value > end - at:
        return BAD_VALUE
    walk.value_at = at
    walk.value_size = value
    if value > 0:
        at += value
    fault = _int32(data, &at, end, &value, BAD_SIZE)
    if fault != FINE:
        return fault
    walk.headers_at = at
    walk.header_count = value
    if value:
        fault = skip_headers(data, &at, end, value)
        if fault != FINE:
            return fault
    if at != end:
        return LEFT_OVER
    walk.at = at
    return FINE


cdef inline Fault summarize(const Payload* records, Walk* walk, Summary* summary) noexcept nogil:
    """Walk over all records. See RecordsSummary; `summary` is unspecified after a fault."""
    cdef Fault fault = start_walk(records, walk)
    summary.max_timestamp = NO_TIMESTAMP
    summary.max_offset_delta = -1
    summary.min_timestamp = NO_TIMESTAMP
    summary.null_keys = 0
    if fault != FINE:
        return fault
    while walk.index < records.count:
        fault = step(records, walk)
        if fault != FINE:
            return fault
        if walk.timestamp > summary.max_timestamp:
            summary.max_timestamp = walk.timestamp
            summary.max_offset_delta = walk.offset_delta
        if walk.timestamp != NO_TIMESTAMP and (
            walk.timestamp < summary.min_timestamp or summary.min_timestamp == NO_TIMESTAMP
        ):
            summary.min_timestamp = walk.timestamp
        if walk.key_size < 0:
            summary.null_keys += 1
        walk.index += 1
    return FINE if walk.at == records.total else BYTES_AFTER_LAST


cdef inline Fault skip_headers(const uint8_t* data, int64_t* position, int64_t end, int64_t count) noexcept nogil:
    cdef int64_t at = position[0]
    cdef int64_t size
    cdef Fault fault
    if count < 0 or count > (end - at) // 2:
        return BAD_HEADERS
    while count:
        fault = _int32(data, &at, end, &size, BAD_HEADERS)
        if fault != FINE:
            return fault
        if size < 0 or size > end - at:
            return BAD_HEADERS
        at += size
        fault = _int32(data, &at, end, &size, BAD_HEADERS)
        if fault != FINE:
            return fault
        if size < -1 or size > end - at:
            return BAD_HEADERS
        if size > 0:
            at += size
        count -= 1
    position[0] = at
    return FINE


cdef inline Fault _int32(
    const uint8_t* data, int64_t* position, int64_t end, int64_t* value, Fault cut
) noexcept nogil:
    """Map a varint's state to a fault; `cut` is the fault of a varint that runs past `end`."""
    cdef Varint got = get_varint(data, position, end, value)
    return FINE if got == VARINT_FINE else cut if got == VARINT_CUT else BAD_VARINT


cdef inline Fault _int64(const uint8_t* data, int64_t* position, int64_t end, int64_t* value) noexcept nogil:
    cdef Varint got = get_varlong(data, position, end, value)
    return FINE if got == VARINT_FINE else BAD_SIZE if got == VARINT_CUT else BAD_VARINT
