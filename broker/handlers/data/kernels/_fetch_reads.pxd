# cython: language_level=3
"""Reads of a fetch's partitions, and the response: see _fetch_reads.pyx."""

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t

from barnabas.broker.network.kernels._frames cimport Outgoing
from barnabas.broker.quotas.kernels._session_quota cimport FetchCount
from barnabas.broker.storage.kernels._read cimport Slice
from barnabas.protocol.kafka.kernels._fetch cimport FetchedPart, FetchFrame


cdef class FetchReads:
    """The results of one read of all partitions of a fetch, by their place in its frame."""

    # A slice with records has a reference to its file.
    cdef Slice* slices
    cdef FetchedPart* parts
    cdef int32_t _capacity
    cdef int64_t _fetch_max_bytes
    cdef int64_t _max_bytes  # of the last read
    cdef int64_t _records_size
    cdef bint _has_later_segments
    cdef FetchCount _count  # of the response, for a client with quotas
    # The last response of a wake, whose records begin at `_shared_at` and end at the log end `_shared_end`.
    cdef object _shared_end
    cdef bytes _shared
    cdef Outgoing _scratch
    cdef int64_t _shared_at
    cdef int64_t _shared_position
    cdef int64_t _shared_size

    cdef bint read(self, object client, const FetchFrame* frame, list partitions) except -1
    cdef int release(self, int32_t count) except -1
    cdef int64_t missing_bytes(self, const FetchFrame* frame) noexcept
    cdef bint is_within_quotas(self, object client, const FetchFrame* frame, double spent, double since) except -1
    cdef int count_records_out(self, object client, const FetchFrame* frame, list partitions) except -1
    cdef object respond(
        self, object client, const FetchFrame* frame, const uint8_t* data, list partitions, Outgoing* out
    )
    cdef object respond_late(self, object client, const FetchFrame* frame, const uint8_t* data, list partitions)

    cdef bint _read_one(
        self, object client, const FetchFrame* frame, PyObject* partition, int32_t index, int64_t* budget
    ) except -1
    cdef int _reserve(self, int32_t count) except -1
    cdef int64_t _counted_size(self, const FetchFrame* frame) noexcept
    cdef int _count_bytes_out(self, object client, const FetchFrame* frame, list partitions) except -1
    cdef bint _fill(self, const FetchFrame* frame, uint8_t* target) except -1
    cdef bint _fill_shared(self, const FetchFrame* frame, uint8_t* target, list partitions) except -1
    cdef int _share(self, const FetchFrame* frame, bytes response, list partitions) except -1
    cdef object _large(self, const FetchFrame* frame, const uint8_t* data)
