# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Reads of stored batches by offset: LogReader.read and read_slice for the common case, compiled.

Common is a log that is online, whose segments have only batches of version 2, with open files, checked indexes, and
headers in the page cache; under read_committed also without aborted transactions from the offset on. Everything else is
READ_UNUSUAL and changes nothing but the marks of recent use. The GIL is held throughout: no read waits for the disk.

`core` is borrowed and its class is checked here. Positions read from an index or a header are compared with the end of
the segment before a byte is read there.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from cpython.tuple cimport PyTuple_GET_SIZE
from libc.errno cimport EINTR, EOPNOTSUPP, errno
from libc.stdint cimport int64_t, uint8_t

from barnabas.broker.storage.kernels._slots cimport get, get_int64, is_exactly, offset_of, put
from barnabas.protocol.records.kernels._big_endian cimport int32_at, int64_at

from barnabas.broker.storage.files.file_records import FileRecords, FileSlice
from barnabas.broker.storage.files.open_files import FileHandle
from barnabas.broker.storage.index.offset_index import OffsetIndex
from barnabas.broker.storage.index.transaction_index import TransactionIndex
from barnabas.broker.storage.log.core import LogCore
from barnabas.broker.storage.log.read import LogEnd
from barnabas.broker.storage.log.state import LogState
from barnabas.broker.storage.segment.log_segment import LogSegment
from barnabas.broker.storage.segment.log_segments import LogSegments, SegmentsView

cdef extern from *:
    """
    #include <sys/uio.h>
    #include <unistd.h>

    #ifndef RWF_NOWAIT
    #define RWF_NOWAIT 0x00000008
    #endif

    static inline ssize_t barnabas_read_nowait(int fd, void *target, size_t size, off_t position) {
        struct iovec part = {target, size};
        return preadv2(fd, &part, 1, position, RWF_NOWAIT);
    }
    """
    Py_ssize_t barnabas_read_nowait(int fd, void* target, size_t size, int64_t position) noexcept nogil
    Py_ssize_t pread(int fd, void* target, size_t size, int64_t position) noexcept nogil

cdef extern from "Python.h":
    PyObject* Py_True
    PyObject* Py_False
    PyObject* PyTuple_GET_ITEM(PyObject*, Py_ssize_t)
    bint PyTuple_CheckExact(PyObject*)
    long long PyLong_AsLongLongAndOverflow(PyObject* value, int* overflow)
    void Py_INCREF(PyObject*)
    PyObject* PyErr_Occurred()

# As in layout.py; tests/storage/kernels assert it.
cdef enum:
    HEADER_SIZE = 61
    LOG_OVERHEAD = 12
    MAGIC_V2 = 2
    HEAD_BYTES = 27  # up to and including the last offset delta
    ENTRY_BYTES = 8

cdef enum Lookup:
    LOOKUP_FOUND
    LOOKUP_NOTHING
    LOOKUP_UNUSUAL

cdef struct Batch:
    int64_t position
    int64_t size

cdef PyObject* ONLINE
cdef object _online = LogState.ONLINE
ONLINE = <PyObject*> _online

cdef Py_ssize_t CORE_STATE = offset_of(LogCore, "state")
cdef Py_ssize_t CORE_END = offset_of(LogCore, "end")
cdef Py_ssize_t CORE_SEGMENTS = offset_of(LogCore, "segments")
cdef Py_ssize_t CORE_LOG_START_OFFSET = offset_of(LogCore, "log_start_offset")
cdef Py_ssize_t CORE_LOG_END_OFFSET = offset_of(LogCore, "log_end_offset")
cdef Py_ssize_t CORE_REPLICATED_END = offset_of(LogCore, "replicated_end")
cdef Py_ssize_t CORE_FIRST_UNSTABLE_OFFSET = offset_of(LogCore, "first_unstable_offset")
cdef Py_ssize_t SEGMENTS_VIEW = offset_of(LogSegments, "view")
cdef Py_ssize_t SEGMENT_BASE_OFFSET = offset_of(LogSegment, "base_offset")
cdef Py_ssize_t SEGMENT_LOG = offset_of(LogSegment, "log")
cdef Py_ssize_t SEGMENT_OFFSET_INDEX = offset_of(LogSegment, "offset_index")
cdef Py_ssize_t SEGMENT_OLD_MESSAGES = offset_of(LogSegment, "_old_messages")
cdef Py_ssize_t SEGMENT_SCAN_BYTES = offset_of(LogSegment, "_scan_bytes")
cdef Py_ssize_t SEGMENT_INDEXES_TRUSTED = offset_of(LogSegment, "_indexes_trusted")
cdef Py_ssize_t SEGMENT_TRANSACTION_INDEX = offset_of(LogSegment, "_transaction_index")
cdef Py_ssize_t TRANSACTION_INDEX_SIZE = offset_of(TransactionIndex, "_size_bytes")
cdef Py_ssize_t INDEX_ENTRIES = offset_of(OffsetIndex, "entries")
cdef Py_ssize_t INDEX_BASE_OFFSET = offset_of(OffsetIndex, "base_offset")
cdef Py_ssize_t INDEX_MAP = offset_of(OffsetIndex, "_map")
cdef Py_ssize_t INDEX_RECENTLY_USED = offset_of(OffsetIndex, "recently_used")
cdef Py_ssize_t RECORDS_SIZE = offset_of(FileRecords, "size_bytes")
cdef Py_ssize_t RECORDS_HANDLE = offset_of(FileRecords, "_handle")
cdef Py_ssize_t RECORDS_RECENTLY_USED = offset_of(FileRecords, "recently_used")
cdef Py_ssize_t HANDLE_FD = offset_of(FileHandle, "fd")


cdef int read_offsets(PyObject* core, LogOffsets* offsets) except -1:
    """Store the log's offsets; returns 0 where they are unusual."""
    cdef int64_t unstable, replicated
    if not is_exactly(core, <PyObject*> LogCore):
        return 0
    if not get_int64(core, CORE_LOG_START_OFFSET, &offsets.start):
        return 0
    if not get_int64(core, CORE_LOG_END_OFFSET, &offsets.end):
        return 0
    if get(core, CORE_REPLICATED_END) != <PyObject*> None:
        if not get_int64(core, CORE_REPLICATED_END, &replicated):
            return 0
        offsets.end = min(replicated, offsets.end)
    offsets.stable = offsets.end
    if get(core, CORE_FIRST_UNSTABLE_OFFSET) != <PyObject*> None:
        if not get_int64(core, CORE_FIRST_UNSTABLE_OFFSET, &unstable):
            return 0
        offsets.stable = max(min(unstable, offsets.end), offsets.start)
    return 1


cdef Read find_slice(
    PyObject* core,
    int64_t offset,
    int64_t max_bytes,
    int64_t upper_bound,
    bint at_least_one_batch,
    bint committed_only,
    Slice* found,
) except *:
    """Find stored batches as LogReader.read does, with a reference to their file.

    `committed_only`: READ_UNUSUAL also where an aborted transaction may overlap them.
    """
    cdef PyObject* end
    cdef PyObject* view
    cdef PyObject* segments
    cdef PyObject* active
    cdef int64_t start, end_offset, active_size, last_base_offset, last_position, last_segment
    if not is_exactly(core, <PyObject*> LogCore) or get(core, CORE_STATE) != ONLINE:
        return READ_UNUSUAL
    end = get(core, CORE_END)
    segments = get(core, CORE_SEGMENTS)
    if not is_exactly(end, <PyObject*> LogEnd) or not is_exactly(segments, <PyObject*> LogSegments):
        return READ_UNUSUAL
    view = get(segments, SEGMENTS_VIEW)
    if not is_exactly(view, <PyObject*> SegmentsView):
        return READ_UNUSUAL
    if not (
        get_int64(core, CORE_LOG_START_OFFSET, &start)
        and _item(end, 0, &end_offset)
        and _item(end, 2, &active_size)
        and _item(end, 3, &last_base_offset)
        and _item(end, 4, &last_position)
    ):
        return READ_UNUSUAL
    active = PyTuple_GET_ITEM(end, 1)
    if offset < start or offset > end_offset or not is_exactly(active, <PyObject*> LogSegment):
        return READ_UNUSUAL
    if offset >= upper_bound or offset == end_offset:
        return READ_NOTHING
    if not _last_item(PyTuple_GET_ITEM(view, 0), &last_segment):
        return READ_UNUSUAL
    found.has_later_segments = offset < last_segment  # by the requested offset, as FetchAttempt.has_later_segments
    if committed_only and not _has_no_aborted(view, offset):
        return READ_UNUSUAL
    found.is_at_end = False
    if offset == last_base_offset and upper_bound >= end_offset:
        if active_size - last_position > max_bytes and not at_least_one_batch:
            return READ_NOTHING
        found.is_at_end = True
        return _slice(get(active, SEGMENT_LOG), last_position, active_size - last_position, found)
    return _search(view, active, active_size, end_offset, offset, max_bytes, upper_bound, at_least_one_batch, found)


cdef Py_ssize_t read_cached(int fd, char* target, Py_ssize_t size, int64_t position) noexcept nogil:
    """Read up to `size` bytes from the page cache; -1 where that would wait for the disk, or fails."""
    cdef Py_ssize_t got
    while True:
        got = barnabas_read_nowait(fd, target, size, position)
        if got < 0 and errno == EOPNOTSUPP:
            got = pread(fd, target, size, position)  # tmpfs and similar: always in memory
        if got >= 0 or errno != EINTR:
            return got


cdef object file_slice(const Slice* found):
    """Return a FileSlice, which keeps the file open."""
    return FileSlice(<object> found.handle, found.position, found.size)


def read(core, int64_t offset, int64_t max_bytes, int64_t upper_bound, bint at_least_one_batch, bint committed_only):
    """Return a FileSlice, None if there is nothing to read, or NotImplemented: for tests."""
    cdef Slice found
    cdef Read outcome = find_slice(
        <PyObject*> core, offset, max_bytes, upper_bound, at_least_one_batch, committed_only, &found
    )
    if outcome == READ_UNUSUAL:
        return NotImplemented
    if outcome == READ_NOTHING:
        return None
    result = file_slice(&found)
    Py_DECREF(<object> found.handle)
    return result


# --- segments -------------------------------------------------------------------------------------------------------


cdef Read _search(
    PyObject* view,
    PyObject* active,
    int64_t active_size,
    int64_t end_offset,
    int64_t offset,
    int64_t max_bytes,
    int64_t upper_bound,
    bint at_least_one_batch,
    Slice* found,
) except *:
    """Look `offset` up in the segments from the one that may contain it on, as read_slice does."""
    cdef PyObject* base_offsets = PyTuple_GET_ITEM(view, 0)
    cdef PyObject* segments = PyTuple_GET_ITEM(view, 1)
    cdef PyObject* segment
    cdef PyObject* log
    cdef Py_ssize_t index, count
    cdef int64_t base_offset, active_base, limit, available
    cdef Batch first, bound
    cdef Lookup outcome
    if not PyTuple_CheckExact(base_offsets) or not PyTuple_CheckExact(segments):
        return READ_UNUSUAL
    count = PyTuple_GET_SIZE(<object> segments)
    if PyTuple_GET_SIZE(<object> base_offsets) != count or not _segment_base(active, &active_base):
        return READ_UNUSUAL
    index = _floor_index(base_offsets, count, offset)
    if index < 0:
        return READ_UNUSUAL
    while index < count:
        segment = PyTuple_GET_ITEM(segments, index)
        if not is_exactly(segment, <PyObject*> LogSegment) or not _segment_base(segment, &base_offset):
            return READ_UNUSUAL
        if base_offset >= upper_bound or base_offset > active_base:
            return READ_NOTHING
        log = get(segment, SEGMENT_LOG)
        if not is_exactly(log, <PyObject*> FileRecords):
            return READ_UNUSUAL
        limit = active_size
        if segment != active and not get_int64(log, RECORDS_SIZE, &limit):
            return READ_UNUSUAL
        if get(segment, SEGMENT_OLD_MESSAGES) != Py_False:
            return READ_UNUSUAL
        outcome = _find_batch(segment, log, offset, limit, &first)
        if outcome == LOOKUP_FOUND and upper_bound < end_offset:
            outcome = _find_batch(segment, log, upper_bound, limit, &bound)
            if outcome == LOOKUP_FOUND:
                limit = bound.position
            elif outcome == LOOKUP_NOTHING:
                outcome = LOOKUP_FOUND
        if outcome == LOOKUP_UNUSUAL:
            return READ_UNUSUAL
        if outcome == LOOKUP_FOUND:
            available = limit - first.position
            if available < first.size or (max_bytes < first.size and not at_least_one_batch):
                return READ_NOTHING
            available = min(available, max(max_bytes, first.size))
            found.is_at_end = segment == active and first.position + available == active_size
            return _slice(log, first.position, available, found)
        index += 1
    return READ_NOTHING


cdef Lookup _find_batch(PyObject* segment, PyObject* log, int64_t target, int64_t limit, Batch* batch) except *:
    """Find the first batch with a last offset >= `target` that begins below `limit`, as LogSegment.find_batch does."""
    cdef int64_t position, scan_bytes
    cdef Lookup outcome = _index_position(segment, target, limit, &position)
    cdef PyObject* handle
    cdef uint8_t* chunk
    cdef int64_t fd
    if outcome != LOOKUP_FOUND:
        return outcome
    handle = get(log, RECORDS_HANDLE)
    if not is_exactly(handle, <PyObject*> FileHandle) or not get_int64(handle, HANDLE_FD, &fd):
        return LOOKUP_UNUSUAL
    if not get_int64(segment, SEGMENT_SCAN_BYTES, &scan_bytes) or not HEAD_BYTES <= scan_bytes <= 65536:
        return LOOKUP_UNUSUAL
    put(log, RECORDS_RECENTLY_USED, Py_True)
    chunk = <uint8_t*> PyMem_Malloc(scan_bytes)
    if chunk == NULL:
        raise MemoryError
    outcome = _scan(<int> fd, chunk, scan_bytes, position, limit, target, batch)
    PyMem_Free(chunk)
    return outcome


cdef Lookup _scan(
    int fd, uint8_t* chunk, int64_t scan_bytes, int64_t position, int64_t limit, int64_t target, Batch* batch
) noexcept nogil:
    """Walk over batch headers from `position` on."""
    cdef int64_t got, inside, length, base_offset, delta
    cdef const uint8_t* at
    while position < limit:
        got = read_cached(fd, <char*> chunk, min(scan_bytes, limit - position), position)
        if got < 0:
            return LOOKUP_UNUSUAL
        inside = 0
        while got - inside >= HEAD_BYTES:
            at = chunk + inside
            base_offset = int64_at(at)
            length = int32_at(at + 8)
            delta = int32_at(at + 23)
            if at[16] != MAGIC_V2 or length < HEADER_SIZE - LOG_OVERHEAD or base_offset < 0 or delta < 0:
                return LOOKUP_UNUSUAL
            if base_offset > <int64_t> 0x7FFFFFFFFFFFFFFF - delta:
                return LOOKUP_UNUSUAL
            if base_offset + delta >= target:
                batch.position = position + inside
                batch.size = length + LOG_OVERHEAD
                return LOOKUP_FOUND
            inside += length + LOG_OVERHEAD
        if inside == 0:
            # Less than a header is left, or the page cache has only a part of it.
            return LOOKUP_NOTHING if got == limit - position else LOOKUP_UNUSUAL
        position += inside
    return LOOKUP_NOTHING


cdef Lookup _index_position(PyObject* segment, int64_t target, int64_t limit, int64_t* position) except *:
    """Store the position to scan from, as SegmentIndexes.index_position does."""
    cdef PyObject* index = get(segment, SEGMENT_OFFSET_INDEX)
    cdef PyObject* memory
    cdef Py_buffer view
    cdef int64_t entries, base_offset, low, high, middle
    if not is_exactly(index, <PyObject*> OffsetIndex) or get(segment, SEGMENT_INDEXES_TRUSTED) != Py_True:
        return LOOKUP_UNUSUAL
    if not get_int64(index, INDEX_ENTRIES, &entries) or not get_int64(index, INDEX_BASE_OFFSET, &base_offset):
        return LOOKUP_UNUSUAL
    memory = get(index, INDEX_MAP)
    if memory == NULL or memory == <PyObject*> None or entries < 0:
        return LOOKUP_UNUSUAL  # not open
    put(index, INDEX_RECENTLY_USED, Py_True)
    position[0] = 0
    if entries == 0:
        return LOOKUP_FOUND
    PyObject_GetBuffer(<object> memory, &view, PyBUF_SIMPLE)
    if entries > view.len // ENTRY_BYTES:
        PyBuffer_Release(&view)
        return LOOKUP_UNUSUAL
    # Invariant: entries before `low` are <= target, entries after `high` are > target.
    low = 0
    high = entries - 1
    target -= base_offset
    if high > 1024:  # the end of the index, where nearly all lookups land, first: the rest need not be in memory
        if _entry(&view, high - 1024, 0) <= target:
            low = high - 1024
        else:
            high = high - 1025
    while low <= high:
        middle = (low + high) >> 1
        if _entry(&view, middle, 0) <= target:
            low = middle + 1
        else:
            high = middle - 1
    if high >= 0:
        position[0] = _entry(&view, high, 4)
    PyBuffer_Release(&view)
    return LOOKUP_FOUND if 0 <= position[0] else LOOKUP_UNUSUAL


cdef Read _slice(PyObject* log, int64_t position, int64_t size, Slice* found) except *:
    """Store a slice of a file that is open."""
    cdef PyObject* handle
    cdef int64_t fd
    if not is_exactly(log, <PyObject*> FileRecords):
        return READ_UNUSUAL
    handle = get(log, RECORDS_HANDLE)
    if not is_exactly(handle, <PyObject*> FileHandle) or not get_int64(handle, HANDLE_FD, &fd):
        return READ_UNUSUAL
    put(log, RECORDS_RECENTLY_USED, Py_True)
    Py_INCREF(handle)
    found.handle = handle
    found.fd = <int> fd
    found.position = position
    found.size = size
    return READ_FOUND


cdef bint _has_no_aborted(PyObject* view, int64_t offset) except -1:
    """Return whether no transaction index from `offset` on has a row, and all are known to have none."""
    cdef PyObject* base_offsets = PyTuple_GET_ITEM(view, 0)
    cdef PyObject* segments = PyTuple_GET_ITEM(view, 1)
    cdef PyObject* segment
    cdef PyObject* index
    cdef int64_t size
    cdef Py_ssize_t count, at
    if not PyTuple_CheckExact(base_offsets) or not PyTuple_CheckExact(segments):
        return False
    count = PyTuple_GET_SIZE(<object> segments)
    if PyTuple_GET_SIZE(<object> base_offsets) != count:
        return False
    for at in range(max(_floor_index(base_offsets, count, offset), 0), count):
        segment = PyTuple_GET_ITEM(segments, at)
        if not is_exactly(segment, <PyObject*> LogSegment):
            return False
        index = get(segment, SEGMENT_TRANSACTION_INDEX)
        if not is_exactly(index, <PyObject*> TransactionIndex):
            return False  # not looked at yet
        if not get_int64(index, TRANSACTION_INDEX_SIZE, &size) or size != 0:
            return False
    return True


cdef Py_ssize_t _floor_index(PyObject* base_offsets, Py_ssize_t count, int64_t offset) except -2:
    """Return the last index with a base offset <= `offset`; -1 below the first segment."""
    cdef Py_ssize_t low = 0
    cdef Py_ssize_t high = count - 1
    cdef Py_ssize_t middle = high  # most reads are in the last segment
    cdef int64_t base_offset
    while low <= high:
        if not _item(base_offsets, middle, &base_offset):
            return -1
        if base_offset <= offset:
            low = middle + 1
        else:
            high = middle - 1
        middle = (low + high) >> 1
    return high


cdef bint _last_item(PyObject* items, int64_t* value) except -1:
    cdef Py_ssize_t count
    if not PyTuple_CheckExact(items):
        return False
    count = PyTuple_GET_SIZE(<object> items)
    return count > 0 and _item(items, count - 1, value)


cdef bint _segment_base(PyObject* segment, int64_t* base_offset) except -1:
    return get_int64(segment, SEGMENT_BASE_OFFSET, base_offset)


cdef bint _item(PyObject* items, Py_ssize_t index, int64_t* value) except -1:
    """Store a number of a tuple. Returns False where it does not fit. Raises TypeError where it is no number."""
    cdef int overflow = 0
    cdef long long number = PyLong_AsLongLongAndOverflow(PyTuple_GET_ITEM(items, index), &overflow)
    if number == -1 and overflow == 0 and PyErr_Occurred() != NULL:
        return -1
    value[0] = number
    return overflow == 0


cdef inline int64_t _entry(const Py_buffer* view, int64_t slot, int64_t shift) noexcept nogil:
    return int32_at(<const uint8_t*> view.buf + slot * ENTRY_BYTES + shift)
