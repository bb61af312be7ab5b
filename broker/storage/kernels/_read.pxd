# cython: language_level=3
"""Reads of stored batches without Python code: see _read.pyx."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t

cdef enum Read:
    READ_FOUND
    READ_NOTHING  # at the end of what the reader may see, or the first batch is above the limit
    READ_UNUSUAL  # LogReader.read decides

cdef struct Slice:
    PyObject* handle  # the FileHandle, a reference of the caller, who releases it
    int fd
    int64_t position
    int64_t size
    bint is_at_end  # the slice ends where the log ends
    bint has_later_segments  # later segments have more

cdef struct LogOffsets:
    int64_t start
    int64_t end  # the high watermark, too
    int64_t stable

cdef int read_offsets(PyObject* core, LogOffsets* offsets) except -1
cdef Read find_slice(
    PyObject* core,
    int64_t offset,
    int64_t max_bytes,
    int64_t upper_bound,
    bint at_least_one_batch,
    bint committed_only,
    Slice* found,
) except *
cdef Py_ssize_t read_cached(int fd, char* target, Py_ssize_t size, int64_t position) noexcept nogil
cdef object file_slice(const Slice* found)
