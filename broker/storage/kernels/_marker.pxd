# cython: language_level=3
"""The append of an end marker that commits to one log: see _marker.pyx."""

from libc.stdint cimport int32_t, int64_t, uint8_t

from barnabas.broker.storage.kernels._append cimport AppendKernel, Appended

cdef struct Marker:
    int64_t producer_id
    int64_t epoch
    int64_t coordinator_epoch
    int64_t timestamp
    int64_t first_offset  # of the transaction in the log, once it is ended there
    Py_ssize_t size
    uint8_t* data  # its batch
    bint has_own_epoch  # each transaction has an epoch of its own
    bint log_append_time  # the batch is marked so

cdef bint read_marker(object end, Marker* marker) except -1
cdef int append_commit_marker(
    AppendKernel log, Marker* marker, int32_t leader_epoch, int64_t now_ms, Appended* out
) except -1
