# cython: language_level=3
"""The msgpack values of plain native headers, with a bounds check before each byte, and native frames.

A read returns False where the header ends or has a value of another type. msgpack allows longer encodings than the
shortest one, and so do the reads; the writes use the shortest, as msgpack-python does.

    frame := uint8 magic = 0xB7 | uint24 header_size | header | records        (after its size field)
"""

from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

cdef enum:
    NATIVE_MAGIC = 0xB7
    PREFIX_SIZE = 4  # magic and header_size
    RESPONSE_PREFIX_SIZE = 8  # with the frame's size
    HEADER_FIELDS = 5
    HEADER_ARRAY = 0x95  # the usual encoding of an array of as many values
    HEADER_MAX = 65536  # larger headers are read, and their values counted, in Python
    CLIENT_ID_MAX = 8191  # bytes; the codec counts characters
    NAME_MAX = 32767
    INT32_MAX = 0x7FFFFFFF


cdef struct Cursor:
    const uint8_t* at
    const uint8_t* end


cdef struct Text:
    # `at` is NULL for nil.
    const uint8_t* at
    Py_ssize_t size


# --- reading


cdef inline bint _big_endian(Cursor* cursor, int size, uint64_t* value) noexcept nogil:
    cdef int index
    if cursor.end - cursor.at < size:
        return False
    value[0] = 0
    for index in range(size):
        value[0] = value[0] << 8 | cursor.at[index]
    cursor.at += size
    return True


cdef inline bint read_int(Cursor* cursor, int64_t low, int64_t high, int64_t* value) noexcept nogil:
    """Read an integer of any encoding within `low` and `high`, both included."""
    cdef uint64_t bits
    cdef uint8_t kind
    if cursor.at == cursor.end:
        return False
    kind = cursor.at[0]
    cursor.at += 1
    if kind < 0x80:
        value[0] = kind
    elif kind >= 0xE0:
        value[0] = <int8_t> kind
    elif kind < 0xCC or kind > 0xD3:
        return False
    else:
        if not _big_endian(cursor, 1 << (kind & 3), &bits):
            return False
        if kind == 0xD0:
            value[0] = <int8_t> bits
        elif kind == 0xD1:
            value[0] = <int16_t> bits
        elif kind == 0xD2:
            value[0] = <int32_t> bits
        elif kind != 0xD3 and bits >> 63:
            return False
        else:
            value[0] = <int64_t> bits
    return low <= value[0] <= high


cdef inline bint read_int32(Cursor* cursor, int32_t low, int32_t* value) noexcept nogil:
    """Read an integer from `low` to the largest int32."""
    cdef int64_t found
    if not read_int(cursor, low, INT32_MAX, &found):
        return False
    value[0] = <int32_t> found
    return True


cdef inline bint read_text(Cursor* cursor, Py_ssize_t max_size, Text* text) noexcept nogil:
    """Read a string of at most `max_size` bytes, which are not checked to be UTF-8."""
    cdef uint64_t size
    cdef uint8_t kind
    if cursor.at == cursor.end:
        return False
    kind = cursor.at[0]
    cursor.at += 1
    if kind & 0xE0 == 0xA0:
        size = kind & 0x1F
    elif not 0xD9 <= kind <= 0xDB or not _big_endian(cursor, 1 << (kind - 0xD9), &size):
        return False
    if size > <uint64_t> max_size or <Py_ssize_t> size > cursor.end - cursor.at:
        return False
    text.at = cursor.at
    text.size = <Py_ssize_t> size
    cursor.at += size
    return True


cdef inline bint read_optional_text(Cursor* cursor, Py_ssize_t max_size, Text* text) noexcept nogil:
    """Read a string or nil."""
    if cursor.at < cursor.end and cursor.at[0] == 0xC0:
        cursor.at += 1
        text.at = NULL
        text.size = 0
        return True
    return read_text(cursor, max_size, text)


cdef inline bint _read_count(Cursor* cursor, uint8_t fixed, uint8_t short_kind, int64_t* count) noexcept nogil:
    """Read the header of an array or a map of at most `HEADER_MAX` entries."""
    cdef uint64_t found
    cdef uint8_t kind
    if cursor.at == cursor.end:
        return False
    kind = cursor.at[0]
    cursor.at += 1
    if kind & 0xF0 == fixed:
        found = kind & 0x0F
    elif not short_kind <= kind <= short_kind + 1 or not _big_endian(cursor, 2 << (kind - short_kind), &found):
        return False
    if found > HEADER_MAX:
        return False
    count[0] = <int64_t> found
    return True


cdef inline bint read_array(Cursor* cursor, int64_t* count) noexcept nogil:
    """Read the header of an array."""
    return _read_count(cursor, 0x90, 0xDC, count)


cdef inline bint read_row(Cursor* cursor, int64_t size) noexcept nogil:
    """Read the header of an array of exactly `size` values."""
    cdef int64_t count
    return read_array(cursor, &count) and count == size


cdef inline bint read_map(Cursor* cursor, int64_t* count) noexcept nogil:
    """Read the header of a map."""
    return _read_count(cursor, 0x80, 0xDE, count)


cdef inline bint is_text(const Text* text, const char* expected, Py_ssize_t size) noexcept nogil:
    return text.size == size and memcmp(text.at, expected, size) == 0


cdef inline bint read_header(
    const uint8_t* data, Py_ssize_t size, int api, Cursor* header, int32_t* correlation_id, Text* client_id
) noexcept nogil:
    """Read a request's frame up to its body, at which `header` is left. The records begin at `header.end`."""
    cdef Py_ssize_t header_size
    cdef int64_t found
    cdef int64_t id
    if size < PREFIX_SIZE or data[0] != NATIVE_MAGIC:
        return False
    header_size = <Py_ssize_t> (<uint32_t> data[1] << 16 | <uint32_t> data[2] << 8 | data[3])
    if header_size > HEADER_MAX or header_size > size - PREFIX_SIZE:
        return False
    header.at = data + PREFIX_SIZE
    header.end = header.at + header_size
    if not read_row(header, HEADER_FIELDS):
        return False
    if not read_int(header, api, api, &found) or not read_int(header, 0, 0, &found):  # API and version
        return False
    if not read_int(header, -INT32_MAX - 1, INT32_MAX, &id):
        return False
    correlation_id[0] = <int32_t> id
    return read_optional_text(header, CLIENT_ID_MAX, client_id)


# --- writing


cdef inline uint8_t* _put_bytes(uint8_t* at, uint8_t kind, int size, uint64_t value) noexcept nogil:
    cdef int shift = 8 * size
    at[0] = kind
    at += 1
    while shift > 0:
        shift -= 8
        at[0] = <uint8_t> (value >> shift)
        at += 1
    return at


cdef inline uint8_t* put_int(uint8_t* at, int64_t value) noexcept nogil:
    """Write an integer, of at most 9 bytes."""
    if -32 <= value < 128:
        at[0] = <uint8_t> value
        return at + 1
    if value >= 0:
        if value < 1 << 8:
            return _put_bytes(at, 0xCC, 1, value)
        if value < 1 << 16:
            return _put_bytes(at, 0xCD, 2, value)
        if value >> 32 == 0:
            return _put_bytes(at, 0xCE, 4, value)
        return _put_bytes(at, 0xCF, 8, value)
    if value >= -(1 << 7):
        return _put_bytes(at, 0xD0, 1, <uint64_t> value)
    if value >= -(1 << 15):
        return _put_bytes(at, 0xD1, 2, <uint64_t> value)
    if value >= -<int64_t> INT32_MAX - 1:
        return _put_bytes(at, 0xD2, 4, <uint64_t> value)
    return _put_bytes(at, 0xD3, 8, <uint64_t> value)


cdef inline uint8_t* put_array(uint8_t* at, int64_t count) noexcept nogil:
    """Write the header of an array, of at most 5 bytes."""
    if count < 16:
        at[0] = <uint8_t> (0x90 | count)
        return at + 1
    if count < 1 << 16:
        return _put_bytes(at, 0xDC, 2, count)
    return _put_bytes(at, 0xDD, 4, count)


cdef inline uint8_t* put_text(uint8_t* at, const uint8_t* text, Py_ssize_t size) noexcept nogil:
    """Write a string of less than 64 KiB, with at most 3 bytes before it."""
    if size < 32:
        at[0] = <uint8_t> (0xA0 | size)
        at += 1
    elif size < 256:
        at = _put_bytes(at, 0xD9, 1, size)
    else:
        at = _put_bytes(at, 0xDA, 2, size)
    memcpy(at, text, size)
    return at + size


cdef inline uint8_t* put_response_header(uint8_t* at, int api, int32_t correlation_id) noexcept nogil:
    """Write the header of a successful response up to its body, of at most 9 bytes, after the frame's prefix."""
    at = put_array(at, HEADER_FIELDS)
    at = put_int(at, api)
    at = put_int(at, 0)  # version
    at = put_int(at, correlation_id)
    return put_int(at, 0)  # error


cdef inline void put_prefix(uint8_t* frame, int64_t header_size, int64_t records_size) noexcept nogil:
    """Write the sizes and the magic at the beginning of a frame."""
    cdef uint64_t size = 4 + header_size + records_size
    cdef uint64_t prefix = size << 32 | <uint64_t> NATIVE_MAGIC << 24 | <uint64_t> header_size
    cdef int index
    for index in range(RESPONSE_PREFIX_SIZE):
        frame[index] = <uint8_t> (prefix >> 56 - 8 * index)
