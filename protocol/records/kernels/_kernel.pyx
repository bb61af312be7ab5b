# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Per-record work, compiled. kernel_python.py is its Python twin, function by function, and documents each one.

A change here needs the same change in the twin: results, errors, indexes and reasons are equal, and tests/protocol run
both. Bytes are read through plain pointers, so every read is preceded by a bounds check: a position is compared with the
end of the record or buffer before it is used, sizes are compared by subtraction (`size > end - at`), which cannot
overflow, and each byte is read only once, so that a buffer changed by another thread gives a wrong result at worst.
The GIL is released for buffers of at least RELEASE_BYTES; below, releasing it costs more than the work.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE, PyByteArray_Resize
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.ref cimport Py_INCREF
from cpython.tuple cimport PyTuple_SET_ITEM
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from barnabas.protocol.records.kernels._big_endian cimport int32_at, int64_at, put_int16, put_int32, put_int64
from barnabas.protocol.records.kernels._varint cimport VARINT_FINE, get_varint, put_varint, varint_size
from barnabas.protocol.records.kernels._walk cimport (
    BAD_COUNT,
    BAD_HEADERS,
    BAD_OFFSET,
    BYTES_AFTER_LAST,
    FINE,
    Fault,
    Payload,
    Summary,
    Walk,
    add_overflow,
    payload_of,
    start_walk,
    step,
    summarize,
)
from barnabas.protocol.records.errors import REASONS as _REASONS, CorruptRecordError, InvalidRecordError
from barnabas.protocol.records.record import Record, RecordsSummary

cdef extern from "_crc32c.h":
    void crc32c_prepare()
    uint32_t crc32c_of(const uint8_t* data, size_t size) noexcept nogil

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        object (*tp_alloc)(PyTypeObject*, Py_ssize_t)
    void PyObject_GC_UnTrack(void*)

# As in layout.py; tests/protocol assert it.
cdef enum:
    HEADER_SIZE = 61
    LOG_OVERHEAD = 12
    MAGIC_V2 = 2
    NO_TIMESTAMP = -1
    HEAD_BYTES = 27  # up to and including the last offset delta
    ATTRIBUTES_POSITION = 21
    CRC_POSITION = 17
    MAGIC_END = 17
    MIN_MESSAGE_LENGTH = 14
    RELEASE_BYTES = 32768

cdef int64_t INT32_MAX = 0x7FFFFFFF
cdef int64_t INT64_MAX = 0x7FFFFFFFFFFFFFFF
cdef uint32_t MURMUR_SEED = 0x9747B28C
cdef uint32_t MURMUR_FACTOR = 0x5BD1E995

cdef tuple REASONS = _REASONS

crc32c_prepare()

cdef struct Head:
    int64_t base_offset
    int64_t length
    int64_t magic
    int64_t last_offset_delta


# --- the public functions -------------------------------------------------------------------------------------------


def check_payload(payload, int64_t count, int64_t last_offset_delta, int64_t base_timestamp, bint contiguous):
    """See kernel_python.check_payload."""
    cdef Py_buffer view
    cdef Payload records
    cdef Walk walk
    cdef Summary summary
    cdef Fault fault
    PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
    records = payload_of(&view, count, last_offset_delta, base_timestamp, contiguous)
    if view.len >= RELEASE_BYTES:
        with nogil:
            fault = summarize(&records, &walk, &summary)
    else:
        fault = summarize(&records, &walk, &summary)
    PyBuffer_Release(&view)
    if fault != FINE:
        raise _error(fault, walk.index)
    result = (<PyTypeObject*> RecordsSummary).tp_alloc(<PyTypeObject*> RecordsSummary, 5)
    _set(result, 0, summary.max_timestamp)
    _set(result, 1, summary.max_offset_delta)
    _set(result, 2, summary.min_timestamp)
    _set(result, 3, summary.null_keys)
    _set(result, 4, records.total)
    return result


def decode_payload(
    payload,
    int64_t count,
    int64_t base_offset,
    int64_t last_offset_delta,
    int64_t base_timestamp,
    append_timestamp,
):
    """See kernel_python.decode_payload."""
    return _decode(payload, count, base_offset, last_offset_delta, base_timestamp, append_timestamp, Record, None)


def decode_fetched(
    payload,
    int64_t count,
    int64_t base_offset,
    int64_t last_offset_delta,
    int64_t base_timestamp,
    append_timestamp,
    type kind not None,
    topic,
    partition,
    timestamp_type,
):
    """See kernel_python.decode_fetched."""
    if not issubclass(kind, tuple):
        raise TypeError(f"{kind.__name__} is not a kind of tuple")
    around = (topic, partition, timestamp_type)
    return _decode(payload, count, base_offset, last_offset_delta, base_timestamp, append_timestamp, kind, around)


cdef list _decode(
    payload,
    int64_t count,
    int64_t base_offset,
    int64_t last_offset_delta,
    int64_t base_timestamp,
    append_timestamp,
    type kind,
    tuple around,
):
    """Return all records: as Record if `around` is None, else as rows of `kind` with its three fields."""
    cdef Py_buffer view
    cdef Payload payload_records
    cdef Walk walk
    cdef Fault fault
    cdef int64_t offset
    cdef Py_ssize_t field
    cdef list records = []
    PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
    try:
        payload_records = payload_of(&view, count, last_offset_delta, base_timestamp, False)
        fault = start_walk(&payload_records, &walk)
        while fault == FINE and walk.index < count:
            fault = step(&payload_records, &walk)
            if fault == FINE and add_overflow(base_offset, walk.offset_delta, &offset):
                fault = BAD_OFFSET
            if fault != FINE:
                break
            if around is None:
                record = (<PyTypeObject*> kind).tp_alloc(<PyTypeObject*> kind, 5)
                field = 0
            else:
                record = (<PyTypeObject*> kind).tp_alloc(<PyTypeObject*> kind, 8)
                _set(record, 0, around[0])
                _set(record, 1, around[1])
                field = 2
            _set(record, field, offset)
            _set(record, field + 1, walk.timestamp if append_timestamp is None else append_timestamp)
            field += 2
            if around is not None:
                _set(record, field, around[2])
                field += 1
            _set(record, field, _nullable(view.buf, walk.key_at, walk.key_size))
            _set(record, field + 1, _nullable(view.buf, walk.value_at, walk.value_size))
            _set(record, field + 2, _headers(view.buf, &walk) if walk.header_count else ())
            # A record cannot be part of a cycle, but CPython never untracks a NamedTuple itself, so every collection
            # visits it: with half a million records kept, a full collection took 300 ms, and reading was six times
            # slower.
            PyObject_GC_UnTrack(<void*> record)
            records.append(record)
            walk.index += 1
        if fault == FINE and walk.at != payload_records.total:
            fault = BYTES_AFTER_LAST
        if fault != FINE:
            raise _error(fault, walk.index)
    finally:
        PyBuffer_Release(&view)
    return records


def find_timestamp(
    payload, int64_t count, int64_t last_offset_delta, int64_t base_timestamp, int64_t target
):
    """See kernel_python.find_timestamp."""
    cdef Py_buffer view
    cdef Payload records
    cdef Walk walk
    cdef Fault fault
    PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
    records = payload_of(&view, count, last_offset_delta, base_timestamp, False)
    if view.len >= RELEASE_BYTES:
        with nogil:
            fault = _seek(&records, &walk, target)
    else:
        fault = _seek(&records, &walk, target)
    PyBuffer_Release(&view)
    if fault != FINE:
        raise _error(fault, walk.index)
    return (walk.offset_delta, walk.timestamp) if walk.index < count else None


def append_record(bytearray target not None, int64_t limit, offset_delta, timestamp_delta, key, value, headers):
    """See kernel_python.append_record."""
    return _append(
        target, limit, _checked_offset_delta(offset_delta), _checked_timestamp_delta(timestamp_delta),
        _as_bytes(key), _as_bytes(value), _encoded(headers),
    )


def append_records(
    bytearray target not None, int64_t limit, offset_delta, timestamp_delta, keys, values, Py_ssize_t begin, headers
):
    """See kernel_python.append_records."""
    cdef int64_t time_delta = _checked_timestamp_delta(timestamp_delta)
    cdef list encoded = _encoded(headers)
    cdef Py_ssize_t start = PyByteArray_GET_SIZE(target)
    cdef Py_ssize_t index = begin
    cdef Py_ssize_t end = len(values)
    try:
        while index < end:
            if not _append(
                target, limit, _checked_offset_delta(offset_delta + (index - begin)), time_delta,
                None if keys is None else _as_bytes(keys[index]), _as_bytes(values[index]), encoded,
            ):
                break
            index += 1
    except BaseException:
        PyByteArray_Resize(target, start)
        raise
    return index - begin


cdef int64_t _append(
    bytearray target, int64_t limit, int64_t offset_delta, int64_t timestamp_delta, bytes key, bytes value, list headers
) except -1:
    """Write a record to the end of `target`; return its size, or 0 beyond the limit."""
    cdef int64_t body = _body_size(offset_delta, timestamp_delta, key, value, headers)
    cdef int64_t size = varint_size(body) + body
    cdef Py_ssize_t start = PyByteArray_GET_SIZE(target)
    cdef uint8_t* out
    if 0 <= limit < start + size:
        return 0
    PyByteArray_Resize(target, start + size)
    out = <uint8_t*> PyByteArray_AS_STRING(target) + start
    out = put_varint(out, body)
    out[0] = 0
    out = put_varint(out + 1, timestamp_delta)
    out = put_varint(out, offset_delta)
    out = _put_nullable(out, key)
    out = _put_nullable(out, value)
    out = put_varint(out, 0 if headers is None else len(headers))
    if headers is not None:
        for header_key, header_value in headers:
            out = _put_nullable(out, <bytes> header_key)
            out = _put_nullable(out, <bytes> header_value)
    return size


def one_record_batch(timestamp, key, value):
    """See kernel_python.one_record_batch."""
    cdef int64_t timestamp_ms = _checked_timestamp(timestamp)
    cdef bytes key_bytes = _as_bytes(key)
    cdef bytes value_bytes = _as_bytes(value)
    cdef int64_t body = _body_size(0, 0, key_bytes, value_bytes, None)
    cdef int64_t size = HEADER_SIZE + varint_size(body) + body
    cdef bytearray batch = bytearray(0)
    cdef uint8_t* data
    cdef uint8_t* out
    PyByteArray_Resize(batch, size)
    data = <uint8_t*> PyByteArray_AS_STRING(batch)
    out = put_int32(put_int64(data, 0), <uint32_t> (size - LOG_OVERHEAD))
    out = put_int32(out, <uint32_t> -1)  # partition leader epoch: none yet
    out[0] = MAGIC_V2
    out = put_int16(data + ATTRIBUTES_POSITION, 0)
    out = put_int32(out, 0)  # last offset delta
    out = put_int64(put_int64(out, timestamp_ms), timestamp_ms)
    out = put_int32(put_int16(put_int64(out, <uint64_t> -1), -1), <uint32_t> -1)  # no producer
    out = put_varint(put_int32(out, 1), body)
    out[0] = 0
    out = put_varint(put_varint(out + 1, 0), 0)
    out = _put_nullable(_put_nullable(out, key_bytes), value_bytes)
    out[0] = 0  # no headers
    put_int32(data + CRC_POSITION, crc32c_of(data + ATTRIBUTES_POSITION, size - ATTRIBUTES_POSITION))
    return batch


def find_batch(buffer, int64_t position, int64_t target_offset):
    """See kernel_python.find_batch."""
    cdef Py_buffer view
    cdef Head head
    cdef bint sound, found = False
    if position < 0:
        raise ValueError(f"position {position} is negative")
    PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
    while True:
        if not _read_head(<const uint8_t*> view.buf, position, view.len, &head):
            sound = True
            break
        sound = _is_sound(&head)
        if not sound:
            break
        if head.base_offset + head.last_offset_delta >= target_offset:
            found = True
            break
        position += head.length + LOG_OVERHEAD
    PyBuffer_Release(&view)
    if not sound:
        raise CorruptRecordError(
            f"no batch at position {position}: magic {head.magic}, length {head.length}, "
            f"base offset {head.base_offset}, last offset delta {head.last_offset_delta}"
        )
    if found:
        return position, head.base_offset, head.base_offset + head.last_offset_delta, head.length + LOG_OVERHEAD
    return position, -1, -1, 0


def find_lz4_end(frame, Py_ssize_t position, int gap):
    """See kernel_python.find_lz4_end."""
    cdef Py_buffer view
    cdef const uint8_t* data
    cdef Py_ssize_t size, end = -1
    PyObject_GetBuffer(frame, &view, PyBUF_SIMPLE)
    data = <const uint8_t*> view.buf
    while 0 <= position <= view.len - 4:
        size = data[position] | data[position + 1] << 8 | data[position + 2] << 16 | (data[position + 3] & 0x7F) << 24
        if size == 0 or (
            size == 1 and not data[position + 3] & 0x80 and position < view.len - 4 and data[position + 4] < 16
        ):
            end = position
            break
        position += 4 + size + gap
    PyBuffer_Release(&view)
    return end


def murmur2(key):
    """See kernel_python.murmur2."""
    cdef Py_buffer view
    cdef uint32_t mixed
    PyObject_GetBuffer(key, &view, PyBUF_SIMPLE)
    mixed = _murmur2(<const uint8_t*> view.buf, view.len)
    PyBuffer_Release(&view)
    return <int32_t> mixed


# --- what a walk is for ---------------------------------------------------------------------------------------------


cdef Fault _seek(const Payload* records, Walk* walk, int64_t target) noexcept nogil:
    """Stop at the first record of `target` or later; walk.index is the record count when no record is."""
    cdef Fault fault = start_walk(records, walk)
    if fault != FINE:
        return fault
    while walk.index < records.count:
        fault = step(records, walk)
        if fault != FINE or walk.timestamp >= target:
            return fault
        walk.index += 1
    return FINE if walk.at == records.total else BYTES_AFTER_LAST


cdef _error(Fault fault, int64_t index):
    return InvalidRecordError(-1 if fault == BAD_COUNT or fault == BYTES_AFTER_LAST else index, REASONS[<int> fault])


# --- making Python objects ------------------------------------------------------------------------------------------


cdef inline void _set(object new_tuple, Py_ssize_t index, object item):
    Py_INCREF(item)
    PyTuple_SET_ITEM(new_tuple, index, item)


cdef inline object _nullable(const void* data, int64_t at, int64_t size):
    return None if size < 0 else PyBytes_FromStringAndSize(<const char*> data + at, size)


cdef tuple _headers(const void* data, const Walk* walk):
    """Return the headers of a record that the walk has checked."""
    cdef int64_t at = walk.headers_at
    cdef int64_t left = walk.header_count
    cdef int64_t size
    cdef list headers = []
    while left:
        # The record was checked up to walk.at. A buffer changed since must not make it read past that.
        if get_varint(<const uint8_t*> data, &at, walk.at, &size) != VARINT_FINE or not 0 <= size <= walk.at - at:
            raise _error(BAD_HEADERS, walk.index)
        key = PyUnicode_DecodeUTF8(<char*> data + at, size, "surrogateescape")
        at += size
        if get_varint(<const uint8_t*> data, &at, walk.at, &size) != VARINT_FINE or not -1 <= size <= walk.at - at:
            raise _error(BAD_HEADERS, walk.index)
        headers.append((key, _nullable(data, at, size)))
        if size > 0:
            at += size
        left -= 1
    return tuple(headers)


# --- writing records ------------------------------------------------------------------------------------------------


cdef int64_t _checked_offset_delta(value) except -1:
    cdef int64_t delta = _as_int64(value, "offset delta")
    if not 0 <= delta <= INT32_MAX:
        raise ValueError(f"offset delta {value} is out of range")
    return delta


cdef int64_t _checked_timestamp_delta(value) except? -1:
    return _as_int64(value, "timestamp delta")


cdef int64_t _checked_timestamp(value) except? -1:
    return _as_int64(value, "timestamp")


cdef int64_t _as_int64(value, str name) except? -1:
    try:
        return value
    except OverflowError:
        raise ValueError(f"{name} {value} does not fit an int64") from None


cdef inline bytes _as_bytes(value):
    if value is None or type(value) is bytes:
        return value
    return bytes(memoryview(value))


cdef list _encoded(headers):
    """Return the headers as pairs of bytes; None without headers."""
    cdef list encoded
    if not headers:
        return None
    encoded = []
    for key, value in headers:
        encoded.append((key.encode("utf-8", "surrogateescape"), _as_bytes(value)))
    return encoded


cdef int64_t _body_size(int64_t offset_delta, int64_t timestamp_delta, bytes key, bytes value, list headers) except -1:
    cdef int64_t body = 1 + varint_size(timestamp_delta) + varint_size(offset_delta)
    body += varint_size(0 if headers is None else len(headers)) + _nullable_size(key) + _nullable_size(value)
    if headers is not None:
        for header_key, header_value in headers:
            body += _nullable_size(<bytes> header_key) + _nullable_size(<bytes> header_value)
    if body > INT32_MAX:
        raise ValueError(f"a record of {body} bytes is larger than 2 GiB")
    return body


cdef inline int64_t _nullable_size(bytes value):
    return 1 if value is None else varint_size(PyBytes_GET_SIZE(value)) + PyBytes_GET_SIZE(value)


cdef inline uint8_t* _put_nullable(uint8_t* out, bytes value):
    cdef Py_ssize_t size
    if value is None:
        out[0] = 1  # -1
        return out + 1
    size = PyBytes_GET_SIZE(value)
    out = put_varint(out, size)
    memcpy(out, PyBytes_AS_STRING(value), size)
    return out + size


# --- batch heads ----------------------------------------------------------------------------------------------------


cdef inline bint _read_head(const uint8_t* data, int64_t position, int64_t end, Head* head) noexcept nogil:
    """Read a batch's head; False when the buffer ends within it. Formats 0 and 1 end their head with the magic byte."""
    cdef const uint8_t* at
    if end - position < MAGIC_END:
        return False
    at = data + position
    head.magic = <signed char> at[16]
    if head.magic == MAGIC_V2 and end - position < HEAD_BYTES:
        return False
    head.base_offset = int64_at(at)
    head.length = int32_at(at + 8)
    head.last_offset_delta = int32_at(at + 23) if head.magic == MAGIC_V2 else 0
    return True


cdef inline bint _is_sound(const Head* head) noexcept nogil:
    return (
        0 <= head.magic <= MAGIC_V2
        and head.length >= (HEADER_SIZE - LOG_OVERHEAD if head.magic == MAGIC_V2 else MIN_MESSAGE_LENGTH)
        and head.base_offset >= 0
        and 0 <= head.last_offset_delta <= INT64_MAX - head.base_offset
    )


cdef uint32_t _murmur2(const uint8_t* data, int64_t size) noexcept nogil:
    cdef uint32_t mixed = MURMUR_SEED ^ <uint32_t> size
    cdef uint32_t word
    cdef int64_t at = 0
    while size - at >= 4:
        word = data[at] | <uint32_t> data[at + 1] << 8 | <uint32_t> data[at + 2] << 16 | <uint32_t> data[at + 3] << 24
        word *= MURMUR_FACTOR
        word ^= word >> 24
        word *= MURMUR_FACTOR
        mixed = mixed * MURMUR_FACTOR ^ word
        at += 4
    if size > at:
        word = data[at]
        if size - at > 1:
            word |= <uint32_t> data[at + 1] << 8
        if size - at > 2:
            word |= <uint32_t> data[at + 2] << 16
        mixed = (mixed ^ word) * MURMUR_FACTOR
    mixed = (mixed ^ mixed >> 13) * MURMUR_FACTOR
    return mixed ^ mixed >> 15
