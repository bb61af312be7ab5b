# cython: language_level=3
"""Fetch requests and responses of Kafka's protocol as C structures: see _fetch.pyx."""

from libc.stdint cimport int64_t, uint8_t

from barnabas.protocol.messages.data.kernels._fetch cimport FetchedPart, FetchFrame


cdef bint parse_frame(const uint8_t* data, Py_ssize_t size, FetchFrame* frame) except -1
cdef int64_t response_bound(const FetchFrame* frame) noexcept nogil
cdef int64_t encode_response(
    const FetchFrame* frame, const uint8_t* data, FetchedPart* parts, bint with_records, uint8_t* out
) noexcept nogil
