# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Scan over the stored batches of a segment, compiled. scan_python.py is its Python twin and documents it.

A whole buffer is scanned without the GIL: results go into C vectors, which become Python objects at the buffer's end.
Bytes are read through plain pointers, so every read is preceded by a bounds check: sizes are compared by subtraction
(`size > remaining - at`), which cannot overflow.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport calloc, free, realloc

from barnabas.protocol.records.kernels._big_endian cimport int16_at, int32_at, int64_at, put_int32, put_int64, uint32_at

import os

from barnabas.protocol.records.kernels.scanned import ProducerBatch, ScanFault

cdef extern from "_crc32c.h":
    void crc32c_prepare()
    uint32_t crc32c_of(const uint8_t* data, size_t size) noexcept nogil
    uint32_t crc32c_by_tables(const uint8_t* data, size_t size) noexcept nogil

# As in layout.py; tests/protocol assert it.
cdef enum:
    HEADER_SIZE = 61
    LOG_OVERHEAD = 12
    MAGIC_V2 = 2
    MAGIC_POSITION = 16
    ATTRIBUTES_POSITION = 21
    TRANSACTIONAL_MASK = 0x10
    CONTROL_MASK = 0x20
    NO_TIMESTAMP = -1
    REMEMBERED_BATCHES = 5

cdef int64_t INT32_MAX = 0x7FFFFFFF
cdef int64_t INT64_MAX = 0x7FFFFFFFFFFFFFFF
cdef uint64_t HASH_FACTOR = 0x9E3779B97F4A7C15
cdef uint64_t HASH_SEED = int.from_bytes(os.urandom(8), "little")  # clients choose producer ids, so the hash is seeded

cdef enum Fault:
    FINE
    TORN
    OLD_FORMAT
    BAD_HEADER
    BAD_CRC
    BAD_OFFSETS
    OVERFLOW
    NO_MEMORY

cdef tuple FAULTS = (
    None,
    ScanFault.TORN,
    ScanFault.OLD_FORMAT,
    ScanFault.BAD_HEADER,
    ScanFault.BAD_CRC,
    ScanFault.BAD_OFFSETS,
    ScanFault.OVERFLOW,
)

cdef struct Vector:
    uint8_t* data
    size_t size
    size_t capacity

cdef struct Row:
    int64_t position
    int64_t producer_id
    int64_t last_offset
    int64_t max_timestamp
    int32_t size
    int32_t base_sequence
    int32_t last_offset_delta
    int32_t record_count
    int16_t producer_epoch
    uint8_t attributes
    bint kept

cdef struct Epoch:
    int64_t epoch
    int64_t start_offset

cdef struct Producer:
    # A slot of the table by which superseded rows are dropped.
    int64_t producer_id
    int32_t later
    bint is_used
    bint in_transaction

crc32c_prepare()


def crc32c(data, *, bint by_tables=False):
    """Return the CRC-32C of a buffer, by this machine's instruction or by tables; for tests."""
    cdef Py_buffer view
    cdef uint32_t crc
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    with nogil:
        if by_tables:
            crc = crc32c_by_tables(<const uint8_t*> view.buf, view.len)
        else:
            crc = crc32c_of(<const uint8_t*> view.buf, view.len)
    PyBuffer_Release(&view)
    return crc


cdef class BatchScan:
    """See scan_python.BatchScan."""

    cdef int64_t _base_offset, _index_interval_bytes, _max_offset_entries, _max_time_entries, _producers_from
    cdef int64_t _latest_epoch, _indexed_position, _time_of_last_entry, _offset_entry_count, _time_entry_count
    cdef int64_t _first_timestamp
    cdef bint _check_crc, _has_first
    cdef Fault _fault
    cdef Vector _offsets, _times, _rows, _epochs
    cdef readonly int64_t position, next_offset, needed_bytes, max_timestamp, max_timestamp_offset

    def __init__(
        self,
        int64_t base_offset,
        *,
        int64_t position=0,
        bint check_crc=True,
        int64_t index_interval_bytes=0,
        int64_t max_offset_entries=0,
        int64_t max_time_entries=0,
        int64_t producers_from=0,
        int64_t latest_epoch=-1,
    ):
        self._base_offset = base_offset
        self._check_crc = check_crc
        self._index_interval_bytes = index_interval_bytes
        self._max_offset_entries = max_offset_entries
        self._max_time_entries = max_time_entries
        self._producers_from = producers_from
        self._latest_epoch = latest_epoch
        self._indexed_position = 0
        self._time_of_last_entry = NO_TIMESTAMP
        self._offset_entry_count = self._time_entry_count = 0
        self._has_first = False
        self._fault = FINE
        self.position = position
        self.next_offset = base_offset
        self.needed_bytes = 0
        self.max_timestamp = NO_TIMESTAMP
        self.max_timestamp_offset = base_offset

    def __dealloc__(self):
        free(self._offsets.data)
        free(self._times.data)
        free(self._rows.data)
        free(self._epochs.data)

    @property
    def fault(self):
        return FAULTS[<int> self._fault]

    @property
    def first_timestamp(self):
        return self._first_timestamp if self._has_first else None

    @property
    def offset_entries(self):
        return bytearray(self._offsets.data[: self._offsets.size])

    @property
    def time_entries(self):
        return bytearray(self._times.data[: self._times.size])

    @property
    def epochs(self):
        cdef const Epoch* rows = <const Epoch*> self._epochs.data
        cdef size_t index
        return [(rows[index].epoch, rows[index].start_offset) for index in range(self._epochs.size // sizeof(Epoch))]

    @property
    def producer_batch_count(self):
        return self._rows.size // sizeof(Row)

    def feed(self, buffer, int64_t remaining):
        """See scan_python.BatchScan.feed."""
        cdef Py_buffer view
        PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
        with nogil:
            self._fault = self._feed(<const uint8_t*> view.buf, min(view.len, remaining), remaining)
        PyBuffer_Release(&view)
        self._raise_without_memory()
        return FAULTS[<int> self._fault]

    def pass_batch(self, int64_t size, int64_t base_offset, int64_t last_offset, int64_t max_timestamp):
        """See scan_python.BatchScan.pass_batch."""
        self._fault = self._pass(size, base_offset, last_offset, max_timestamp)
        self._raise_without_memory()

    def take_producer_batches(self):
        """See scan_python.BatchScan.take_producer_batches."""
        cdef Row* rows = <Row*> self._rows.data
        cdef size_t count = self._rows.size // sizeof(Row)
        cdef size_t index
        cdef bint done
        cdef list batches = []
        if count == 0:
            return batches
        with nogil:
            done = _thin_out(rows, count)
        if not done:
            raise MemoryError
        for index in range(count):
            if rows[index].kept:
                batches.append(
                    ProducerBatch(
                        rows[index].position,
                        rows[index].size,
                        rows[index].producer_id,
                        rows[index].producer_epoch,
                        rows[index].base_sequence,
                        rows[index].last_offset,
                        rows[index].last_offset_delta,
                        rows[index].max_timestamp,
                        rows[index].record_count,
                        (rows[index].attributes & TRANSACTIONAL_MASK) != 0,
                        (rows[index].attributes & CONTROL_MASK) != 0,
                    )
                )
        self._rows.size = 0
        return batches

    cdef Fault _feed(self, const uint8_t* data, int64_t total, int64_t remaining) noexcept nogil:
        cdef int64_t at = 0
        cdef int64_t size, base_offset, delta, last_offset, max_timestamp, epoch
        cdef const uint8_t* batch
        cdef Row* row
        cdef Epoch* entry
        cdef Fault fault
        self.needed_bytes = 0
        while remaining > at:
            if remaining - at <= MAGIC_POSITION:
                return TORN
            if total - at <= MAGIC_POSITION:
                return FINE
            batch = data + at
            if batch[MAGIC_POSITION] != MAGIC_V2:
                return OLD_FORMAT if batch[MAGIC_POSITION] < MAGIC_V2 else BAD_HEADER
            if remaining - at < HEADER_SIZE:
                return TORN
            if total - at < HEADER_SIZE:
                return FINE
            base_offset = int64_at(batch)
            size = <int64_t> int32_at(batch + 8) + LOG_OVERHEAD
            delta = int32_at(batch + 23)
            if size < HEADER_SIZE or base_offset < 0 or delta < 0 or delta >= INT64_MAX - base_offset:
                return BAD_HEADER
            if size > remaining - at:
                return TORN
            if size > total - at:
                self.needed_bytes = size
                return FINE
            if self._check_crc and uint32_at(batch + 17) != crc32c_of(
                batch + ATTRIBUTES_POSITION, size - ATTRIBUTES_POSITION
            ):
                return BAD_CRC
            last_offset = base_offset + delta
            max_timestamp = int64_at(batch + 35)
            fault = self._pass(size, base_offset, last_offset, max_timestamp)
            if fault != FINE:
                return fault
            epoch = int32_at(batch + 12)
            if epoch > self._latest_epoch:
                self._latest_epoch = epoch
                entry = <Epoch*> _grow(&self._epochs, sizeof(Epoch))
                if entry is NULL:
                    return NO_MEMORY
                entry.epoch = epoch
                entry.start_offset = base_offset
            if batch[43] < 0x80 and last_offset >= self._producers_from:
                row = <Row*> _grow(&self._rows, sizeof(Row))
                if row is NULL:
                    return NO_MEMORY
                row.position = self.position - size
                row.size = <int32_t> size
                row.producer_id = int64_at(batch + 43)
                row.producer_epoch = int16_at(batch + 51)
                row.base_sequence = int32_at(batch + 53)
                row.last_offset = last_offset
                row.last_offset_delta = <int32_t> delta
                row.max_timestamp = max_timestamp
                row.record_count = int32_at(batch + 57)
                row.attributes = batch[22]
            at += size
        return FINE

    cdef Fault _pass(
        self, int64_t size, int64_t base_offset, int64_t last_offset, int64_t max_timestamp
    ) noexcept nogil:
        cdef uint8_t* out
        if base_offset < self.next_offset:
            return BAD_OFFSETS
        if last_offset - self._base_offset > INT32_MAX or size > INT32_MAX - self.position:
            return OVERFLOW
        if not self._has_first:
            self._has_first = True
            self._first_timestamp = max_timestamp
        if max_timestamp > self.max_timestamp:
            self.max_timestamp = max_timestamp
            self.max_timestamp_offset = last_offset
        if (
            self.position - self._indexed_position > self._index_interval_bytes
            and self._offset_entry_count < self._max_offset_entries
            and self._time_entry_count < self._max_time_entries - 1
        ):
            out = _grow(&self._offsets, 8)
            if out is NULL:
                return NO_MEMORY
            put_int32(put_int32(out, <uint32_t> (last_offset - self._base_offset)), <uint32_t> self.position)
            self._offset_entry_count += 1
            self._indexed_position = self.position
            if self.max_timestamp > self._time_of_last_entry:
                out = _grow(&self._times, 12)
                if out is NULL:
                    return NO_MEMORY
                self._time_of_last_entry = self.max_timestamp
                out = put_int64(out, <uint64_t> self.max_timestamp)
                put_int32(out, <uint32_t> (self.max_timestamp_offset - self._base_offset))
                self._time_entry_count += 1
        self.position += size
        self.next_offset = last_offset + 1
        return FINE

    cdef int _raise_without_memory(self) except -1:
        if self._fault == NO_MEMORY:
            self._fault = FINE
            raise MemoryError
        return 0


cdef uint8_t* _grow(Vector* vector, size_t size) noexcept nogil:
    """Reserve `size` more bytes at the end and return them; NULL without memory."""
    cdef uint8_t* data
    cdef size_t capacity = vector.capacity
    if size > capacity - vector.size:
        capacity = capacity * 2 if capacity else 1024
        data = <uint8_t*> realloc(vector.data, capacity)
        if data is NULL:
            return NULL
        vector.data = data
        vector.capacity = capacity
    data = vector.data + vector.size
    vector.size += size
    return data


cdef bint _thin_out(Row* rows, size_t count) noexcept nogil:
    """Mark the rows that producer state needs; False without memory."""
    cdef size_t slots = 4
    cdef size_t index
    cdef Producer* table
    cdef Producer* producer
    while slots < 2 * count:
        slots *= 2
    table = <Producer*> calloc(slots, sizeof(Producer))
    if table is NULL:
        return False
    for index in range(count):
        producer = _slot(table, slots - 1, rows[index].producer_id)
        rows[index].kept = not producer.is_used or rows[index].attributes & CONTROL_MASK != 0
        producer.is_used = True
        producer.producer_id = rows[index].producer_id
        if rows[index].attributes & CONTROL_MASK:
            producer.in_transaction = False
        elif rows[index].attributes & TRANSACTIONAL_MASK and not producer.in_transaction:
            producer.in_transaction = True
            rows[index].kept = True
    index = count
    while index:
        index -= 1
        if not rows[index].attributes & CONTROL_MASK:
            producer = _slot(table, slots - 1, rows[index].producer_id)
            if producer.later < REMEMBERED_BATCHES:
                producer.later += 1
                rows[index].kept = True
    free(table)
    return True


cdef inline Producer* _slot(Producer* table, size_t mask, int64_t producer_id) noexcept nogil:
    """Return the producer's slot, or the empty one for it. The table is never more than half full."""
    cdef uint64_t mixed = (<uint64_t> producer_id ^ HASH_SEED) * HASH_FACTOR
    cdef size_t at = <size_t> ((mixed ^ mixed >> 32) * HASH_FACTOR >> 32) & mask
    while table[at].is_used and table[at].producer_id != producer_id:
        at = (at + 1) & mask
    return table + at


