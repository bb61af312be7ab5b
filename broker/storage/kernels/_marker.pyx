# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""The append of an end marker that commits an open transaction: the common case of MarkerAppender.

Unusual, beside what _placing leaves to Python: a marker that aborts, because it needs a row in the transaction index,
one without an open transaction, and every one that is refused.
"""

from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t

from barnabas.broker.storage.kernels._append cimport APPENDED, UNUSUAL, AppendKernel, Appended, fill_appended, result_of
from barnabas.broker.storage.kernels._placing cimport Place, find_place, move_end, write_batch
from barnabas.broker.storage.kernels._producers cimport ProducerStep, check_marker, note_marker
from barnabas.broker.storage.kernels._slots cimport get, get_int64, is_exactly, offset_of
from barnabas.protocol.records.kernels._big_endian cimport put_int32, put_int64

from barnabas.broker.storage.log.append import TransactionEnd
from barnabas.broker.storage.producers.entry import MAX_EPOCH, TRANSACTION_VERSION_OF_EPOCH_BUMPS, ProducerEntry
from barnabas.protocol.records.end_marker import EndMarker

cdef extern from "Python.h":
    object PyObject_Call(object callable, object arguments, PyObject* keywords)

cdef enum:
    EPOCH_POSITION = 12  # as in layout.py

cdef int64_t LARGEST_EPOCH = MAX_EPOCH
cdef int64_t VERSION_OF_EPOCH_BUMPS = TRANSACTION_VERSION_OF_EPOCH_BUMPS
cdef tuple WITHOUT_WAITING = (False,)
cdef Py_ssize_t END_PRODUCER_ID = offset_of(TransactionEnd, "producer_id")
cdef Py_ssize_t END_PRODUCER_EPOCH = offset_of(TransactionEnd, "producer_epoch")
cdef Py_ssize_t END_MARKER = offset_of(TransactionEnd, "marker")
cdef Py_ssize_t END_VERSION = offset_of(TransactionEnd, "transaction_version")
cdef Py_ssize_t ENTRY_FIRST_OFFSET = offset_of(ProducerEntry, "txn_first_offset")


def append_commit(
    AppendKernel log not None, end, marker_batch, int32_t leader_epoch, int64_t timestamp, int64_t now_ms,
    bint log_append_time
):
    """Append the batch of a marker that commits; return its AppendResult, or None if it is unusual."""
    cdef Py_buffer view
    cdef Marker marker
    cdef Appended out
    if not read_marker(end, &marker):
        return None
    PyObject_GetBuffer(marker_batch, &view, PyBUF_WRITABLE)
    marker.data = <uint8_t*> view.buf
    marker.size = view.len
    marker.timestamp = timestamp
    marker.log_append_time = log_append_time
    try:
        if append_commit_marker(log, &marker, leader_epoch, now_ms, &out) != APPENDED:
            return None
    finally:
        PyBuffer_Release(&view)
    return result_of(&out)


cdef bint read_marker(object end, Marker* marker) except -1:
    """Read a TransactionEnd; the caller sets the batch and its timestamp. Returns False unless it commits."""
    cdef PyObject* ended = <PyObject*> end
    cdef int64_t version
    if type(end) is not TransactionEnd or not (
        get_int64(ended, END_PRODUCER_ID, &marker.producer_id)
        and get_int64(ended, END_PRODUCER_EPOCH, &marker.epoch)
        and get_int64(ended, END_VERSION, &version)
        and is_exactly(get(ended, END_MARKER), <PyObject*> EndMarker)
    ):
        return False
    decision = <tuple> get(ended, END_MARKER)
    marker.coordinator_epoch = decision[1]
    marker.has_own_epoch = version >= VERSION_OF_EPOCH_BUMPS and marker.epoch != LARGEST_EPOCH
    return decision[0] is True


cdef int append_commit_marker(
    AppendKernel log, Marker* marker, int32_t leader_epoch, int64_t now_ms, Appended* out
) except -1:
    """Append a marker, whose batch is patched in place. Sets the marker's `first_offset`."""
    if (
        log._log_append_time != marker.log_append_time
        or PyObject_Call(log._acquire, WITHOUT_WAITING, NULL) is not True
    ):
        return UNUSUAL
    try:
        return _append_locked(log, marker, leader_epoch, now_ms, out)
    finally:
        log._release()


cdef int _append_locked(
    AppendKernel log, Marker* marker, int32_t leader_epoch, int64_t now_ms, Appended* out
) except -1:
    cdef PyObject* core = <PyObject*> log.core
    cdef ProducerStep step
    cdef Place place
    if not check_marker(
        core, marker.producer_id, marker.epoch, marker.coordinator_epoch, marker.has_own_epoch, &step
    ) or not get_int64(step.entry, ENTRY_FIRST_OFFSET, &marker.first_offset):
        return UNUSUAL
    if not find_place(
        core, marker.size, 0, marker.timestamp, now_ms, log._segment_bytes, leader_epoch, &place
    ):
        return UNUSUAL
    put_int64(marker.data, place.base_offset)
    put_int32(marker.data + EPOCH_POSITION, leader_epoch)
    if not write_batch(marker.data, &place):
        return UNUSUAL
    note_marker(core, &step, marker.coordinator_epoch, marker.timestamp)
    move_end(core, &place)
    out.log_append_time_ms = marker.timestamp if marker.log_append_time else -1
    out.record_count = 1
    out.opens_transaction = False
    fill_appended(log, &place, False, out)
    return APPENDED
