# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Produce, from a frame in the receive buffer to the response: handlers/data/produce.py for plain requests.

Plain: see protocol/kafka/kernels/_produce.pyx; besides, acks 0, 1 or -1, and topics that the client may write, that are
not internal, and whose partitions are served here. All of this is checked before the first append. A batch that the
log's kernel cannot append (errors among them) ends the kernel's part of the request: the Python handler gets the
results so far and appends the rest. Where a flush has to come first, the response is encoded and waits for it.

A request with a transactional id and transactional batches is plain if the client may write in the transaction. The
handler admits its batches first (produce_admission.py); where it refuses some or has to wait, it also appends them.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.dict cimport PyDict_GetItemWithError
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint8_t

from barnabas.broker.handlers.data.kernels._client cimport is_granted, set_client_id, topic_name
from barnabas.broker.handlers.data.kernels._produce_waits cimport ProduceWait, wait_for_flushes
from barnabas.broker.network.kernels._frames cimport (
    ANSWERED,
    BEGUN,
    MUTED,
    SERVED,
    UNUSUAL,
    FrameKernel,
    Outgoing,
    reserve,
)
from barnabas.broker.partitions.kernels._partition cimport append_to_partition
from barnabas.broker.quotas.kernels._session_quota cimport count_produce, use_quotas
from barnabas.broker.storage.kernels._append cimport APPENDED, Appended
from barnabas.broker.storage.kernels._clock cimport wall_ms
from barnabas.broker.storage.kernels._slots cimport get, get_int64, is_exactly, offset_of
from barnabas.protocol.kafka.kernels._produce cimport (
    ProduceBatch,
    ProduceFrame,
    ProduceTopic,
    begin_frame,
    encode_response,
    parse_frame,
    release_frame,
    response_bound,
)

from functools import partial

from barnabas.broker.handlers.data.produce_admission import Batch
from barnabas.broker.network.session import Session
from barnabas.broker.partitions.partition import Partition
from barnabas.broker.partitions.registry import PartitionRegistry
from barnabas.broker.storage.log.append import AppendResult
from barnabas.broker.storage.log.core import LogCore
from barnabas.broker.storage.log.partition_log import PartitionLog
from barnabas.broker.storage.log.readable_log import ReadableLog
from barnabas.broker.storage.services.clock import SystemClock
from barnabas.config.log_config import LogConfig
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.data.produce import ProduceRequest
from barnabas.protocol.topic_name import INTERNAL_TOPICS

cdef extern from "Python.h":
    object PyUnicode_DecodeUTF8(const char* text, Py_ssize_t size, const char* errors)

cdef enum:
    ACKS_ALL = -1
    ACKS_NONE = 0
    ACKS_LEADER = 1
    THROTTLE_MAX_MS = 0x7FFFFFFF

cdef Py_ssize_t SESSION_QUOTA = offset_of(Session, "quota")
cdef Py_ssize_t SESSION_ACCESS = offset_of(Session, "access")
cdef Py_ssize_t PARTITION_LOG = offset_of(Partition, "writable_log")
cdef Py_ssize_t LOG_CORE = offset_of(ReadableLog, "core")
cdef Py_ssize_t CORE_CONFIG = offset_of(LogCore, "config")
cdef Py_ssize_t CONFIG_MIN_INSYNC_REPLICAS = offset_of(LogConfig, "min_insync_replicas")

cdef PyObject* PARTITION = <PyObject*> Partition
cdef PyObject* LOG_CLASS = <PyObject*> PartitionLog
cdef PyObject* LOG_CORE_CLASS = <PyObject*> LogCore
cdef PyObject* LOG_CONFIG_CLASS = <PyObject*> LogConfig

cdef object _AppendResult = AppendResult
cdef int _PRODUCE_API = ApiKey.PRODUCE
cdef object _Batch = Batch
cdef object _ProduceRequest = ProduceRequest
cdef frozenset _INTERNAL_TOPICS = INTERNAL_TOPICS


cdef class ProduceKernel(FrameKernel):
    """Serves plain Produce requests. Event loop only."""

    cdef dict _by_name
    cdef dict _by_id
    cdef object _finish
    cdef object _flush_waits
    cdef object _admit
    cdef object _finish_admitted
    cdef object _wall_ms  # None: the system's clock
    cdef ProduceFrame _frame
    cdef list _partitions  # those of the frame's batches, in their order

    def __cinit__(self):
        begin_frame(&self._frame)

    def __init__(self, probe, registry, clock, handler):
        """`handler`: the ProduceHandler that finishes requests and admits batches to transactions."""
        super().__init__(probe)
        if type(registry) is not PartitionRegistry:
            raise TypeError("the produce kernel needs a PartitionRegistry")
        self._by_name = registry.by_name
        self._by_id = registry.by_id
        self._finish = handler.finish
        self._flush_waits = handler.flush_waits
        self._admit = handler.admit
        self._finish_admitted = handler.finish_admitted
        self._wall_ms = None if type(clock) is SystemClock else clock.wall_ms
        self._partitions = []

    def __dealloc__(self):
        release_frame(&self._frame)

    cdef int serve(
        self, object session, object view, Py_ssize_t position, uint8_t* data, Py_ssize_t size, Outgoing* out
    ) except -1:
        cdef ProduceFrame* frame = &self._frame
        cdef PyObject* found = <PyObject*> session
        cdef Py_ssize_t appended = 0
        cdef bint flush_due = False
        cdef bint has_quota = get(found, SESSION_QUOTA) != <PyObject*> None
        cdef int32_t throttle_ms = 0
        if not parse_frame(data, size, frame):
            return UNUSUAL
        if frame.has_transactional != (frame.transactional_id_size >= 0):
            return UNUSUAL
        if not ACKS_ALL <= frame.acks <= ACKS_LEADER:
            return UNUSUAL
        try:
            if not self._find_partitions(found) or not set_client_id(
                found, <const char*> frame.client_id, frame.client_id_size
            ):
                return UNUSUAL
            if has_quota and not use_quotas(session, self.started, size):
                return UNUSUAL
            if frame.has_transactional:
                transactional_id = self._transactional_id(found)
                if transactional_id is None:
                    return UNUSUAL
                try:
                    refusals = self._admit(self._request_head(transactional_id), self._batches(view, position, data))
                except Exception:
                    return UNUSUAL  # raised again by the handler, which the dispatcher calls and answers for
                if type(refusals) is not dict or refusals:
                    self.result = partial(self._finish_admitted, refusals, ())
                    return BEGUN
            appended = self._append_batches(view, &flush_due)
            if flush_due and appended == frame.batch_count and frame.acks != ACKS_NONE:
                self._wait(session, size)
                return ANSWERED
            if flush_due or appended < frame.batch_count:
                if frame.has_transactional:
                    self.result = partial(self._finish_admitted, refusals, self._results(appended))
                    return BEGUN
                if appended == 0:
                    return UNUSUAL
                self.result = partial(self._finish, self._results(appended))
                return BEGUN
        finally:
            self._partitions.clear()
        if has_quota and not count_produce(session, self.started, size, frame.acks != ACKS_NONE):
            throttle_ms = self._count_by_python(<object> get(found, SESSION_QUOTA), size)
        if frame.acks != ACKS_NONE:
            out.size += encode_response(frame, throttle_ms, reserve(out, response_bound(frame)))
        return SERVED if throttle_ms == 0 else MUTED

    cdef int _wait(self, object session, Py_ssize_t size) except -1:
        """Let the response wait for the flushes of its batches: `result` is its Deferred."""
        cdef ProduceFrame* frame = &self._frame
        cdef ProduceBatch* batch
        cdef ProduceWait wait
        cdef Py_ssize_t index
        cdef bytearray response = bytearray(response_bound(frame))
        del response[encode_response(frame, 0, <uint8_t*> <char*> response):]
        wait = wait_for_flushes(self, session, bytes(response), frame.version, size)
        for index in range(frame.batch_count):
            batch = &frame.batches[index]
            if batch.flush_due:
                partition = self._partitions[index]
                self._flush_waits.wait(
                    partition, batch.base_offset + batch.record_count, wait.flush_of(partition, batch.result_at)
                )
        self.result = wait.late
        return 0

    cdef int32_t _count_by_python(self, object quota, Py_ssize_t size) except -1:
        """Count the frame, mute the connection if it exceeds a bound, and return the throttle time."""
        quota.begin(self.started, size)
        return min(quota.finish(_PRODUCE_API, is_answered=self._frame.acks != ACKS_NONE), THROTTLE_MAX_MS)

    cdef Py_ssize_t _append_batches(self, object view, bint* flush_due) except -1:
        """Append the batches up to the first one that is not plain. Returns how many were appended."""
        cdef ProduceFrame* frame = &self._frame
        cdef ProduceBatch* batch
        cdef Appended result
        cdef int64_t now_ms = wall_ms() if self._wall_ms is None else self._wall_ms()
        cdef Py_ssize_t index
        for index in range(frame.batch_count):
            batch = &frame.batches[index]
            if append_to_partition(
                <object> PyList_GET_ITEM(self._partitions, index), view, batch.records, batch.size,
                frame.has_transactional, now_ms, &result,
            ) != APPENDED:
                return index
            batch.base_offset = result.base_offset
            batch.log_append_time_ms = result.log_append_time_ms
            batch.log_start_offset = result.log_start_offset
            batch.record_count = result.record_count
            batch.flush_due = result.acks_all_flush_due if frame.acks == ACKS_ALL else result.flush_due
            flush_due[0] |= batch.flush_due
        return frame.batch_count

    cdef object _transactional_id(self, PyObject* session):
        """Return the frame's transactional id; None where the client is not known to be allowed to write in it."""
        cdef ProduceFrame* frame = &self._frame
        cdef PyObject* access = get(session, SESSION_ACCESS)
        try:
            transactional_id = PyUnicode_DecodeUTF8(
                <const char*> frame.transactional_id, frame.transactional_id_size, NULL
            )
        except UnicodeDecodeError:
            return None
        if access != <PyObject*> None:
            if not is_granted((<object> access).write_transaction, <PyObject*> transactional_id):
                return None
        return transactional_id

    cdef object _request_head(self, str transactional_id):
        """Return the frame's request without its topics, as far as the admission uses it."""
        return _ProduceRequest(
            acks=self._frame.acks,
            timeout_ms=0,
            topics=[],
            transactional_id=transactional_id,
            version=self._frame.version,
        )

    cdef list _batches(self, object view, Py_ssize_t position, uint8_t* data):
        """Return the frame's batches for the admission, with their records in `view`."""
        cdef ProduceBatch* batch
        cdef Py_ssize_t index, start
        cdef list batches = []
        for index in range(self._frame.batch_count):
            batch = &self._frame.batches[index]
            start = position + (batch.records - data)
            partition = self._partitions[index]
            batches.append(_Batch(partition.log.topic_partition, partition, view[start : start + batch.size]))
        return batches

    cdef list _results(self, Py_ssize_t appended):
        """Return the first partitions, each with the result of its append."""
        cdef ProduceBatch* batch
        cdef Py_ssize_t index
        cdef list results = []
        for index in range(appended):
            batch = &self._frame.batches[index]
            results.append((
                self._partitions[index],
                _AppendResult(
                    batch.base_offset,
                    batch.base_offset + batch.record_count - 1,
                    batch.log_append_time_ms,
                    batch.log_start_offset,
                    batch.size,
                    batch.record_count,
                    batch.flush_due,
                ),
            ))
        return results

    cdef bint _find_partitions(self, PyObject* session) except -1:
        """Collect the partition of each batch. Returns False where one is not plain."""
        cdef ProduceFrame* frame = &self._frame
        cdef ProduceTopic* topic
        cdef ProduceBatch* batch = frame.batches
        cdef ProduceBatch* topic_end
        cdef PyObject* numbered
        cdef PyObject* partition
        cdef PyObject* access = get(session, SESSION_ACCESS)
        cdef Py_ssize_t index
        cdef dict by_topic = self._by_id if frame.by_id else self._by_name
        cdef object write_topic = None
        if access == NULL:
            return False
        if access != <PyObject*> None:
            write_topic = (<object> access).write_topic
        for index in range(frame.topic_count):
            topic = &frame.topics[index]
            numbered = PyDict_GetItemWithError(
                by_topic, PyBytes_FromStringAndSize(<const char*> topic.name, topic.name_size)
            )
            if not is_exactly(numbered, <PyObject*> list):
                return False
            topic_end = batch + topic.batch_count
            partition = NULL
            while batch < topic_end:
                if not 0 <= batch.partition < PyList_GET_SIZE(<list> numbered):
                    return False
                partition = <PyObject*> PyList_GET_ITEM(<list> numbered, batch.partition)
                if not is_exactly(partition, PARTITION) or not is_exactly(get(partition, PARTITION_LOG), LOG_CLASS):
                    return False
                if frame.acks == ACKS_ALL and not _has_enough_replicas(get(partition, PARTITION_LOG)):
                    return False
                self._partitions.append(<object> partition)
                batch += 1
            if not _may_write(get(partition, PARTITION_LOG), write_topic):
                return False
        return True


cdef bint _may_write(PyObject* log, object write_topic) except -1:
    """Return whether the client may write to a log's topic by what is known; `write_topic` None: to any."""
    cdef PyObject* topic = topic_name(log)
    if topic == NULL or <object> topic in _INTERNAL_TOPICS:
        return False
    return write_topic is None or is_granted(write_topic, topic)


cdef bint _has_enough_replicas(PyObject* log) except -1:
    """Return whether a log accepts acks=-1 with the one replica that a single node has."""
    cdef PyObject* core = get(log, LOG_CORE)
    cdef PyObject* config
    cdef int64_t replicas
    if not is_exactly(core, LOG_CORE_CLASS):
        return False
    config = get(core, CORE_CONFIG)
    if not is_exactly(config, LOG_CONFIG_CLASS):
        return False
    return get_int64(config, CONFIG_MIN_INSYNC_REPLICAS, &replicas) and replicas <= 1
