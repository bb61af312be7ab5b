# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Incremental requests of fetch sessions: handlers/data/fetch_contexts.py and fetch_session.py for plain requests.

Plain: as _fetch.pyx; besides, the session's next epoch, the same reader as before, no other request of the session that
waits, and only partitions that the session has.

The pending partitions of the session are read like those of a request: they become a frame whose topics have their ids
or names in `_names`.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.dict cimport PyDict_GetItemWithError, PyDict_SetItem
from cpython.list cimport PyList_GET_SIZE
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free
from libc.string cimport memcmp, memcpy

from barnabas.broker.handlers.data.kernels._client cimport set_client_id
from barnabas.broker.handlers.data.kernels._fetch_reads cimport FetchReads
from barnabas.broker.handlers.data.kernels._fetch_waits cimport FetchWait, FetchWaits
from barnabas.broker.network.kernels._frames cimport ANSWERED, SERVED, UNUSUAL, Outgoing, reserve
from barnabas.broker.storage.kernels._clock cimport monotonic
from barnabas.broker.storage.kernels._read cimport LogOffsets, read_offsets
from barnabas.broker.quotas.kernels._session_quota cimport use_quotas
from barnabas.broker.storage.kernels._slots cimport get, get_int64, is_exactly, offset_of, put, set_int64
from barnabas.protocol.kafka.kernels._fetch cimport (
    FetchedPart,
    FetchEntry,
    FetchFrame,
    FetchTopic,
    begin_frame,
    release_frame,
    reserve_entries,
    reserve_topics,
)

from functools import partial
from operator import attrgetter

from barnabas.broker.handlers.data.fetch_contexts import CHECK_SECONDS
from barnabas.broker.handlers.data.fetch_session import FetchSession, SessionPartition
from barnabas.broker.network.session import Session
from barnabas.broker.partitions.partition import Partition
from barnabas.broker.storage.log.core import LogCore
from barnabas.broker.storage.log.readable_log import ReadableLog
from barnabas.broker.storage.log.state import LogState
from barnabas.protocol.messages.data.fetch import FetchPartition

cdef extern from "Python.h":
    PyObject* Py_True
    PyObject* Py_False
    PyObject* PyList_GET_ITEM(PyObject*, Py_ssize_t)

cdef Py_ssize_t SESSION_ACCESS = offset_of(Session, "access")
cdef Py_ssize_t PARTITION_LOG = offset_of(Partition, "log")
cdef Py_ssize_t PARTITION_WAITERS = offset_of(Partition, "_waiters")
cdef Py_ssize_t PARTITION_APPENDED_BYTES = offset_of(Partition, "appended_bytes")
cdef Py_ssize_t LOG_CORE = offset_of(ReadableLog, "core")
cdef Py_ssize_t CORE_STATE = offset_of(LogCore, "state")
cdef Py_ssize_t CORE_FIRST_UNSTABLE_OFFSET = offset_of(LogCore, "first_unstable_offset")
cdef Py_ssize_t FETCH_SESSION_EPOCH = offset_of(FetchSession, "epoch")
cdef Py_ssize_t FETCH_SESSION_USES_TOPIC_IDS = offset_of(FetchSession, "uses_topic_ids")
cdef Py_ssize_t FETCH_SESSION_WAITING = offset_of(FetchSession, "waiting")
cdef Py_ssize_t FETCH_SESSION_IS_CLOSED = offset_of(FetchSession, "is_closed")
cdef Py_ssize_t FETCH_SESSION_PARTITIONS = offset_of(FetchSession, "partitions")
cdef Py_ssize_t FETCH_SESSION_PENDING = offset_of(FetchSession, "pending")
cdef Py_ssize_t FETCH_SESSION_CACHED_SIZE = offset_of(FetchSession, "cached_size")
cdef Py_ssize_t FETCH_SESSION_LAST_RANK = offset_of(FetchSession, "_last_rank")
cdef Py_ssize_t ENTRY_FETCH = offset_of(SessionPartition, "fetch")
cdef Py_ssize_t ENTRY_TOPIC = offset_of(SessionPartition, "topic")
cdef Py_ssize_t ENTRY_TOPIC_ID = offset_of(SessionPartition, "topic_id")
cdef Py_ssize_t ENTRY_HIGH_WATERMARK = offset_of(SessionPartition, "high_watermark")
cdef Py_ssize_t ENTRY_LOG_START_OFFSET = offset_of(SessionPartition, "log_start_offset")
cdef Py_ssize_t ENTRY_RANK = offset_of(SessionPartition, "rank")
cdef Py_ssize_t ENTRY_PARTITION = offset_of(SessionPartition, "partition")
cdef Py_ssize_t ENTRY_IS_WATCHING = offset_of(SessionPartition, "is_watching")
cdef Py_ssize_t ENTRY_SEEN_BYTES = offset_of(SessionPartition, "seen_bytes")
cdef Py_ssize_t POSITION_PARTITION = offset_of(FetchPartition, "partition")
cdef Py_ssize_t POSITION_OFFSET = offset_of(FetchPartition, "offset")
cdef Py_ssize_t POSITION_MAX_BYTES = offset_of(FetchPartition, "max_bytes")
cdef Py_ssize_t POSITION_EPOCH = offset_of(FetchPartition, "current_leader_epoch")
cdef Py_ssize_t POSITION_LAST_FETCHED_EPOCH = offset_of(FetchPartition, "last_fetched_epoch")
cdef Py_ssize_t POSITION_LOG_START_OFFSET = offset_of(FetchPartition, "log_start_offset")
cdef Py_ssize_t POSITION_REPLICA_DIRECTORY_ID = offset_of(FetchPartition, "replica_directory_id")
cdef Py_ssize_t POSITION_HIGH_WATERMARK = offset_of(FetchPartition, "high_watermark")

cdef object _FetchPartition = FetchPartition
cdef object _a_position = FetchPartition(partition=0, offset=0, max_bytes=0)
cdef PyObject* _NO_START = get(<PyObject*> _a_position, POSITION_LOG_START_OFFSET)
cdef PyObject* _NO_DIRECTORY = get(<PyObject*> _a_position, POSITION_REPLICA_DIRECTORY_ID)
cdef PyObject* _NO_HIGH_WATERMARK = get(<PyObject*> _a_position, POSITION_HIGH_WATERMARK)
cdef object _new = object.__new__
cdef object _FetchSession = FetchSession
cdef object _SessionPartition = SessionPartition
cdef object _rank = attrgetter("rank")
cdef object _online = LogState.ONLINE
cdef double MAX_UNCHECKED_SECONDS = CHECK_SECONDS
cdef int MAX_PENDING = 4096  # more partitions are read in Python, so that the buffers here stay small
cdef int64_t LAST_EPOCH = 0x7FFFFFFF


cdef object _position_of(const FetchEntry* entry):
    """Return the FetchPartition of an entry; a consumer's has no other fields."""
    cdef object position = _new(_FetchPartition)
    cdef PyObject* made = <PyObject*> position
    set_int64(made, POSITION_PARTITION, entry.number)
    set_int64(made, POSITION_EPOCH, entry.leader_epoch)
    set_int64(made, POSITION_OFFSET, entry.offset)
    set_int64(made, POSITION_LAST_FETCHED_EPOCH, entry.last_fetched_epoch)
    put(made, POSITION_LOG_START_OFFSET, _NO_START)
    set_int64(made, POSITION_MAX_BYTES, entry.max_bytes)
    put(made, POSITION_REPLICA_DIRECTORY_ID, _NO_DIRECTORY)
    put(made, POSITION_HIGH_WATERMARK, _NO_HIGH_WATERMARK)
    return position


cdef class SessionFetches:
    """Event loop only."""

    def __cinit__(self):
        begin_frame(&self._pending)
        self._names.data = NULL
        self._names.size = 0
        self._names.capacity = 0

    def __init__(self, cache, dict by_name, dict by_id, FetchReads reads not None, FetchWaits waits not None, finish):
        """`by_name` and `by_id`: those of the PartitionRegistry. `cache` and `finish`: see FetchKernel.use_sessions."""
        self._cache = cache
        self._by_name = by_name
        self._by_id = by_id
        self._reads = reads
        self._waits = waits
        self._finish = finish
        self._entries = []
        self._partitions = []

    def __dealloc__(self):
        release_frame(&self._pending)
        free(self._names.data)

    cdef int serve(
        self, const FetchFrame* frame, object client, const uint8_t* data, Py_ssize_t size, Outgoing* out
    ) except -1:
        """Serve an incremental request, as FrameKernel.serve."""
        fetch_session = self._find_session(frame, client)
        if fetch_session is None:
            return UNUSUAL
        try:
            return self._continue(frame, fetch_session, client, data, size, out)
        finally:
            self._entries.clear()
            self._partitions.clear()

    cdef int _continue(
        self,
        const FetchFrame* frame,
        object fetch_session,
        object client,
        const uint8_t* data,
        Py_ssize_t size,
        Outgoing* out,
    ) except -1:
        """Serve the next request of a session.

        Positions are updated before the request is known to be plain: Python updates them again, with the same result.
        """
        cdef FetchReads reads = self._reads
        cdef int64_t missing_bytes
        cdef int32_t count
        cdef bint is_due
        if not (
            set_client_id(<PyObject*> client, <const char*> data + frame.client_at, frame.client_size)
            and use_quotas(client, self._waits.kernel.started, size)
            and self._update(frame, <PyObject*> fetch_session, data)
            and self._find_pending(frame, <PyObject*> fetch_session)
            and reads.read(client, &self._pending, self._partitions)
        ):
            return UNUSUAL
        count = self._pending.entry_count
        try:
            missing_bytes = reads.missing_bytes(frame)
            is_due = missing_bytes == 0 or self._waits.is_draining
            if is_due and not reads.is_within_quotas(client, &self._pending, 0, self._waits.kernel.started):
                return UNUSUAL
            self._cache.touch(fetch_session)
            set_int64(
                <PyObject*> fetch_session,
                FETCH_SESSION_EPOCH,
                1 if frame.session_epoch == LAST_EPOCH else frame.session_epoch + 1,
            )
            reads.count_records_out(client, &self._pending, self._partitions)
            if not is_due:
                self._wait(frame, fetch_session, client, data, size, missing_bytes)
                return ANSWERED
            self._select_changed(<PyObject*> fetch_session)
            result = reads.respond(client, &self._pending, self._names.data, self._partitions, out)
            self._waits.kernel.result = result
            return SERVED if result is None else ANSWERED
        finally:
            reads.release(count)

    cdef object answer(self, SessionFetchWait wait):
        """Read again and return the response to a request that has waited, None if it is not plain any more."""
        cdef FetchReads reads = self._reads
        cdef PyObject* fetch_session = <PyObject*> wait.fetch_session
        cdef int64_t epoch
        cdef int32_t count
        if get(fetch_session, FETCH_SESSION_IS_CLOSED) != Py_False:
            return None
        if not get_int64(fetch_session, FETCH_SESSION_EPOCH, &epoch) or epoch != wait.epoch:
            return None
        if not (
            self._find_pending(&wait.frame, fetch_session)
            and reads.read(wait.client, &self._pending, self._partitions)
        ):
            return None
        count = self._pending.entry_count
        try:
            if not reads.is_within_quotas(wait.client, &self._pending, wait.spent, wait.resumed):
                return None
            reads.count_records_out(wait.client, &self._pending, self._partitions)
            self._select_changed(fetch_session)
            return reads.respond_late(wait.client, &self._pending, self._names.data, self._partitions)
        finally:
            reads.release(count)
            self._entries.clear()
            self._partitions.clear()

    cdef object _find_session(self, const FetchFrame* frame, object client):
        """Return the FetchSession that the frame continues, None if the request is unusual."""
        cdef PyObject* found
        cdef PyObject* reader
        cdef PyObject* access
        cdef int64_t epoch, cached_size
        fetch_session = self._cache.get(frame.session_id)
        found = <PyObject*> fetch_session
        if not is_exactly(found, <PyObject*> _FetchSession):
            return None
        if not get_int64(found, FETCH_SESSION_EPOCH, &epoch) or epoch != frame.session_epoch:
            return None
        if get(found, FETCH_SESSION_USES_TOPIC_IDS) != (Py_True if frame.by_id else Py_False):
            return None
        if get(found, FETCH_SESSION_WAITING) != <PyObject*> None or get(found, FETCH_SESSION_IS_CLOSED) != Py_False:
            return None
        if not get_int64(found, FETCH_SESSION_CACHED_SIZE, &cached_size):
            return None
        if cached_size <= 0 or cached_size != len(<dict> get(found, FETCH_SESSION_PARTITIONS)):
            return None
        if monotonic() - <double> fetch_session.checked >= MAX_UNCHECKED_SECONDS:
            return None
        isolation, is_follower, reads_with, generation = fetch_session.reader
        access = get(<PyObject*> client, SESSION_ACCESS)
        if isolation != frame.committed_only or is_follower or <PyObject*> reads_with != access:
            return None
        if generation != (0 if access == <PyObject*> None else (<object> access).generation):
            return None
        return fetch_session

    cdef bint _update(self, const FetchFrame* frame, PyObject* fetch_session, const uint8_t* data) except -1:
        """Replace the positions of the session's partitions by the frame's. Returns False if one is new or repeated."""
        cdef dict partitions = <dict> get(fetch_session, FETCH_SESSION_PARTITIONS)
        cdef dict pending = <dict> get(fetch_session, FETCH_SESSION_PENDING)
        cdef set updated = set() if frame.entry_count > 1 else None
        cdef const FetchTopic* topic
        cdef const FetchEntry* entry
        cdef PyObject* found
        cdef int32_t index, number
        if frame.entry_count > MAX_PENDING:
            return False
        for index in range(frame.topic_count):
            topic = &frame.topics[index]
            name = PyBytes_FromStringAndSize(<const char*> data + topic.at, topic.size)
            if not frame.by_id:
                try:
                    name = (<bytes> name).decode()
                except UnicodeDecodeError:
                    return False
            for number in range(topic.first, topic.first + topic.count):
                entry = &frame.entries[number]
                found = PyDict_GetItemWithError(partitions, (name, entry.number))
                if not is_exactly(found, <PyObject*> _SessionPartition):
                    return False
                position = _position_of(entry)
                put(found, ENTRY_FETCH, <PyObject*> position)
                PyDict_SetItem(pending, <object> found, None)
                if updated is not None:
                    updated.add(<object> found)
        return updated is None or len(updated) == frame.entry_count

    cdef bint _find_pending(self, const FetchFrame* frame, PyObject* fetch_session) except -1:
        """Fill `_pending`, `_entries` and `_partitions`, in the session's order. Returns False if one is unusual."""
        cdef FetchFrame* pending = &self._pending
        cdef dict listed = <dict> get(fetch_session, FETCH_SESSION_PENDING)
        cdef bint by_id = frame.by_id
        cdef PyObject* named
        cdef PyObject* numbered = NULL
        cdef PyObject* partition
        cdef PyObject* before = NULL
        cdef FetchTopic* topic = NULL
        cdef FetchEntry* entry
        if len(listed) > MAX_PENDING:
            return False
        pending.by_id = frame.by_id
        pending.version = frame.version
        pending.correlation_id = frame.correlation_id
        pending.max_bytes = frame.max_bytes
        pending.committed_only = frame.committed_only
        pending.session_id = frame.session_id
        pending.topic_count = 0
        pending.entry_count = 0
        reserve_topics(pending, len(listed))
        reserve_entries(pending, len(listed))
        self._names.size = 0
        reserve(&self._names, 1)
        self._partitions.clear()
        self._entries = list(listed)
        if len(self._entries) > 1:
            self._entries.sort(key=_rank)
        for each in self._entries:
            entry = &pending.entries[pending.entry_count]
            named = get(<PyObject*> each, ENTRY_TOPIC_ID if by_id else ENTRY_TOPIC)
            if not self._copy_position(get(<PyObject*> each, ENTRY_FETCH), entry):
                return False
            if before != NULL and (named == before or <object> named == <object> before):
                topic.count += 1
            else:
                topic = &pending.topics[pending.topic_count]
                if by_id:
                    if not is_exactly(named, <PyObject*> bytes) or not <str> get(<PyObject*> each, ENTRY_TOPIC):
                        return False
                    key = <bytes> <object> named
                    numbered = PyDict_GetItemWithError(self._by_id, key)
                else:
                    if not is_exactly(named, <PyObject*> str):
                        return False
                    key = (<str> <object> named).encode()
                    numbered = PyDict_GetItemWithError(self._by_name, key)
                if numbered == NULL:
                    return False
                topic.at = <int32_t> self._names.size
                topic.size = <int32_t> len(<bytes> key)
                topic.first = pending.entry_count
                topic.count = 1
                memcpy(reserve(&self._names, topic.size), PyBytes_AS_STRING(key), topic.size)
                self._names.size += topic.size
                pending.topic_count += 1
                before = named
            if entry.number < 0 or entry.number >= PyList_GET_SIZE(<list> numbered):
                return False
            partition = PyList_GET_ITEM(numbered, entry.number)
            if not is_exactly(partition, <PyObject*> Partition):
                return False
            self._partitions.append(<object> partition)
            pending.entry_count += 1
        return True

    cdef bint _copy_position(self, PyObject* position, FetchEntry* entry) except -1:
        """Copy a FetchPartition. Returns False if it is of another class or out of range."""
        cdef int64_t number, max_bytes, epoch, last_fetched_epoch
        if not is_exactly(position, <PyObject*> _FetchPartition):
            return False
        if not (
            get_int64(position, POSITION_PARTITION, &number)
            and get_int64(position, POSITION_OFFSET, &entry.offset)
            and get_int64(position, POSITION_MAX_BYTES, &max_bytes)
            and get_int64(position, POSITION_EPOCH, &epoch)
            and get_int64(position, POSITION_LAST_FETCHED_EPOCH, &last_fetched_epoch)
        ):
            return False
        max_bytes = max(0, max_bytes)
        entry.number = <int32_t> number
        entry.max_bytes = <int32_t> max_bytes
        entry.leader_epoch = <int32_t> epoch
        entry.last_fetched_epoch = <int32_t> last_fetched_epoch
        return number == entry.number and max_bytes == entry.max_bytes and epoch == entry.leader_epoch

    cdef int _select_changed(self, PyObject* fetch_session) except -1:
        """Reduce the pass to the partitions that the response contains, record these, and settle all that were read."""
        cdef FetchFrame* pending = &self._pending
        cdef FetchTopic topic
        cdef FetchTopic* last = NULL
        cdef PyObject* entry
        cdef FetchedPart* part
        cdef int64_t high_watermark = -1
        cdef int64_t log_start_offset = -1
        cdef int64_t rank = 0
        cdef int32_t index, at
        cdef int32_t kept = 0
        cdef int32_t topics = 0
        cdef int32_t topic_count = pending.topic_count
        cdef bint has_records
        for index in range(topic_count):
            topic = pending.topics[index]
            for at in range(topic.first, topic.first + topic.count):
                entry = PyList_GET_ITEM(<PyObject*> self._entries, at)
                part = &self._reads.parts[at]
                has_records = self._reads.slices[at].handle != NULL
                get_int64(entry, ENTRY_HIGH_WATERMARK, &high_watermark)
                get_int64(entry, ENTRY_LOG_START_OFFSET, &log_start_offset)
                if (
                    not has_records
                    and high_watermark == part.high_watermark
                    and log_start_offset == part.log_start_offset
                ):
                    self._settle(fetch_session, entry, PyList_GET_ITEM(<PyObject*> self._partitions, at), at)
                    continue
                set_int64(entry, ENTRY_HIGH_WATERMARK, part.high_watermark)
                set_int64(entry, ENTRY_LOG_START_OFFSET, part.log_start_offset)
                if has_records:
                    get_int64(fetch_session, FETCH_SESSION_LAST_RANK, &rank)
                    set_int64(fetch_session, FETCH_SESSION_LAST_RANK, rank + 1)
                    set_int64(entry, ENTRY_RANK, rank + 1)
                self._settle(fetch_session, entry, PyList_GET_ITEM(<PyObject*> self._partitions, at), at)
                if last == NULL or not self._has_name(last, &topic):
                    last = &pending.topics[topics]
                    topics += 1
                    last[0] = topic
                    last.first = kept
                    last.count = 0
                if kept != at:
                    pending.entries[kept] = pending.entries[at]
                    self._reads.parts[kept] = part[0]
                    self._reads.slices[kept] = self._reads.slices[at]
                    self._reads.slices[at].handle = NULL
                    self._partitions[kept] = self._partitions[at]
                last.count += 1
                kept += 1
        pending.topic_count = topics
        pending.entry_count = kept
        del self._partitions[kept:]
        return 0

    cdef bint _has_name(self, const FetchTopic* one, const FetchTopic* other) noexcept:
        return one.size == other.size and memcmp(self._names.data + one.at, self._names.data + other.at, one.size) == 0

    cdef int _settle(self, PyObject* fetch_session, PyObject* entry, PyObject* partition, int32_t index) except -1:
        """As FetchSession.settle, for a partition that was just read; `index` is its place in `_pending`."""
        cdef PyObject* core = get(get(partition, PARTITION_LOG), LOG_CORE)
        cdef LogOffsets offsets
        cdef int64_t high_watermark = -1
        cdef int64_t log_start_offset = -1
        self._watch(entry, partition)
        get_int64(entry, ENTRY_HIGH_WATERMARK, &high_watermark)
        get_int64(entry, ENTRY_LOG_START_OFFSET, &log_start_offset)
        if (
            get(core, CORE_STATE) != <PyObject*> _online
            or not read_offsets(core, &offsets)
            or self._pending.entries[index].offset < (
                offsets.stable if self._pending.committed_only else offsets.end
            )
            or high_watermark != offsets.end
            or log_start_offset != offsets.start
        ):
            put(entry, ENTRY_IS_WATCHING, Py_False)
            (<dict> get(partition, PARTITION_WAITERS)).pop(<object> entry, None)
        else:
            (<dict> get(fetch_session, FETCH_SESSION_PENDING)).pop(<object> entry, None)
        return 0

    cdef int _watch(self, PyObject* entry, PyObject* partition) except -1:
        """As SessionPartition.watch."""
        cdef PyObject* core
        if get(entry, ENTRY_PARTITION) != partition:
            (<object> entry).unwatch()
            put(entry, ENTRY_PARTITION, partition)
        core = get(get(partition, PARTITION_LOG), LOG_CORE)
        if not self._pending.committed_only or get(core, CORE_FIRST_UNSTABLE_OFFSET) == <PyObject*> None:
            put(entry, ENTRY_SEEN_BYTES, get(partition, PARTITION_APPENDED_BYTES))
        else:
            (<object> entry).seen_bytes = (<object> partition).stable_bytes
        if get(entry, ENTRY_IS_WATCHING) != Py_True:
            put(entry, ENTRY_IS_WATCHING, Py_True)
            PyDict_SetItem(<dict> get(partition, PARTITION_WAITERS), <object> entry, None)
        return 0
    cdef int _wait(
        self,
        const FetchFrame* frame,
        object fetch_session,
        object client,
        const uint8_t* data,
        Py_ssize_t size,
        int64_t missing_bytes,
    ) except -1:
        """Let an incremental frame wait for appends."""
        cdef SessionFetchWait wait = SessionFetchWait.__new__(SessionFetchWait)
        cdef int32_t index
        for index in range(self._pending.entry_count):
            self._watch(<PyObject*> self._entries[index], <PyObject*> self._partitions[index])
        wait.sessions = self
        wait.fetch_session = fetch_session
        wait.epoch = fetch_session.epoch
        wait.frame = frame[0]
        begin_frame(&wait.frame)  # its arrays stay the kernel's
        fetch_session.waiting = wait
        self._waits.begin(wait, client, data, size, missing_bytes)
        return 0


cdef class SessionFetchWait(FetchWait):
    """An incremental fetch that waits for appends: the SessionWait of its session, as session_wait.py."""

    def changed(self, entry):
        """Answer if the partition is unavailable, or has brought the appended bytes to the request's min_bytes."""
        partition = entry.partition
        if partition is None or not partition.is_available:
            self.finish()
            return
        seen = partition.stable_bytes if self.frame.committed_only else partition.appended_bytes
        self.missing_bytes -= seen - entry.seen_bytes
        entry.seen_bytes = seen
        if self.missing_bytes <= 0:
            self.finish()

    def finish_soon(self):
        """Answer in the next turn of the loop: a response may serve the connection's next request."""
        self.unregister()
        self.waits.loop.call_soon(self.finish)

    cdef int unregister(self) except -1:
        if self.fetch_session.waiting is self:
            self.fetch_session.waiting = None
        return 0

    cdef object handler(self):
        return partial(self.sessions._finish, self.fetch_session, self.epoch)

    cdef object answer(self):
        return self.sessions.answer(self)
