# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Fetch, from a frame in the receive buffer to the response: handlers/data/fetch.py for plain requests.

Plain: see protocol/kafka/kernels/_fetch.pyx; besides, topics that the client may read, partitions that are served here,
each named once and in its current leader epoch, and reads that are common (storage/kernels/_read.pyx). All of this is
checked before anything is counted.

The wake of a waiting fetch compares counters, reads and encodes, without parsing again. Where a wake is not plain, the
Python handler answers the request, which was kept for that.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.dict cimport PyDict_GetItemWithError, PyDict_SetItem
from cpython.list cimport PyList_GET_SIZE
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t

from barnabas.broker.handlers.data.kernels._client cimport set_client_id
from barnabas.broker.handlers.data.kernels._fetch_reads cimport FetchReads
from barnabas.broker.handlers.data.kernels._fetch_sessions cimport SessionFetches
from barnabas.broker.handlers.data.kernels._fetch_waits cimport FetchWait, FetchWaits
from barnabas.broker.network.kernels._frames cimport ANSWERED, SERVED, UNUSUAL, FrameKernel, Outgoing
from barnabas.broker.quotas.kernels._session_quota cimport use_quotas
from barnabas.broker.storage.kernels._slots cimport get, get_int64, is_exactly, offset_of
from barnabas.protocol.kafka.kernels._fetch cimport FetchFrame, FetchTopic, begin_frame, parse_frame, release_frame

from barnabas.broker.partitions.partition import Partition
from barnabas.broker.partitions.registry import PartitionRegistry
from barnabas.broker.storage.log.core import LogCore
from barnabas.broker.storage.log.readable_log import ReadableLog
from barnabas.broker.storage.log.state import LogState

cdef extern from "Python.h":
    PyObject* Py_False
    PyObject* PyList_GET_ITEM(PyObject*, Py_ssize_t)

cdef Py_ssize_t PARTITION_LOG = offset_of(Partition, "log")
cdef Py_ssize_t PARTITION_WAITERS = offset_of(Partition, "_waiters")
cdef Py_ssize_t PARTITION_RETIRED = offset_of(Partition, "_retired")
cdef Py_ssize_t PARTITION_APPENDED_BYTES = offset_of(Partition, "appended_bytes")
cdef Py_ssize_t LOG_CORE = offset_of(ReadableLog, "core")
cdef Py_ssize_t CORE_STATE = offset_of(LogCore, "state")
cdef Py_ssize_t CORE_FIRST_UNSTABLE_OFFSET = offset_of(LogCore, "first_unstable_offset")

cdef object _online = LogState.ONLINE


cdef class FetchKernel(FrameKernel):
    """Serves plain Fetch requests. Event loop only."""

    cdef dict _by_name
    cdef dict _by_id
    cdef object _finish
    cdef FetchFrame _frame
    cdef list _partitions  # those of the frame's entries, in their order
    cdef FetchReads _reads
    cdef FetchWaits _waits
    cdef SessionFetches _sessions  # None: incremental requests are not plain

    def __cinit__(self):
        begin_frame(&self._frame)

    def __init__(self, probe, registry, probes, loop, int64_t fetch_max_bytes, finish):
        """`finish` is the handler of requests that have waited and are not plain any more."""
        super().__init__(probe)
        if type(registry) is not PartitionRegistry:
            raise TypeError("the fetch kernel needs a PartitionRegistry")
        self._by_name = registry.by_name
        self._by_id = registry.by_id
        self._finish = finish
        self._partitions = []
        self._reads = FetchReads(fetch_max_bytes)
        self._waits = FetchWaits(self, probes, loop)
        self._sessions = None

    def use_sessions(self, cache, finish):
        """Serve incremental fetches of the sessions in `cache`, a FetchSessionCache on the clock of time.monotonic.

        `finish(fetch_session, epoch, session, request)` answers a request that has waited and is not plain any more.
        """
        self._sessions = SessionFetches(cache, self._by_name, self._by_id, self._reads, self._waits, finish)

    def __dealloc__(self):
        release_frame(&self._frame)

    def answer_all(self):
        """Answer every waiting fetch with the records available; none waits any more. For the broker's stop."""
        self._waits.answer_all()

    cdef int serve(
        self, object session, object view, Py_ssize_t position, uint8_t* data, Py_ssize_t size, Outgoing* out
    ) except -1:
        cdef FetchFrame* frame = &self._frame
        cdef int64_t missing_bytes
        cdef bint is_due
        if not parse_frame(data, size, frame):
            return UNUSUAL
        if frame.session_id != 0:
            return UNUSUAL if self._sessions is None else self._sessions.serve(frame, session, data, size, out)
        self._partitions.clear()
        if not (
            self._find(data)
            and set_client_id(<PyObject*> session, <const char*> data + frame.client_at, frame.client_size)
            and use_quotas(session, self.started, size)
            and self._reads.read(session, frame, self._partitions)
        ):
            return UNUSUAL
        try:
            missing_bytes = self._reads.missing_bytes(frame)
            is_due = missing_bytes == 0 or self._waits.is_draining
            if is_due and not self._reads.is_within_quotas(session, frame, 0, self.started):
                return UNUSUAL
            self._reads.count_records_out(session, frame, self._partitions)
            if not is_due:
                self._wait(session, data, size, missing_bytes)
                return ANSWERED
            self.result = self._reads.respond(session, frame, data, self._partitions, out)
            return SERVED if self.result is None else ANSWERED
        finally:
            self._reads.release(frame.entry_count)

    cdef bint _find(self, const uint8_t* data) except -1:
        """Look the frame's partitions up. Returns False where one is not served here or named twice."""
        cdef FetchFrame* frame = &self._frame
        cdef dict topics = self._by_id if frame.by_id else self._by_name
        cdef FetchTopic* topic
        cdef PyObject* numbered
        cdef PyObject* partition
        cdef int32_t index, entry, number
        for index in range(frame.topic_count):
            topic = &frame.topics[index]
            name = PyBytes_FromStringAndSize(<const char*> data + topic.at, topic.size)
            numbered = PyDict_GetItemWithError(topics, name)
            if numbered == NULL:
                return False
            for entry in range(topic.first, topic.first + topic.count):
                number = frame.entries[entry].number
                if number < 0 or number >= PyList_GET_SIZE(<list> numbered):
                    return False
                partition = PyList_GET_ITEM(numbered, number)
                if not is_exactly(partition, <PyObject*> Partition):
                    return False
                self._partitions.append(<object> partition)
        if frame.topic_count > 1 and not self._topics_differ(data):
            return False
        return frame.entry_count == 1 or len(set(self._partitions)) == frame.entry_count

    cdef bint _topics_differ(self, const uint8_t* data) except -1:
        """Return whether no topic is named twice: Python merges the two."""
        cdef set names = set()
        cdef int32_t index
        for index in range(self._frame.topic_count):
            names.add(
                PyBytes_FromStringAndSize(<const char*> data + self._frame.topics[index].at, self._frame.topics[index].size)
            )
        return len(names) == self._frame.topic_count

    cdef int _wait(self, object session, const uint8_t* data, Py_ssize_t size, int64_t missing_bytes) except -1:
        """Let the frame wait for appends."""
        cdef PartitionsFetchWait wait = PartitionsFetchWait.__new__(PartitionsFetchWait)
        cdef PyObject* waiters
        wait.reads = self._reads
        wait.python_handler = self._finish
        wait.frame = self._frame
        begin_frame(&self._frame)
        wait.partitions, self._partitions = self._partitions, []
        wait.appended_at_start = wait.appended()
        for partition in wait.partitions:
            waiters = get(<PyObject*> partition, PARTITION_WAITERS)
            PyDict_SetItem(<dict> waiters, wait, None)
        self._waits.begin(wait, session, data, size, missing_bytes)
        return 0


cdef class PartitionsFetchWait(FetchWait):
    """A fetch without a session that waits for appends: a Waiter of its partitions."""

    cdef FetchReads reads
    cdef object python_handler
    cdef list partitions
    cdef int64_t appended_at_start

    def wake(self):
        """Answer if enough bytes were appended, or a partition is no longer available."""
        if self.is_waiting and (
            self.appended() - self.appended_at_start >= self.missing_bytes or not self.is_available()
        ):
            self.finish()

    cdef int unregister(self) except -1:
        cdef PyObject* waiters
        for partition in self.partitions:
            waiters = get(<PyObject*> partition, PARTITION_WAITERS)
            (<dict> waiters).pop(self, None)
        return 0

    cdef object handler(self):
        return self.python_handler

    cdef object answer(self):
        cdef FetchFrame* frame = &self.frame
        if not self.reads.read(self.client, frame, self.partitions):
            return None
        try:
            if not self.reads.is_within_quotas(self.client, frame, self.spent, self.resumed):
                return None
            self.reads.count_records_out(self.client, frame, self.partitions)
            return self.reads.respond_late(
                self.client, frame, <const uint8_t*> PyBytes_AS_STRING(self.data), self.partitions
            )
        finally:
            self.reads.release(frame.entry_count)

    cdef int64_t appended(self) except? -1:
        """Return the bytes appended to the partitions, under read_committed those that are stable."""
        cdef int64_t total = 0
        cdef int64_t one
        cdef PyObject* core
        cdef bint is_stable
        for partition in self.partitions:
            is_stable = True
            if self.frame.committed_only:
                core = get(get(<PyObject*> partition, PARTITION_LOG), LOG_CORE)
                is_stable = get(core, CORE_FIRST_UNSTABLE_OFFSET) == <PyObject*> None
            if is_stable:
                if not get_int64(<PyObject*> partition, PARTITION_APPENDED_BYTES, &one):
                    one = 0
            else:
                one = partition.stable_bytes
            total += one
        return total

    cdef bint is_available(self) except -1:
        cdef PyObject* core
        for partition in self.partitions:
            core = get(get(<PyObject*> partition, PARTITION_LOG), LOG_CORE)
            if get(<PyObject*> partition, PARTITION_RETIRED) != Py_False:
                return False
            if get(core, CORE_STATE) != <PyObject*> _online:
                return False
        return True
