# cython: language_level=3
"""Zigzag varints as inline C for all compiled kernels; varint.py is the plain Python form.

Only inline functions, so nothing is loaded at run time: each kernel contains its own copy.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t

cdef enum Varint:
    VARINT_FINE
    VARINT_CUT  # it runs past the end
    VARINT_BAD  # longer than its type allows, or out of the type's range


cdef inline Varint get_varint(const uint8_t* data, int64_t* position, int64_t end, int64_t* value) noexcept nogil:
    """Read a zigzag int32 that must end before `end`. The position moves on only when it is valid."""
    cdef int64_t at = position[0]
    cdef uint64_t raw = 0
    cdef int shift = 0
    cdef uint8_t byte
    while at < end:
        byte = data[at]
        at += 1
        raw |= <uint64_t> (byte & 0x7F) << shift
        if byte < 0x80:
            if raw >> 32:
                return VARINT_BAD
            value[0] = <int64_t> (raw >> 1) ^ -<int64_t> (raw & 1)
            position[0] = at
            return VARINT_FINE
        if shift == 28:
            return VARINT_BAD
        shift += 7
    return VARINT_CUT


cdef inline Varint get_varlong(const uint8_t* data, int64_t* position, int64_t end, int64_t* value) noexcept nogil:
    """Read a zigzag int64, otherwise as get_varint."""
    cdef int64_t at = position[0]
    cdef uint64_t raw = 0
    cdef int shift = 0
    cdef uint8_t byte
    while at < end:
        byte = data[at]
        at += 1
        raw |= <uint64_t> (byte & 0x7F) << shift
        if byte < 0x80:
            if shift == 63 and byte > 1:
                return VARINT_BAD
            value[0] = <int64_t> (raw >> 1) ^ -<int64_t> (raw & 1)
            position[0] = at
            return VARINT_FINE
        if shift == 63:
            return VARINT_BAD
        shift += 7
    return VARINT_CUT


cdef inline int64_t varint_size(int64_t value) noexcept nogil:
    cdef uint64_t zigzag = (<uint64_t> value << 1) ^ <uint64_t> (value >> 63)
    cdef int64_t size = 1
    while zigzag > 0x7F:
        zigzag >>= 7
        size += 1
    return size


cdef inline uint8_t* put_unsigned(uint8_t* out, uint64_t value) noexcept nogil:
    """Write an unsigned varint; return the address after it."""
    while value > 0x7F:
        out[0] = <uint8_t> (value & 0x7F | 0x80)
        out += 1
        value >>= 7
    out[0] = <uint8_t> value
    return out + 1


cdef inline uint8_t* put_varint(uint8_t* out, int64_t value) noexcept nogil:
    return put_unsigned(out, (<uint64_t> value << 1) ^ <uint64_t> (value >> 63))
