# cython: language_level=3
"""The append of one batch to one log: see _append.pyx."""

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t

from barnabas.broker.storage.kernels._placing cimport Place

cdef enum:
    APPENDED = 0
    UNUSUAL = 1  # nothing has changed, the batch included: the Python path appends or refuses it

# As AppendResult. A repeated batch is unusual, so `is_duplicate` is never set.
cdef struct Appended:
    int64_t base_offset
    int64_t last_offset
    int64_t log_append_time_ms
    int64_t log_start_offset
    int64_t size_bytes
    int64_t record_count
    bint flush_due
    bint acks_all_flush_due  # the same for a client's append with acks=all
    bint is_duplicate
    bint opens_transaction

# The header fields of a checked batch, and the timestamps that it is stored with.
cdef struct Batch:
    int64_t size
    int64_t last_offset_delta
    int64_t base_timestamp
    int64_t max_timestamp
    int64_t producer_id
    int64_t producer_epoch
    int64_t base_sequence
    int64_t record_count
    int32_t attributes
    bint restamped
    int64_t log_append_time_ms

cdef object result_of(const Appended* out)

cdef class AppendKernel:
    cdef object core
    cdef object _acquire
    cdef object _release
    cdef bint _recompresses
    cdef bint _takes_compressed
    cdef bint _compact
    cdef bint _log_append_time
    cdef int64_t _before_max_ms
    cdef int64_t _after_max_ms
    cdef int64_t _max_message_bytes
    cdef int64_t _segment_bytes
    cdef int64_t _flush_messages
    cdef bint _flush_acks_all

    cdef int append(
        self,
        object buffer_owner,
        uint8_t* data,
        Py_ssize_t size,
        int32_t leader_epoch,
        bint in_transaction,
        int64_t now_ms,
        Appended* out,
    ) except -1
    cdef int append_trusted(
        self, uint8_t* data, Py_ssize_t size, int32_t leader_epoch, int64_t now_ms, Appended* out
    ) except -1
    cdef bint _check_records(
        self, object buffer_owner, const uint8_t* data, int64_t now_ms, Batch* batch
    ) except -1
    cdef int _append(
        self, uint8_t* data, Batch* batch, int32_t leader_epoch, bint is_client, int64_t now_ms, Appended* out
    ) except -1
    cdef int _append_locked(
        self, uint8_t* data, Batch* batch, int32_t leader_epoch, bint is_client, int64_t now_ms, Appended* out
    ) except -1

cdef int fill_appended(AppendKernel log, const Place* place, bint is_client, Appended* out) except -1
