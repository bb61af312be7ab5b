# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Placement of one batch at the end of a log: the common case of LogSegment.append and of the end that readers see.

`find_place` reads everything and changes nothing, `write_batch` writes the batch and its index entries, `move_end` lets
readers see it. The caller holds the log's lock throughout. Unusual are: a log that is not online, a new leader epoch, a
roll, the first batch of a segment, an index page that is not allocated yet, and a write that fails.
"""

import mmap

from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.errno cimport EINTR, errno
from libc.stdint cimport int32_t
from libc.string cimport memcpy

from barnabas.broker.storage.kernels._numbers cimport new_number, new_tuple, set_number, set_shared
from barnabas.broker.storage.kernels._slots cimport get, get_int64, is_exactly, offset_of, put, set_int64
from barnabas.protocol.records.kernels._big_endian cimport put_int32, put_int64

from barnabas.broker.storage.files.file_records import FileRecords
from barnabas.broker.storage.index.offset_index import OffsetIndex
from barnabas.broker.storage.index.time_index import TimeIndex, TimestampOffset
from barnabas.broker.storage.log.core import LogCore
from barnabas.broker.storage.log.read import LogEnd
from barnabas.broker.storage.log.state import LogState
from barnabas.broker.storage.segment.log_segment import LogSegment

cdef extern from "Python.h":
    PyObject* PyTuple_GET_ITEM(PyObject* source, Py_ssize_t index)
    long long PyLong_AsLongLong(PyObject* number)
    PyObject* PyErr_Occurred()
    PyObject* Py_True
    void Py_DECREF(PyObject* object)

cdef extern from "<unistd.h>" nogil:
    ssize_t pwrite(int fd, const void* data, size_t size, int64_t position)
    int ftruncate(int fd, int64_t size)

cdef enum:
    OFFSET_ENTRY_BYTES = 8
    TIME_ENTRY_BYTES = 12
    RELEASE_BYTES = 32768  # the GIL is released to write as many bytes; below, releasing it costs more than it gives

cdef int64_t MAX_RELATIVE_OFFSET = 0x7FFFFFFF
cdef object ONLINE = LogState.ONLINE
cdef object Map = mmap.mmap

cdef Py_ssize_t CORE_STATE = offset_of(LogCore, "state")
cdef Py_ssize_t CORE_ACTIVE = offset_of(LogCore, "active")
cdef Py_ssize_t CORE_END = offset_of(LogCore, "end")
cdef Py_ssize_t CORE_LATEST_EPOCH = offset_of(LogCore, "latest_epoch")
cdef Py_ssize_t CORE_LOG_END_OFFSET = offset_of(LogCore, "log_end_offset")
cdef Py_ssize_t SEGMENT_BASE_OFFSET = offset_of(LogSegment, "base_offset")
cdef Py_ssize_t SEGMENT_LOG = offset_of(LogSegment, "log")
cdef Py_ssize_t SEGMENT_OFFSET_INDEX = offset_of(LogSegment, "offset_index")
cdef Py_ssize_t SEGMENT_TIME_INDEX = offset_of(LogSegment, "time_index")
cdef Py_ssize_t SEGMENT_INDEX_IS_FULL = offset_of(LogSegment, "index_is_full")
cdef Py_ssize_t SEGMENT_ROLL_AFTER = offset_of(LogSegment, "roll_after")
cdef Py_ssize_t SEGMENT_BY_WALL_CLOCK = offset_of(LogSegment, "rolls_by_wall_clock")
cdef Py_ssize_t SEGMENT_SINCE_ENTRY = offset_of(LogSegment, "_bytes_since_index_entry")
cdef Py_ssize_t SEGMENT_INTERVAL = offset_of(LogSegment, "_index_interval_bytes")
cdef Py_ssize_t SEGMENT_LARGEST = offset_of(LogSegment, "_largest")
cdef Py_ssize_t RECORDS_FD = offset_of(FileRecords, "fd")
cdef Py_ssize_t RECORDS_SIZE = offset_of(FileRecords, "size_bytes")
cdef Py_ssize_t RECORDS_PREALLOCATED = offset_of(FileRecords, "_preallocated_bytes")
cdef Py_ssize_t INDEX_ENTRIES = offset_of(OffsetIndex, "entries")
cdef Py_ssize_t INDEX_MAX_ENTRIES = offset_of(OffsetIndex, "max_entries")
cdef Py_ssize_t INDEX_ALLOCATED = offset_of(OffsetIndex, "_allocated_bytes")
cdef Py_ssize_t INDEX_MAP = offset_of(OffsetIndex, "_map")
cdef Py_ssize_t OFFSET_INDEX_LAST = offset_of(OffsetIndex, "last_offset")
cdef Py_ssize_t TIME_INDEX_LAST_OFFSET = offset_of(TimeIndex, "last_offset")
cdef Py_ssize_t TIME_INDEX_LAST_TIMESTAMP = offset_of(TimeIndex, "last_timestamp")

if (
    offset_of(TimeIndex, "entries") != INDEX_ENTRIES
    or offset_of(TimeIndex, "max_entries") != INDEX_MAX_ENTRIES
    or offset_of(TimeIndex, "_allocated_bytes") != INDEX_ALLOCATED
    or offset_of(TimeIndex, "_map") != INDEX_MAP
):
    raise ImportError("the slots that both indexes share have different offsets")


cdef bint find_place(
    PyObject* core,
    int64_t size,
    int64_t last_offset_delta,
    int64_t max_timestamp,
    int64_t now_ms,
    int64_t segment_bytes,
    int64_t leader_epoch,
    Place* place,
) except -1:
    """Fill `place` for a batch of `size` bytes; return whether it is a common case. Nothing is changed."""
    cdef PyObject* segment
    cdef PyObject* largest
    cdef int64_t latest_epoch, interval, roll_after, fd
    if get(core, CORE_STATE) != <PyObject*> ONLINE:
        return False
    if not get_int64(core, CORE_LATEST_EPOCH, &latest_epoch) or latest_epoch != leader_epoch:
        return False
    segment = get(core, CORE_ACTIVE)
    if not is_exactly(segment, <PyObject*> LogSegment):
        return False
    place.segment = segment
    place.records = get(segment, SEGMENT_LOG)
    if not is_exactly(place.records, <PyObject*> FileRecords):
        return False
    if not (
        get_int64(core, CORE_LOG_END_OFFSET, &place.base_offset)
        and get_int64(place.records, RECORDS_SIZE, &place.position)
        and get_int64(place.records, RECORDS_FD, &fd)
        and get_int64(segment, SEGMENT_BASE_OFFSET, &place.segment_base_offset)
        and get_int64(segment, SEGMENT_ROLL_AFTER, &roll_after)
        and get_int64(segment, SEGMENT_SINCE_ENTRY, &place.since_index_entry)
        and get_int64(segment, SEGMENT_INTERVAL, &interval)
    ):
        return False
    if (
        fd < 0
        or place.position <= 0
        or place.base_offset > 0x7FFFFFFFFFFFFFFF - 1 - last_offset_delta
        or place.position > segment_bytes - size
        or get(segment, SEGMENT_INDEX_IS_FULL) == Py_True
        or (now_ms if get(segment, SEGMENT_BY_WALL_CLOCK) == Py_True else max_timestamp) > roll_after
        or place.base_offset + last_offset_delta - place.segment_base_offset > MAX_RELATIVE_OFFSET
    ):
        return False
    largest = get(segment, SEGMENT_LARGEST)
    if not is_exactly(largest, <PyObject*> TimestampOffset):
        return False
    place.fd = <int> fd
    place.size = size
    place.last_offset = place.base_offset + last_offset_delta
    place.max_timestamp = max_timestamp
    place.base_offset_number = get(core, CORE_LOG_END_OFFSET)
    place.position_number = get(place.records, RECORDS_SIZE)
    place.is_largest = max_timestamp > PyLong_AsLongLong(PyTuple_GET_ITEM(largest, 0))
    place.is_indexed = place.since_index_entry > interval
    if place.is_indexed:
        return _find_entries(place, largest)
    return True


cdef bint _find_entries(Place* place, PyObject* largest) except -1:
    """Fill the index entries of a batch that gets some."""
    cdef int64_t last, largest_timestamp
    cdef PyObject* index = get(place.segment, SEGMENT_OFFSET_INDEX)
    if not is_exactly(index, <PyObject*> OffsetIndex) or not _find_slot(index, OFFSET_ENTRY_BYTES, &place.offset_entry):
        return False
    if not get_int64(index, OFFSET_INDEX_LAST, &last):
        return False
    if place.offset_entry.entries and place.last_offset <= last:
        return False
    index = get(place.segment, SEGMENT_TIME_INDEX)
    if not is_exactly(index, <PyObject*> TimeIndex) or not _find_slot(index, TIME_ENTRY_BYTES, &place.time_entry):
        return False
    if not get_int64(index, TIME_INDEX_LAST_TIMESTAMP, &last):
        return False
    largest_timestamp = place.max_timestamp if place.is_largest else PyLong_AsLongLong(PyTuple_GET_ITEM(largest, 0))
    place.adds_time = largest_timestamp > last
    return True


cdef bint _find_slot(PyObject* index, int64_t entry_bytes, IndexEntry* entry) except -1:
    """Fill the next entry of an index whose page for it is allocated."""
    cdef int64_t max_entries, allocated
    if not (
        get_int64(index, INDEX_ENTRIES, &entry.entries)
        and get_int64(index, INDEX_MAX_ENTRIES, &max_entries)
        and get_int64(index, INDEX_ALLOCATED, &allocated)
    ):
        return False
    entry.index = index
    entry.map = get(index, INDEX_MAP)
    if not is_exactly(entry.map, <PyObject*> Map):
        return False
    if entry.entries < 0 or entry.entries >= max_entries or (entry.entries + 1) * entry_bytes > allocated:
        return False
    entry.max_entries = max_entries
    return True


cdef bint write_batch(const uint8_t* data, Place* place) except -1:
    """Write the batch, then its index entries; return False if the write failed and added nothing."""
    cdef int written
    if place.size >= RELEASE_BYTES:
        with nogil:
            written = _write_all(place.fd, data, place.size, place.position)
    else:
        written = _write_all(place.fd, data, place.size, place.position)
    if written:
        _undo(place)
        return False
    if place.is_largest:
        _set_largest(place)
    if place.is_indexed:
        _write_entries(place)
        place.since_index_entry = 0
    set_int64(place.segment, SEGMENT_SINCE_ENTRY, place.since_index_entry + place.size)
    return True


cdef int _write_all(int fd, const uint8_t* data, int64_t size, int64_t position) noexcept nogil:
    cdef int64_t done = 0
    cdef ssize_t written
    while done < size:
        written = pwrite(fd, data + done, size - done, position + done)
        if written > 0:
            done += written
        elif written == 0 or errno != EINTR:
            return 1
    return 0


cdef int _undo(const Place* place) except -1:
    """Cut off a partial write, as FileRecords.undo_partial_append. A failure is left to the Python path's next write."""
    cdef int64_t preallocated = 0
    get_int64(place.records, RECORDS_PREALLOCATED, &preallocated)
    if ftruncate(place.fd, place.position) == 0 and preallocated > place.position:
        ftruncate(place.fd, preallocated)
    return 0


cdef int _set_largest(const Place* place) except -1:
    cdef PyObject* largest = new_tuple(TimestampOffset, 2)
    set_number(largest, 0, place.max_timestamp)
    set_number(largest, 1, place.last_offset)
    put(place.segment, SEGMENT_LARGEST, largest)
    Py_DECREF(largest)
    return 0


cdef int _write_entries(Place* place) except -1:
    """Store the bytes of an entry before its index counts it: readers take no lock."""
    cdef uint8_t bytes_of_entry[TIME_ENTRY_BYTES]
    cdef PyObject* largest = get(place.segment, SEGMENT_LARGEST)
    cdef int64_t timestamp = PyLong_AsLongLong(PyTuple_GET_ITEM(largest, 0))
    cdef int64_t offset = PyLong_AsLongLong(PyTuple_GET_ITEM(largest, 1))
    cdef int64_t entries = place.offset_entry.entries + 1
    cdef bint is_full
    put_int32(bytes_of_entry, <int32_t> (place.last_offset - place.segment_base_offset))
    put_int32(bytes_of_entry + 4, <int32_t> place.position)
    _store(&place.offset_entry, bytes_of_entry, OFFSET_ENTRY_BYTES)
    set_int64(place.offset_entry.index, OFFSET_INDEX_LAST, place.last_offset)
    set_int64(place.offset_entry.index, INDEX_ENTRIES, entries)
    is_full = entries >= place.offset_entry.max_entries
    entries = place.time_entry.entries
    if place.adds_time:
        put_int64(bytes_of_entry, timestamp)
        put_int32(bytes_of_entry + 8, <int32_t> (offset - place.segment_base_offset))
        _store(&place.time_entry, bytes_of_entry, TIME_ENTRY_BYTES)
        set_int64(place.time_entry.index, TIME_INDEX_LAST_TIMESTAMP, timestamp)
        set_int64(place.time_entry.index, TIME_INDEX_LAST_OFFSET, offset)
        entries += 1
        set_int64(place.time_entry.index, INDEX_ENTRIES, entries)
    if is_full or entries >= place.time_entry.max_entries - 1:
        put(place.segment, SEGMENT_INDEX_IS_FULL, Py_True)
    return 0


cdef int _store(const IndexEntry* entry, const uint8_t* content, int64_t entry_bytes) except -1:
    cdef Py_buffer view
    cdef int64_t at = entry.entries * entry_bytes
    PyObject_GetBuffer(<object> entry.map, &view, PyBUF_WRITABLE)
    try:
        if at + entry_bytes > view.len:
            raise IndexError(f"entry {entry.entries} is outside of an index of {view.len} bytes")
        memcpy(<uint8_t*> view.buf + at, content, entry_bytes)
    finally:
        PyBuffer_Release(&view)
    return 0


cdef int move_end(PyObject* core, const Place* place) except -1:
    """Let the log and its file end after the batch."""
    cdef PyObject* next_offset = new_number(place.last_offset + 1)
    cdef PyObject* end_position = new_number(place.position + place.size)
    cdef PyObject* end = new_tuple(LogEnd, 5)
    set_shared(end, 0, next_offset)
    set_shared(end, 1, place.segment)
    set_shared(end, 2, end_position)
    set_shared(end, 3, place.base_offset_number)
    set_shared(end, 4, place.position_number)
    put(place.records, RECORDS_SIZE, end_position)
    put(core, CORE_END, end)
    put(core, CORE_LOG_END_OFFSET, next_offset)
    Py_DECREF(end)
    Py_DECREF(end_position)
    Py_DECREF(next_offset)
    return 0
