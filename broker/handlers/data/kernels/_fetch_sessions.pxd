# cython: language_level=3
"""Incremental requests of fetch sessions: see _fetch_sessions.pyx."""

from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t

from barnabas.broker.handlers.data.kernels._fetch_reads cimport FetchReads
from barnabas.broker.handlers.data.kernels._fetch_waits cimport FetchWait, FetchWaits
from barnabas.broker.network.kernels._frames cimport Outgoing
from barnabas.protocol.kafka.kernels._fetch cimport FetchEntry, FetchFrame, FetchTopic


cdef class SessionFetches:
    """Serves incremental requests of the sessions in a FetchSessionCache."""

    cdef object _cache
    cdef dict _by_name
    cdef dict _by_id
    cdef FetchReads _reads
    cdef FetchWaits _waits
    cdef object _finish
    # The pending partitions of the current session.
    cdef FetchFrame _pending
    cdef Outgoing _names
    cdef list _entries
    cdef list _partitions

    cdef int serve(
        self, const FetchFrame* frame, object client, const uint8_t* data, Py_ssize_t size, Outgoing* out
    ) except -1
    cdef object answer(self, SessionFetchWait wait)

    cdef int _continue(
        self,
        const FetchFrame* frame,
        object fetch_session,
        object client,
        const uint8_t* data,
        Py_ssize_t size,
        Outgoing* out,
    ) except -1
    cdef object _find_session(self, const FetchFrame* frame, object client)
    cdef bint _update(self, const FetchFrame* frame, PyObject* fetch_session, const uint8_t* data) except -1
    cdef bint _find_pending(self, const FetchFrame* frame, PyObject* fetch_session) except -1
    cdef bint _copy_position(self, PyObject* position, FetchEntry* entry) except -1
    cdef int _select_changed(self, PyObject* fetch_session) except -1
    cdef bint _has_name(self, const FetchTopic* one, const FetchTopic* other) noexcept
    cdef int _settle(self, PyObject* fetch_session, PyObject* entry, PyObject* partition, int32_t index) except -1
    cdef int _watch(self, PyObject* entry, PyObject* partition) except -1
    cdef int _wait(
        self,
        const FetchFrame* frame,
        object fetch_session,
        object client,
        const uint8_t* data,
        Py_ssize_t size,
        int64_t missing_bytes,
    ) except -1


cdef class SessionFetchWait(FetchWait):
    cdef SessionFetches sessions
    cdef object fetch_session
    cdef int64_t epoch  # the session's, after this request
