# cython: language_level=3
"""Produce requests of Kafka's protocol and their responses, as C structures: see _produce.pyx."""

from libc.stdint cimport int32_t, uint8_t

from barnabas.protocol.messages.data.kernels._produce cimport ProduceFrame


cdef bint parse_frame(uint8_t* data, Py_ssize_t size, ProduceFrame* frame) noexcept nogil
"""Parse a request (without its size field) into `frame`. Returns False for one that is not plain."""

cdef Py_ssize_t response_bound(const ProduceFrame* frame) noexcept nogil
"""Return how many bytes `encode_response` needs at most."""

cdef Py_ssize_t encode_response(ProduceFrame* frame, int32_t throttle_ms, uint8_t* out) noexcept nogil
"""Write the response frame, with its size field, in which every batch was appended. Returns its size."""

cdef bytes with_failure(bytes response, int version, Py_ssize_t result_at, int code, str message)
"""Return the response with an error and no base offset instead of the append's result at `result_at`."""

cdef bytes with_throttle(bytes response, int version, int32_t throttle_ms)
"""Return the response with this throttle time."""
