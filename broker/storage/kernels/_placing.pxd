# cython: language_level=3
"""Placement of one batch at the end of a log: see _placing.pyx."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint8_t

# The next entry of one index; `entries` is their number before it.
cdef struct IndexEntry:
    PyObject* index
    PyObject* map
    int64_t entries
    int64_t max_entries

# Where a batch goes. Objects are borrowed: they stay because the lock is held.
cdef struct Place:
    PyObject* segment
    PyObject* records
    PyObject* base_offset_number  # the object in `log_end_offset`
    PyObject* position_number  # the object in the file's `size_bytes`
    int64_t base_offset
    int64_t last_offset
    int64_t position
    int64_t size
    int64_t segment_base_offset
    int64_t max_timestamp
    int64_t since_index_entry
    int fd
    bint is_largest  # no earlier batch of the segment has as large a timestamp
    bint is_indexed
    bint adds_time
    IndexEntry offset_entry
    IndexEntry time_entry

cdef bint find_place(
    PyObject* core,
    int64_t size,
    int64_t last_offset_delta,
    int64_t max_timestamp,
    int64_t now_ms,
    int64_t segment_bytes,
    int64_t leader_epoch,
    Place* place,
) except -1
cdef bint write_batch(const uint8_t* data, Place* place) except -1
cdef int move_end(PyObject* core, const Place* place) except -1
