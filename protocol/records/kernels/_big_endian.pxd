# cython: language_level=3
"""Big-endian integers at any address, for all compiled kernels. The caller has checked the bounds.

Each `put` returns the address after the integer.
"""

from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t


cdef inline int16_t int16_at(const uint8_t* at) noexcept nogil:
    return <int16_t> (<uint16_t> at[0] << 8 | <uint16_t> at[1])


cdef inline uint32_t uint32_at(const uint8_t* at) noexcept nogil:
    return <uint32_t> at[0] << 24 | <uint32_t> at[1] << 16 | <uint32_t> at[2] << 8 | at[3]


cdef inline int32_t int32_at(const uint8_t* at) noexcept nogil:
    return <int32_t> uint32_at(at)


cdef inline int64_t int64_at(const uint8_t* at) noexcept nogil:
    return <int64_t> (<uint64_t> uint32_at(at) << 32 | uint32_at(at + 4))


cdef inline uint8_t* put_int16(uint8_t* at, int32_t value) noexcept nogil:
    """Write the low 16 bits of a number."""
    at[0] = <uint8_t> (<uint32_t> value >> 8)
    at[1] = <uint8_t> value
    return at + 2


cdef inline uint8_t* put_int32(uint8_t* at, uint32_t value) noexcept nogil:
    at[0] = <uint8_t> (value >> 24)
    at[1] = <uint8_t> (value >> 16)
    at[2] = <uint8_t> (value >> 8)
    at[3] = <uint8_t> value
    return at + 4


cdef inline uint8_t* put_int64(uint8_t* at, uint64_t value) noexcept nogil:
    return put_int32(put_int32(at, <uint32_t> (value >> 32)), <uint32_t> value)
