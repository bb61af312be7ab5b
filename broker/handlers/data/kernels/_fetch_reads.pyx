# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Reads of a fetch's partitions, the counters of what was sent, and the response.

Fetches that are woken together and end with the same batch share its bytes.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.dict cimport PyDict_DelItem, PyDict_GetItemWithError, PyDict_SetItem
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

from barnabas.broker.handlers.data.kernels._client cimport is_granted, topic_name
from barnabas.broker.network.kernels._frames cimport Outgoing, reserve
from barnabas.broker.quotas.kernels._session_quota cimport check_fetch, count_fetch, fetch_budget
from barnabas.broker.storage.kernels._read cimport (
    READ_FOUND,
    READ_UNUSUAL,
    LogOffsets,
    Read,
    Slice,
    file_slice,
    find_slice,
    read_cached,
    read_offsets,
)
from barnabas.broker.storage.kernels._slots cimport get, get_int64, is_exactly, offset_of, set_int64
from barnabas.protocol.kafka.kernels._fetch cimport (
    FetchedPart,
    FetchEntry,
    FetchFrame,
    encode_response,
    response_bound,
)

from barnabas.broker.network.response_frame import ResponseFrame
from barnabas.broker.network.response_sender import SENDFILE_MIN_BYTES
from barnabas.broker.network.session import Session
from barnabas.broker.partitions.partition import Partition
from barnabas.broker.probes import TopicProbe
from barnabas.broker.storage.log.core import LogCore
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.broker.storage.log.readable_log import ReadableLog

cdef extern from "Python.h":
    PyObject* Py_False
    PyObject* PyTuple_GET_ITEM(PyObject*, Py_ssize_t)

cdef enum:
    # Sizes by which a quota counts a response without its records, as fetch_attempt.py.
    COUNTED_RESPONSE = 16
    COUNTED_TOPIC = 18
    COUNTED_PARTITION = 40

cdef Py_ssize_t SESSION_QUOTA = offset_of(Session, "quota")
cdef Py_ssize_t SESSION_ACCESS = offset_of(Session, "access")
cdef Py_ssize_t SESSION_FETCHED_TO = offset_of(Session, "fetched_to")
cdef Py_ssize_t PARTITION_LOG = offset_of(Partition, "log")
cdef Py_ssize_t PARTITION_EPOCH = offset_of(Partition, "leader_epoch")
cdef Py_ssize_t PARTITION_PROBE = offset_of(Partition, "probe")
cdef Py_ssize_t PARTITION_RETIRED = offset_of(Partition, "_retired")
cdef Py_ssize_t LOG_CORE = offset_of(ReadableLog, "core")
cdef Py_ssize_t LOG_TOPIC_PARTITION = offset_of(ReadableLog, "topic_partition")
cdef Py_ssize_t CORE_END = offset_of(LogCore, "end")
cdef Py_ssize_t CORE_LATEST_EPOCH = offset_of(LogCore, "latest_epoch")
cdef Py_ssize_t PROBE_BYTES_OUT = offset_of(TopicProbe, "bytes_out")
cdef Py_ssize_t PROBE_RECORDS_OUT = offset_of(TopicProbe, "records_out")

cdef object _new_tuple = tuple.__new__
cdef object _ResponseFrame = ResponseFrame
cdef tuple _NO_PARTS = ()

cdef int64_t SMALL_BYTES = SENDFILE_MIN_BYTES
cdef int64_t RESPONSE_MAX = 0x7FFFFFFF


cdef class FetchReads:
    """Event loop only."""

    def __cinit__(self):
        self.slices = NULL
        self.parts = NULL
        self._capacity = 0
        self._scratch.data = NULL
        self._scratch.size = 0
        self._scratch.capacity = 0

    def __init__(self, int64_t fetch_max_bytes):
        """`fetch_max_bytes`: fetch.max.bytes."""
        self._fetch_max_bytes = fetch_max_bytes

    def __dealloc__(self):
        free(self.slices)
        free(self.parts)
        free(self._scratch.data)

    cdef bint read(self, object client, const FetchFrame* frame, list partitions) except -1:
        """Read all partitions; then `slices` have to be released. Returns False, with none to release, if unusual."""
        cdef int64_t budget = min(<int64_t> frame.max_bytes, self._fetch_max_bytes)
        cdef int32_t index
        cdef bint done = False
        if get(<PyObject*> client, SESSION_QUOTA) != <PyObject*> None:
            budget = min(budget, fetch_budget(client))
            if budget < 0:
                return False
        self._max_bytes = budget
        self._reserve(frame.entry_count)
        self._records_size = 0
        self._has_later_segments = False
        for index in range(frame.entry_count):
            self.slices[index].handle = NULL
        try:
            for index in range(frame.entry_count):
                if not self._read_one(client, frame, <PyObject*> partitions[index], index, &budget):
                    return False
            done = self._records_size + response_bound(frame) < RESPONSE_MAX
            return done
        finally:
            if not done:
                self.release(frame.entry_count)

    cdef bint _read_one(
        self, object client, const FetchFrame* frame, PyObject* partition, int32_t index, int64_t* budget
    ) except -1:
        cdef const FetchEntry* entry = &frame.entries[index]
        cdef FetchedPart* part = &self.parts[index]
        cdef PyObject* log = get(partition, PARTITION_LOG)
        cdef PyObject* core
        cdef PyObject* access
        cdef PyObject* topic
        cdef LogOffsets offsets
        cdef Slice* found = &self.slices[index]
        cdef int64_t epoch
        cdef Read outcome
        if not is_exactly(log, <PyObject*> PartitionLog) or get(partition, PARTITION_RETIRED) != Py_False:
            return False
        if entry.leader_epoch != -1:
            if not get_int64(partition, PARTITION_EPOCH, &epoch) or epoch != entry.leader_epoch:
                return False
        access = get(<PyObject*> client, SESSION_ACCESS)
        if access != <PyObject*> None:
            topic = topic_name(log)
            if topic == NULL or not is_granted((<object> access).read_topic, topic):
                return False
        core = get(log, LOG_CORE)
        if entry.last_fetched_epoch >= 0:
            # Python compares an earlier epoch. The latest one ends at the log end: a fetch offset beyond is refused below.
            if not get_int64(core, CORE_LATEST_EPOCH, &epoch) or epoch != entry.last_fetched_epoch:
                return False
        if not read_offsets(core, &offsets):
            return False
        outcome = find_slice(
            core,
            entry.offset,
            min(<int64_t> entry.max_bytes, budget[0]),
            offsets.stable if frame.committed_only else offsets.end,
            self._records_size == 0,
            frame.committed_only,
            found,
        )
        if outcome == READ_UNUSUAL:
            return False
        part.records_size = 0
        if outcome == READ_FOUND:
            part.records_size = found.size
            self._records_size += found.size
            budget[0] = max(0, budget[0] - found.size)
            self._has_later_segments = self._has_later_segments or found.has_later_segments
        # After the read, as in Python: a thread may have appended meanwhile.
        if not read_offsets(core, &offsets):
            return False
        part.high_watermark = offsets.end
        part.last_stable_offset = offsets.stable
        part.log_start_offset = offsets.start
        return True

    cdef int _reserve(self, int32_t count) except -1:
        cdef Slice* slices
        cdef FetchedPart* parts
        if count > self._capacity:
            slices = <Slice*> realloc(self.slices, count * sizeof(Slice))
            if slices == NULL:
                raise MemoryError
            self.slices = slices
            parts = <FetchedPart*> realloc(self.parts, count * sizeof(FetchedPart))
            if parts == NULL:
                raise MemoryError
            self.parts = parts
            self._capacity = count
        return 0

    cdef int release(self, int32_t count) except -1:
        cdef int32_t index
        cdef PyObject* handle
        for index in range(count):
            handle = self.slices[index].handle
            if handle != NULL:
                self.slices[index].handle = NULL
                Py_DECREF(<object> handle)
        return 0

    cdef int64_t missing_bytes(self, const FetchFrame* frame) noexcept:
        """Return how many more bytes than `read` has found the fetch waits for; 0 if it is answered now."""
        cdef int64_t min_bytes = min(<int64_t> frame.min_bytes, self._max_bytes)
        if frame.max_wait_ms == 0 or self._has_later_segments:
            return 0
        return max(0, min_bytes - self._records_size)

    cdef bint is_within_quotas(self, object client, const FetchFrame* frame, double spent, double since) except -1:
        """Return whether the response is within the quotas of its client; if not, Python counts and answers it.

        It took `spent` seconds of the event loop, and those since a time of `monotonic`.
        """
        if get(<PyObject*> client, SESSION_QUOTA) == <PyObject*> None:
            return True
        return check_fetch(client, spent, since, self._counted_size(frame), &self._count)

    cdef int64_t _counted_size(self, const FetchFrame* frame) noexcept:
        return (
            COUNTED_RESPONSE
            + frame.topic_count * COUNTED_TOPIC
            + frame.entry_count * COUNTED_PARTITION
            + self._records_size
        )

    # --- counters

    cdef int count_records_out(self, object client, const FetchFrame* frame, list partitions) except -1:
        """As handlers/data/fetch.py: count the records of the previous fetch when the offset after them is fetched."""
        cdef dict fetched_to = <dict> get(<PyObject*> client, SESSION_FETCHED_TO)
        cdef PyObject* partition
        cdef PyObject* log
        cdef PyObject* probe
        cdef PyObject* before
        cdef int64_t offset, start, end, records
        cdef int32_t index
        for index in range(frame.entry_count):
            partition = <PyObject*> partitions[index]
            log = get(partition, PARTITION_LOG)
            key = <object> get(log, LOG_TOPIC_PARTITION)
            offset = frame.entries[index].offset
            before = PyDict_GetItemWithError(fetched_to, key)
            if before != NULL:
                start = <object> PyTuple_GET_ITEM(before, 0)
                end = <object> PyTuple_GET_ITEM(before, 1)
                probe = get(partition, PARTITION_PROBE)
                if start < offset and is_exactly(probe, <PyObject*> TopicProbe) and get_int64(
                    probe, PROBE_RECORDS_OUT, &records
                ):
                    set_int64(probe, PROBE_RECORDS_OUT, records + min(offset, end) - start)
            if self.slices[index].handle != NULL:
                PyDict_SetItem(fetched_to, key, (offset, self.parts[index].high_watermark))
            elif before != NULL:
                PyDict_DelItem(fetched_to, key)
        return 0

    cdef int _count_bytes_out(self, object client, const FetchFrame* frame, list partitions) except -1:
        """Count a response, which `is_within_quotas`, for its topics and its client."""
        cdef PyObject* probe
        cdef int64_t count
        cdef int32_t index
        for index in range(frame.entry_count):
            if self.slices[index].handle != NULL:
                probe = get(<PyObject*> partitions[index], PARTITION_PROBE)
                if is_exactly(probe, <PyObject*> TopicProbe) and get_int64(probe, PROBE_BYTES_OUT, &count):
                    set_int64(probe, PROBE_BYTES_OUT, count + self.slices[index].size)
        if get(<PyObject*> client, SESSION_QUOTA) != <PyObject*> None:
            count_fetch(&self._count, self._counted_size(frame))
        return 0

    # --- responses

    cdef object respond(
        self, object client, const FetchFrame* frame, const uint8_t* data, list partitions, Outgoing* out
    ):
        """Append the response to `out` if it is small and in memory, and return None; else return a ResponseFrame."""
        cdef uint8_t* target
        cdef int64_t size
        self._count_bytes_out(client, frame, partitions)
        if self._records_size < SMALL_BYTES:
            target = reserve(out, response_bound(frame) + self._records_size)
            size = encode_response(frame, data, self.parts, True, target)
            if self._fill(frame, target):
                out.size += size
                return None
        return self._large(frame, data)

    cdef object respond_late(self, object client, const FetchFrame* frame, const uint8_t* data, list partitions):
        """Return the response of a wake as a ResponseFrame."""
        cdef Outgoing* out = &self._scratch
        cdef uint8_t* target
        cdef int64_t size
        self._count_bytes_out(client, frame, partitions)
        if self._records_size < SMALL_BYTES:
            out.size = 0
            target = reserve(out, response_bound(frame) + self._records_size)
            size = encode_response(frame, data, self.parts, True, target)
            if self._fill_shared(frame, target, partitions):
                response = PyBytes_FromStringAndSize(<char*> target, size)
                self._share(frame, response, partitions)
                return _new_tuple(_ResponseFrame, (response, _NO_PARTS))
        return self._large(frame, data)

    cdef bint _fill_shared(self, const FetchFrame* frame, uint8_t* target, list partitions) except -1:
        """Like `_fill`, but records that the response before had are copied from there."""
        cdef PyObject* end
        if frame.entry_count == 1 and self._shared is not None and self.slices[0].is_at_end:
            end = get(get(get(<PyObject*> partitions[0], PARTITION_LOG), LOG_CORE), CORE_END)
            if (
                end == <PyObject*> self._shared_end
                and self.slices[0].position == self._shared_position
                and self.slices[0].size == self._shared_size
            ):
                memcpy(
                    target + self.parts[0].records_at,
                    PyBytes_AS_STRING(self._shared) + self._shared_at,
                    self.slices[0].size,
                )
                return True
        return self._fill(frame, target)

    cdef int _share(self, const FetchFrame* frame, bytes response, list partitions) except -1:
        """Keep a response for the next one that ends with the same batch.

        A log end is replaced by every append and truncation, so records that end at the same object are the same.
        """
        if frame.entry_count == 1 and self.slices[0].handle != NULL and self.slices[0].is_at_end:
            self._shared_end = <object> get(get(get(<PyObject*> partitions[0], PARTITION_LOG), LOG_CORE), CORE_END)
            self._shared = response
            self._shared_at = self.parts[0].records_at
            self._shared_position = self.slices[0].position
            self._shared_size = self.slices[0].size
        return 0

    cdef bint _fill(self, const FetchFrame* frame, uint8_t* target) except -1:
        """Read the records into their places. Returns False where that would wait for the disk."""
        cdef int32_t index
        cdef Slice* found
        for index in range(frame.entry_count):
            found = &self.slices[index]
            if found.handle != NULL:
                if read_cached(
                    found.fd, <char*> target + self.parts[index].records_at, found.size, found.position
                ) != found.size:
                    return False
        return True

    cdef object _large(self, const FetchFrame* frame, const uint8_t* data):
        """Return a ResponseFrame with slices of files."""
        cdef bytearray out = bytearray(response_bound(frame))
        cdef uint8_t* target = <uint8_t*> <char*> out
        cdef int64_t size = encode_response(frame, data, self.parts, False, target)
        cdef int64_t done = 0
        cdef int64_t at
        cdef int32_t index
        cdef bytes head = None
        cdef list pieces = []
        for index in range(frame.entry_count):
            if self.slices[index].handle != NULL:
                at = self.parts[index].records_at
                if head is None:
                    head = PyBytes_FromStringAndSize(<char*> target, at)
                elif done < at:
                    pieces.append(PyBytes_FromStringAndSize(<char*> target + done, at - done))
                pieces.append(file_slice(&self.slices[index]))
                done = at
        rest = PyBytes_FromStringAndSize(<char*> target + done, size - done)
        if head is None:
            head = rest
        elif done < size:
            pieces.append(rest)
        return _new_tuple(_ResponseFrame, (head, pieces))
