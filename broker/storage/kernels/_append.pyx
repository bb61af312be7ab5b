# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""The append of one batch to one log: the common cases of LogAppender and of TrustedAppender.

A client's batch is checked, stamped and written as ClientBatchRules and LogAppender do it, a coordinator's as
TrustedAppender. Unusual, beside what _placing and _producers leave to Python: any batch that would be refused, one that
the topic recompresses, and a log whose lock is taken. Batches of at least RELEASE_BYTES are checked and written without
the GIL; the caller keeps strong references to everything that it uses afterwards.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport uint32_t
from libc.string cimport memcpy

from barnabas.broker.storage.kernels._numbers cimport PyTuple_SET_ITEM, new_tuple, set_number
from barnabas.broker.storage.kernels._placing cimport Place, find_place, move_end, write_batch
from barnabas.broker.storage.kernels._producers cimport ProducerStep, check_batch, check_epoch, note_batch
from barnabas.broker.storage.kernels._slots cimport get_int64, offset_of
from barnabas.protocol.records.kernels._big_endian cimport (
    int16_at,
    int32_at,
    int64_at,
    put_int16,
    put_int32,
    put_int64,
    uint32_at,
)
from barnabas.protocol.records.kernels._walk cimport FINE, Payload, Summary, Walk, summarize

from barnabas.broker.storage.log.append import INLINE_DECOMPRESSED_BYTES, AppendResult
from barnabas.broker.storage.log.core import LogCore
from barnabas.protocol.compression import CODECS, borrow_decompressed
from barnabas.protocol.errors import DecompressionError

cdef extern from "../../../protocol/records/kernels/_crc32c.h":
    void crc32c_prepare()
    uint32_t crc32c_of(const uint8_t* data, size_t size) nogil

cdef extern from *:
    bint sub_overflow "__builtin_sub_overflow"(int64_t, int64_t, int64_t*) noexcept nogil

cdef extern from "Python.h":
    PyObject* PyBool_FromLong(long value)
    void Py_DECREF(PyObject* object)
    object PyObject_Call(object callable, object arguments, PyObject* keywords)

# As in layout.py; tests/storage/kernels compares them.
cdef enum:
    LOG_OVERHEAD = 12
    HEADER_SIZE = 61
    LENGTH_POSITION = 8
    EPOCH_POSITION = 12
    MAGIC_POSITION = 16
    CRC_POSITION = 17
    ATTRIBUTES_POSITION = 21
    LAST_OFFSET_DELTA_POSITION = 23
    BASE_TIMESTAMP_POSITION = 27
    MAX_TIMESTAMP_POSITION = 35
    PRODUCER_ID_POSITION = 43
    PRODUCER_EPOCH_POSITION = 51
    BASE_SEQUENCE_POSITION = 53
    RECORD_COUNT_POSITION = 57
    MAGIC_V2 = 2
    CODEC_MASK = 0x07
    TIMESTAMP_TYPE_MASK = 0x08
    TRANSACTIONAL_MASK = 0x10
    CONTROL_MASK = 0x20
    DELETE_HORIZON_MASK = 0x40
    NO_TIME = -1
    RELEASE_BYTES = 32768

cdef int64_t INT64_MAX = 0x7FFFFFFFFFFFFFFF
cdef tuple WITHOUT_WAITING = (False,)
cdef Py_ssize_t CORE_LOG_START_OFFSET = offset_of(LogCore, "log_start_offset")
cdef Py_ssize_t CORE_DURABLE_OFFSET = offset_of(LogCore, "durable_offset")

crc32c_prepare()


cdef class AppendKernel:
    """Appends to one log. `use_config` is called under the log's lock."""

    def __init__(self, core not None):
        if type(core) is not LogCore:
            raise TypeError(f"{type(core).__name__} is not LogCore")
        self.core = core
        self._acquire = core.lock.acquire
        self._release = core.lock.release
        self.use_config(core.config)

    def use_config(self, config):
        """Use another configuration for the next appends."""
        self._recompresses = config.compression_type not in ("producer", "uncompressed")
        self._takes_compressed = config.compression_type == "producer"
        self._compact = config.needs_keys
        self._log_append_time = config.timestamp_type == "LogAppendTime"
        self._before_max_ms = min(config.timestamp_before_max_ms, INT64_MAX)
        self._after_max_ms = min(config.timestamp_after_max_ms, INT64_MAX)
        self._max_message_bytes = config.max_message_bytes
        self._segment_bytes = config.segment_bytes
        self._flush_messages = min(config.flush_messages, INT64_MAX)
        self._flush_acks_all = config.flush_acks_all

    def append_as_leader(self, records, int32_t leader_epoch, bint in_transaction, int64_t now_ms):
        """Append one client batch; return its AppendResult, or None if it is unusual."""
        cdef Py_buffer view
        cdef Appended out
        if not len(records):
            return None  # the buffer of an empty batch may be read-only
        PyObject_GetBuffer(records, &view, PyBUF_WRITABLE)
        try:
            if self.append(
                records, <uint8_t*> view.buf, view.len, leader_epoch, in_transaction, now_ms, &out
            ) != APPENDED:
                return None
        finally:
            PyBuffer_Release(&view)
        return result_of(&out)

    def append_trusted_batch(self, records, int32_t leader_epoch, int64_t now_ms):
        """Append one batch of a coordinator; return its AppendResult, or None if it is unusual."""
        cdef Py_buffer view
        cdef Appended out
        PyObject_GetBuffer(records, &view, PyBUF_WRITABLE)
        try:
            if self.append_trusted(<uint8_t*> view.buf, view.len, leader_epoch, now_ms, &out) != APPENDED:
                return None
        finally:
            PyBuffer_Release(&view)
        return result_of(&out)

    cdef int append(
        self,
        object buffer_owner,
        uint8_t* data,
        Py_ssize_t size,
        int32_t leader_epoch,
        bint in_transaction,
        int64_t now_ms,
        Appended* out,
    ) except -1:
        """Append the client's batch at `data`, which is within the buffer of `buffer_owner` and patched in place.

        `out` is filled for APPENDED. Raises MemoryError.
        """
        cdef Batch batch
        cdef bint sound
        if self._recompresses or size > self._max_message_bytes:
            return UNUSUAL
        if size >= RELEASE_BYTES:
            with nogil:
                sound = _read_header(data, size, &batch)
        else:
            sound = _read_header(data, size, &batch)
        if (
            not sound
            or int64_at(data) != 0
            or batch.attributes & (CONTROL_MASK | DELETE_HORIZON_MASK | TIMESTAMP_TYPE_MASK)
            or (batch.attributes & TRANSACTIONAL_MASK and not in_transaction)
            or batch.last_offset_delta != batch.record_count - 1
            or (batch.producer_id >= 0 and batch.base_sequence < 0)
            or not self._check_records(buffer_owner, data, now_ms, &batch)
        ):
            return UNUSUAL
        return self._append(data, &batch, leader_epoch, True, now_ms, out)

    cdef int append_trusted(
        self, uint8_t* data, Py_ssize_t size, int32_t leader_epoch, int64_t now_ms, Appended* out
    ) except -1:
        """Append a coordinator's batch, whose records are not checked."""
        cdef Batch batch
        if (
            size > self._max_message_bytes
            or not _read_header(data, size, &batch)
            or batch.attributes & ~(CODEC_MASK | TRANSACTIONAL_MASK)
            or batch.last_offset_delta < 0
        ):
            return UNUSUAL
        return self._append(data, &batch, leader_epoch, False, now_ms, out)

    cdef bint _check_records(
        self, object buffer_owner, const uint8_t* data, int64_t now_ms, Batch* batch
    ) except -1:
        """Check the records of a client's batch; set the timestamps that it gets. Returns False if it is unusual."""
        cdef Payload payload
        cdef Summary summary
        cdef int64_t age
        payload.data = data + HEADER_SIZE
        payload.total = batch.size - HEADER_SIZE
        payload.count = batch.record_count
        payload.last_offset_delta = batch.last_offset_delta
        payload.base_timestamp = batch.base_timestamp
        payload.contiguous = True
        if batch.attributes & CODEC_MASK:
            if not self._takes_compressed or not _is_sound_decompressed(buffer_owner, &payload, batch, &summary):
                return False
        elif not _is_sound(&payload, &summary):
            return False
        if summary.null_keys and self._compact:
            return False
        if self._log_append_time:
            batch.log_append_time_ms = batch.max_timestamp = now_ms
            batch.attributes |= TIMESTAMP_TYPE_MASK
            batch.restamped = True
            return True
        if sub_overflow(summary.max_timestamp, now_ms, &age) or age > self._after_max_ms:
            return False
        if summary.min_timestamp != NO_TIME and (
            sub_overflow(now_ms, summary.min_timestamp, &age) or age > self._before_max_ms
        ):
            return False
        if summary.max_timestamp != batch.max_timestamp:
            batch.max_timestamp = summary.max_timestamp
            batch.restamped = True
        return True

    cdef int _append(
        self, uint8_t* data, Batch* batch, int32_t leader_epoch, bint is_client, int64_t now_ms, Appended* out
    ) except -1:
        if batch.size > self._segment_bytes or PyObject_Call(self._acquire, WITHOUT_WAITING, NULL) is not True:
            return UNUSUAL
        try:
            return self._append_locked(data, batch, leader_epoch, is_client, now_ms, out)
        finally:
            self._release()

    cdef int _append_locked(
        self, uint8_t* data, Batch* batch, int32_t leader_epoch, bint is_client, int64_t now_ms, Appended* out
    ) except -1:
        cdef PyObject* core = <PyObject*> self.core
        cdef uint8_t header[HEADER_SIZE]
        cdef ProducerStep step
        cdef Place place
        cdef bint is_transactional = batch.attributes & TRANSACTIONAL_MASK != 0
        cdef bint has_producer = batch.producer_id >= 0
        step.opens_transaction = False
        if not find_place(
            core,
            batch.size,
            batch.last_offset_delta,
            batch.max_timestamp,
            now_ms,
            self._segment_bytes,
            leader_epoch,
            &place,
        ):
            return UNUSUAL
        if has_producer and not (
            check_batch(
                core,
                batch.producer_id,
                batch.producer_epoch,
                batch.base_sequence,
                batch.last_offset_delta,
                is_transactional,
                &step,
            )
            if is_client
            else check_epoch(
                core, batch.producer_id, batch.producer_epoch, batch.base_sequence, is_transactional, &step
            )
        ):
            return UNUSUAL
        memcpy(header, data, HEADER_SIZE)
        _stamp(data, batch, place.base_offset, leader_epoch)
        if not write_batch(data, &place):
            memcpy(data, header, HEADER_SIZE)
            return UNUSUAL
        if has_producer:
            # Before the end of the log: read_committed must not see a transaction that has just begun.
            note_batch(core, &step, place.last_offset, batch.last_offset_delta, batch.max_timestamp, now_ms)
        move_end(core, &place)
        out.log_append_time_ms = batch.log_append_time_ms
        out.record_count = batch.record_count
        out.opens_transaction = step.opens_transaction
        fill_appended(self, &place, is_client, out)
        return APPENDED


cdef int fill_appended(AppendKernel log, const Place* place, bint is_client, Appended* out) except -1:
    """Set what a result takes from the log; the caller sets append time, count and `opens_transaction`."""
    cdef PyObject* core = <PyObject*> log.core
    cdef int64_t durable_offset
    if not (
        get_int64(core, CORE_LOG_START_OFFSET, &out.log_start_offset)
        and get_int64(core, CORE_DURABLE_OFFSET, &durable_offset)
    ):
        raise OverflowError("the log start offset or the durable offset is above 2**63 - 1")
    out.base_offset = place.base_offset
    out.last_offset = place.last_offset
    out.size_bytes = place.size
    out.acks_all_flush_due = log._flush_acks_all or place.last_offset + 1 - durable_offset >= log._flush_messages
    out.flush_due = (
        place.last_offset + 1 - durable_offset >= log._flush_messages if is_client else out.acks_all_flush_due
    )
    out.is_duplicate = False
    return 0


cdef bint _read_header(const uint8_t* data, Py_ssize_t size, Batch* batch) noexcept nogil:
    """Read the header of a batch of exactly `size` bytes; return whether format, count and CRC are right."""
    if size < HEADER_SIZE or int32_at(data + LENGTH_POSITION) != size - LOG_OVERHEAD:
        return False
    if data[MAGIC_POSITION] != MAGIC_V2:
        return False
    batch.size = size
    batch.attributes = int16_at(data + ATTRIBUTES_POSITION)
    batch.last_offset_delta = int32_at(data + LAST_OFFSET_DELTA_POSITION)
    batch.base_timestamp = int64_at(data + BASE_TIMESTAMP_POSITION)
    batch.max_timestamp = int64_at(data + MAX_TIMESTAMP_POSITION)
    batch.producer_id = int64_at(data + PRODUCER_ID_POSITION)
    batch.producer_epoch = int16_at(data + PRODUCER_EPOCH_POSITION)
    batch.base_sequence = int32_at(data + BASE_SEQUENCE_POSITION)
    batch.record_count = int32_at(data + RECORD_COUNT_POSITION)
    batch.restamped = False
    batch.log_append_time_ms = NO_TIME
    if batch.record_count <= 0:
        return False
    return crc32c_of(data + ATTRIBUTES_POSITION, size - ATTRIBUTES_POSITION) == uint32_at(data + CRC_POSITION)


cdef bint _is_sound(const Payload* payload, Summary* summary) noexcept:
    cdef Walk walk
    cdef bint sound
    if payload.total >= RELEASE_BYTES:
        with nogil:
            sound = summarize(payload, &walk, summary) == FINE
        return sound
    return summarize(payload, &walk, summary) == FINE


cdef bint _is_sound_decompressed(
    object buffer_owner, Payload* payload, const Batch* batch, Summary* summary
) except -1:
    """Decompress the payload and check its records."""
    cdef Py_buffer whole
    cdef Py_buffer records
    cdef Py_ssize_t start
    cdef bint sound
    cdef int codec = batch.attributes & CODEC_MASK
    if codec >= len(CODECS):
        return False
    PyObject_GetBuffer(buffer_owner, &whole, PyBUF_SIMPLE)
    start = payload.data - <const uint8_t*> whole.buf
    sound = HEADER_SIZE <= start <= whole.len and payload.total <= whole.len - start
    PyBuffer_Release(&whole)
    if not sound:
        raise ValueError("the batch is not within its owner's buffer")
    try:
        borrowed = borrow_decompressed(
            CODECS[codec],
            memoryview(buffer_owner)[start : start + payload.total],
            INLINE_DECOMPRESSED_BYTES,
            as_kafka=True,
        )
    except DecompressionError:
        return False  # the Python path decompresses again, and refuses the batch or lets a thread check it
    PyObject_GetBuffer(borrowed, &records, PyBUF_SIMPLE)
    payload.data = <const uint8_t*> records.buf
    payload.total = records.len
    sound = _is_sound(payload, summary)
    PyBuffer_Release(&records)
    return sound


cdef void _stamp(uint8_t* data, const Batch* batch, int64_t base_offset, int32_t leader_epoch) noexcept:
    """Write offset and epoch, which the CRC does not cover, and timestamps with a new CRC if they changed."""
    put_int64(data, base_offset)
    put_int32(data + EPOCH_POSITION, leader_epoch)
    if batch.restamped:
        put_int16(data + ATTRIBUTES_POSITION, batch.attributes)
        put_int64(data + MAX_TIMESTAMP_POSITION, batch.max_timestamp)
        put_int32(data + CRC_POSITION, crc32c_of(data + ATTRIBUTES_POSITION, batch.size - ATTRIBUTES_POSITION))


cdef object result_of(const Appended* out):
    """Return the AppendResult."""
    cdef PyObject* target = new_tuple(AppendResult, 9)
    result = <object> target
    Py_DECREF(target)
    set_number(target, 0, out.base_offset)
    set_number(target, 1, out.last_offset)
    set_number(target, 2, out.log_append_time_ms)
    set_number(target, 3, out.log_start_offset)
    set_number(target, 4, out.size_bytes)
    set_number(target, 5, out.record_count)
    PyTuple_SET_ITEM(target, 6, PyBool_FromLong(out.flush_due))
    PyTuple_SET_ITEM(target, 7, PyBool_FromLong(out.is_duplicate))
    PyTuple_SET_ITEM(target, 8, PyBool_FromLong(out.opens_transaction))
    return result
