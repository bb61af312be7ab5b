# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""The cleaner's per-record work, compiled. cleaning_python.py is its Python twin and documents each method.

Whole buffers are processed without the GIL. Keys are hashed by SipHash-2-4 with 128 bits. Records are looked up in
groups: all of a group are hashed and their slots prefetched before the first lookup, because each slot is a cache miss.
Bytes are read through plain pointers, each after a bounds check, as in _kernel.pyx. A table belongs to one thread.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.stdlib cimport free, realloc
from libc.string cimport memcpy

from barnabas.protocol.records.kernels._big_endian cimport int32_at, int64_at, put_int32, put_int64, uint32_at
from barnabas.protocol.records.kernels._varint cimport put_varint, varint_size
from barnabas.protocol.records.kernels._walk cimport (
    BAD_COUNT,
    BYTES_AFTER_LAST,
    FINE,
    Fault,
    Payload,
    Walk,
    start_walk,
    step,
)

from barnabas.protocol.records.kernels.cleaned import (
    HASH_MASK,
    AddedBatches,
    AddedRecords,
    FilteredBatches,
    FilteredRecords,
    Stop,
)
from barnabas.protocol.records.errors import REASONS as _REASONS, CorruptRecordError, InvalidRecordError

cdef extern from "_crc32c.h":
    void crc32c_prepare()
    uint32_t crc32c_of(const uint8_t* data, size_t size) noexcept nogil

cdef extern from *:
    """
    #define CLEANING_PREFETCH(address) __builtin_prefetch(address)
    #define SIP_ROTATE(x, b) (((x) << (b)) | ((x) >> (64 - (b))))
    #define SIP_ROUND \
        v0 += v1; v1 = SIP_ROTATE(v1, 13); v1 ^= v0; v0 = SIP_ROTATE(v0, 32); \
        v2 += v3; v3 = SIP_ROTATE(v3, 16); v3 ^= v2; \
        v0 += v3; v3 = SIP_ROTATE(v3, 21); v3 ^= v0; \
        v2 += v1; v1 = SIP_ROTATE(v1, 17); v1 ^= v2; v2 = SIP_ROTATE(v2, 32);

    /* SipHash-2-4 with 128 bits of output (Aumasson and Bernstein); words are read in the machine's order. */
    static inline void siphash128(const uint64_t key[2], const uint8_t *data, size_t size, uint64_t hash[2]) {
        uint64_t v0 = 0x736f6d6570736575ULL ^ key[0], v1 = 0x646f72616e646f6dULL ^ key[1] ^ 0xee;
        uint64_t v2 = 0x6c7967656e657261ULL ^ key[0], v3 = 0x7465646279746573ULL ^ key[1];
        uint64_t last = (uint64_t) size << 56, word;
        for (; size >= 8; size -= 8, data += 8) {
            memcpy(&word, data, 8);
            v3 ^= word;
            SIP_ROUND SIP_ROUND
            v0 ^= word;
        }
        for (size_t index = 0; index < size; index++)
            last |= (uint64_t) data[index] << (8 * index);
        v3 ^= last;
        SIP_ROUND SIP_ROUND
        v0 ^= last;
        v2 ^= 0xee;
        SIP_ROUND SIP_ROUND SIP_ROUND SIP_ROUND
        hash[0] = v0 ^ v1 ^ v2 ^ v3;
        v1 ^= 0xdd;
        SIP_ROUND SIP_ROUND SIP_ROUND SIP_ROUND
        hash[1] = v0 ^ v1 ^ v2 ^ v3;
    }
    static inline uint64_t scale_to(uint64_t value, uint64_t range) {
        return (uint64_t) (((unsigned __int128) value * range) >> 64);
    }
    """
    void prefetch "CLEANING_PREFETCH"(const void* address) noexcept nogil
    void siphash128(const uint64_t* key, const uint8_t* data, size_t size, uint64_t* hashed) noexcept nogil
    uint64_t scale_to(uint64_t value, uint64_t range) noexcept nogil

# As in layout.py and cleaned.py; tests/protocol compare results with the twin's.
cdef enum:
    HEADER_SIZE = 61
    LOG_OVERHEAD = 12
    MAGIC_V2 = 2
    MAGIC_POSITION = 16
    CRC_POSITION = 17
    ATTRIBUTES_POSITION = 21
    TIMESTAMP_TYPE_MASK = 0x08
    DELETE_HORIZON_MASK = 0x40
    KEPT_ATTRIBUTES = 0x3F  # all defined bits but the delete horizon
    ASIDE_ATTRIBUTES = 0x37  # codec, transactional, control
    ENTRY_BYTES = 24
    HASHED_PROBES = 16
    GROUP = 32

cdef int64_t INT64_MAX = 0x7FFFFFFFFFFFFFFF

cdef enum Stopped:
    CUT
    ASIDE
    FULL
    NO_ROOM
    BAD_HEADER
    BAD_CRC
    BAD_RECORDS
    NO_MEMORY

cdef tuple STOPS = (Stop.CUT, Stop.ASIDE, Stop.FULL, Stop.NO_ROOM)

cdef tuple REASONS = _REASONS

cdef struct Slot:
    uint64_t hashed[2]
    int64_t next_offset  # the offset + 1; 0: an empty slot

cdef struct Batch:
    const uint8_t* data
    int64_t size
    int64_t base_offset
    int64_t last_offset
    int64_t base_timestamp
    int64_t max_timestamp
    int64_t producer_id
    int32_t attributes
    int32_t count
    Payload records

cdef struct Item:
    # A record of the group that is being looked up.
    uint64_t hashed[2]
    int64_t offset_delta
    int64_t timestamp
    int64_t rest_at  # the position after the key's size field
    int64_t end
    int64_t key_size
    bint has_value
    bint is_known  # the table covers its offset, so its key is looked up

cdef struct Rules:
    int64_t latest_offset
    int64_t now_ms
    int64_t new_horizon_ms
    int64_t round_end_offset
    const int64_t* last_data
    int64_t last_data_count

cdef struct Selection:
    # What the first pass over a batch's records found; the kept records are in the table's `_kept`.
    Fault fault
    int64_t fault_index
    int64_t read
    int64_t kept
    int64_t invalid
    int64_t max_timestamp
    bint has_tombstones
    # The outcome for the batch.
    bint rewrites
    bint sets_horizon
    bint has_horizon
    int64_t base_timestamp
    int64_t payload_bytes

cdef struct Written:
    int64_t position
    int64_t size
    int64_t last_offset
    int64_t max_timestamp

crc32c_prepare()


cdef class OffsetTable:
    """See cleaning_python.OffsetTable."""

    cdef Py_buffer _memory
    cdef bint _is_open
    cdef Slot* _table
    cdef readonly int64_t slots
    cdef readonly int64_t entries
    cdef uint64_t _key[2]
    cdef uint64_t _mask[2]
    cdef Item* _kept
    cdef int64_t _kept_capacity
    cdef Written* _written
    cdef int64_t _written_count
    cdef int64_t _written_capacity

    def __cinit__(self, memory, bytes secret not None, hash_mask=HASH_MASK):
        if len(secret) != 16:
            raise ValueError(f"a secret has 16 bytes, not {len(secret)}")
        PyObject_GetBuffer(memory, &self._memory, PyBUF_WRITABLE)
        self._is_open = True
        self._table = <Slot*> self._memory.buf
        self.slots = self._memory.len // ENTRY_BYTES
        self.entries = 0
        memcpy(self._key, PyBytes_AS_STRING(secret), 16)
        self._mask[0] = hash_mask & 0xFFFFFFFFFFFFFFFF
        self._mask[1] = hash_mask >> 64

    def __dealloc__(self):
        free(self._kept)
        free(self._written)
        if self._is_open:
            PyBuffer_Release(&self._memory)

    def close(self):
        """See cleaning_python.OffsetTable.close."""
        self.slots = self.entries = 0
        if self._is_open:
            self._is_open = False
            PyBuffer_Release(&self._memory)

    def put(self, key, int64_t offset):
        """See cleaning_python.OffsetTable.put."""
        cdef Py_buffer view
        cdef uint64_t hashed[2]
        if self.entries >= self.slots:
            raise ValueError(f"the offset table is full: {self.slots} keys")
        PyObject_GetBuffer(key, &view, PyBUF_SIMPLE)
        self._hash(<const uint8_t*> view.buf, view.len, hashed)
        PyBuffer_Release(&view)
        self._put(hashed, offset)

    def get(self, key):
        """See cleaning_python.OffsetTable.get."""
        cdef Py_buffer view
        cdef uint64_t hashed[2]
        if self.slots == 0:
            return -1
        PyObject_GetBuffer(key, &view, PyBUF_SIMPLE)
        self._hash(<const uint8_t*> view.buf, view.len, hashed)
        PyBuffer_Release(&view)
        return self._get(hashed)

    def add_batches(self, buffer, int64_t size, int64_t from_offset, int64_t max_entries):
        """See cleaning_python.OffsetTable.add_batches."""
        cdef Py_buffer view
        cdef Batch batch
        cdef Stopped stopped
        cdef Fault fault = FINE
        cdef int64_t position = 0, read = 0, latest = -1, index = 0
        cdef bint is_full = False
        PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
        size = min(size, view.len)
        max_entries = min(max_entries, self.slots)
        with nogil:
            while True:
                stopped = _open_batch(<const uint8_t*> view.buf + position, size - position, &batch)
                if stopped != FULL:
                    break
                fault = self._add(&batch.records, batch.base_offset, from_offset, max_entries, &is_full, &read, &latest,
                                  &index)
                if fault != FINE or is_full:
                    break
                if batch.last_offset >= from_offset:
                    latest = batch.last_offset
                position += batch.size
        PyBuffer_Release(&view)
        if fault != FINE:
            raise _invalid(fault, index)
        _raise_bad(stopped, position, &batch)
        return AddedBatches(position, STOPS[<int> stopped], read, latest)

    def add_records(
        self, payload, int64_t count, int64_t base_offset, int64_t last_offset_delta, int64_t base_timestamp,
        int64_t from_offset, int64_t max_entries,
    ):
        """See cleaning_python.OffsetTable.add_records."""
        cdef Py_buffer view
        cdef Payload records
        cdef Fault fault
        cdef int64_t read = 0, latest = -1, index = 0
        cdef bint is_full = False
        PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
        max_entries = min(max_entries, self.slots)
        _set_records(&records, <const uint8_t*> view.buf, view.len, count, last_offset_delta, base_timestamp)
        with nogil:
            fault = self._add(&records, base_offset, from_offset, max_entries, &is_full, &read, &latest, &index)
        PyBuffer_Release(&view)
        if fault != FINE:
            raise _invalid(fault, index)
        return AddedRecords(is_full, read, latest)

    def filter_batches(self, buffer, int64_t size, output, rules):
        """See cleaning_python.OffsetTable.filter_batches."""
        cdef Py_buffer view, out
        cdef Batch batch
        cdef Rules limits
        cdef Selection selection
        cdef Stopped stopped
        cdef int64_t position = 0, filled = 0, room = 0, read = 0, written = 0, invalid = 0
        cdef bytes last_data = rules.last_data_batches
        limits.latest_offset = rules.latest_offset
        limits.now_ms = rules.now_ms
        limits.new_horizon_ms = rules.new_horizon_ms
        limits.round_end_offset = rules.round_end_offset
        limits.last_data = <const int64_t*> PyBytes_AS_STRING(last_data)
        limits.last_data_count = len(last_data) // 16
        selection.fault = FINE
        self._written_count = 0
        PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
        try:
            PyObject_GetBuffer(output, &out, PyBUF_WRITABLE)
        except BaseException:
            PyBuffer_Release(&view)
            raise
        size = min(size, view.len)
        with nogil:
            while True:
                stopped = _open_batch(<const uint8_t*> view.buf + position, size - position, &batch)
                if stopped != FULL:
                    break
                stopped = self._select(
                    &batch.records, batch.base_offset, batch.base_timestamp, batch.max_timestamp, batch.attributes,
                    &limits, False, &selection
                )
                if stopped != FULL:
                    break
                room = self._write(&batch, &limits, &selection, <uint8_t*> out.buf + filled, out.len - filled)
                if room < 0:
                    room = -room
                    stopped = NO_ROOM
                    break
                if room:
                    if not self._note(filled, room, batch.last_offset, selection.max_timestamp):
                        stopped = NO_MEMORY
                        break
                    filled += room
                read += selection.read
                written += selection.kept
                invalid += selection.invalid
                position += batch.size
        PyBuffer_Release(&view)
        PyBuffer_Release(&out)
        if stopped == BAD_RECORDS:
            raise _invalid(selection.fault, selection.fault_index)
        _raise_bad(stopped, position, &batch)
        batches = [
            (
                self._written[index].position,
                self._written[index].size,
                self._written[index].last_offset,
                self._written[index].max_timestamp,
            )
            for index in range(self._written_count)
        ]
        return FilteredBatches(
            position, STOPS[<int> stopped], filled, batches, read, written, invalid, room if stopped == NO_ROOM else 0
        )

    def filter_records(
        self, payload, int64_t count, int64_t base_offset, int64_t last_offset_delta, int64_t base_timestamp,
        int64_t max_timestamp, int64_t attributes, bint is_marker_of_nothing, rules,
    ):
        """See cleaning_python.OffsetTable.filter_records."""
        cdef Py_buffer view
        cdef Payload records
        cdef Rules limits
        cdef Selection selection
        cdef Stopped stopped
        cdef bytes kept = None
        limits.latest_offset = rules.latest_offset
        limits.now_ms = rules.now_ms
        limits.new_horizon_ms = rules.new_horizon_ms
        PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
        _set_records(&records, <const uint8_t*> view.buf, view.len, count, last_offset_delta, base_timestamp)
        with nogil:
            stopped = self._select(
                &records, base_offset, base_timestamp, max_timestamp, attributes, &limits, is_marker_of_nothing,
                &selection
            )
        try:
            if stopped == BAD_RECORDS:
                raise _invalid(selection.fault, selection.fault_index)
            _raise_bad(stopped, 0, NULL)
            if selection.kept and selection.rewrites:
                kept = PyBytes_FromStringAndSize(NULL, selection.payload_bytes)
                self._put_records(records.data, &selection, <uint8_t*> PyBytes_AS_STRING(kept))
        finally:
            PyBuffer_Release(&view)
        return FilteredRecords(
            selection.kept,
            selection.invalid,
            kept,
            selection.sets_horizon,
            selection.base_timestamp,
            selection.max_timestamp,
        )

    # --- the table --------------------------------------------------------------------------------------------------

    cdef inline void _hash(self, const uint8_t* key, int64_t size, uint64_t* hashed) noexcept nogil:
        siphash128(self._key, key, size, hashed)
        hashed[0] &= self._mask[0]
        hashed[1] &= self._mask[1]

    cdef inline int64_t _slot(self, const uint64_t* hashed, int64_t attempt, int64_t last) noexcept nogil:
        """Return the slot of a probe: HASHED_PROBES by the hash, then linear, so that every free slot is found."""
        if attempt < HASHED_PROBES:
            return scale_to(hashed[0] + <uint64_t> attempt * (hashed[1] | 1), self.slots)
        return last + 1 if last + 1 < self.slots else 0

    cdef inline void _put(self, const uint64_t* hashed, int64_t offset) noexcept nogil:
        """There must be a free slot."""
        cdef int64_t attempt = 0, at = 0
        cdef Slot* slot
        while True:
            at = self._slot(hashed, attempt, at)
            slot = self._table + at
            if slot.next_offset == 0:
                slot.hashed[0] = hashed[0]
                slot.hashed[1] = hashed[1]
                self.entries += 1
                break
            if slot.hashed[0] == hashed[0] and slot.hashed[1] == hashed[1]:
                break
            attempt += 1
        slot.next_offset = offset + 1

    cdef inline int64_t _get(self, const uint64_t* hashed) noexcept nogil:
        cdef int64_t attempt = 0, at = 0
        cdef Slot* slot
        while attempt < self.slots + HASHED_PROBES:
            at = self._slot(hashed, attempt, at)
            slot = self._table + at
            if slot.next_offset == 0:
                return -1
            if slot.hashed[0] == hashed[0] and slot.hashed[1] == hashed[1]:
                return slot.next_offset - 1
            attempt += 1
        return -1

    cdef Fault _add(
        self, const Payload* records, int64_t base_offset, int64_t from_offset, int64_t max_entries, bint* is_full,
        int64_t* read, int64_t* latest, int64_t* index,
    ) noexcept nogil:
        """Put the keys of a batch; sets `is_full` at a key above the limit of entries."""
        cdef Walk walk
        cdef Item group[GROUP]
        cdef int64_t filled, item
        cdef Fault fault = start_walk(records, &walk)
        index[0] = 0
        if fault != FINE:
            return fault
        while walk.index < records.count:
            filled = 0
            while filled < GROUP and walk.index < records.count:
                fault = step(records, &walk)
                if fault != FINE:
                    index[0] = walk.index
                    return fault
                group[filled].offset_delta = walk.offset_delta
                group[filled].is_known = walk.key_size >= 0 and base_offset + walk.offset_delta >= from_offset
                if group[filled].is_known:
                    self._hash(records.data + walk.key_at, walk.key_size, group[filled].hashed)
                    prefetch(self._table + self._slot(group[filled].hashed, 0, 0))
                filled += 1
                walk.index += 1
            for item in range(filled):
                if group[item].is_known:
                    if self.entries >= max_entries:
                        is_full[0] = True
                        return FINE
                    latest[0] = base_offset + group[item].offset_delta
                    self._put(group[item].hashed, latest[0])
                read[0] += 1
        return FINE if walk.at == records.total else BYTES_AFTER_LAST

    # --- the filter -------------------------------------------------------------------------------------------------

    cdef Stopped _select(
        self, const Payload* records, int64_t base_offset, int64_t base_timestamp, int64_t max_timestamp,
        int32_t attributes, const Rules* rules, bint is_marker_of_nothing, Selection* selection,
    ) noexcept nogil:
        """Choose the records to keep and the outcome for the batch. FULL means success."""
        cdef Walk walk
        cdef Item group[GROUP]
        cdef Item* item
        cdef int64_t filled, at, offset
        cdef bint has_append_time = attributes & TIMESTAMP_TYPE_MASK != 0
        cdef bint drops_tombstones
        selection.has_horizon = attributes & DELETE_HORIZON_MASK != 0
        drops_tombstones = selection.has_horizon and rules.now_ms >= base_timestamp
        selection.read = selection.kept = selection.invalid = 0
        selection.max_timestamp = -1
        selection.has_tombstones = False
        selection.fault_index = 0
        selection.fault = start_walk(records, &walk)
        if selection.fault != FINE:
            return BAD_RECORDS
        while walk.index < records.count:
            filled = 0
            while filled < GROUP and walk.index < records.count:
                selection.fault = step(records, &walk)
                if selection.fault != FINE:
                    selection.fault_index = walk.index
                    return BAD_RECORDS
                item = &group[filled]
                item.offset_delta = walk.offset_delta
                item.timestamp = max_timestamp if has_append_time else walk.timestamp
                item.rest_at = walk.key_at
                item.end = walk.at
                item.key_size = walk.key_size
                item.has_value = walk.value_size >= 0
                item.is_known = base_offset + walk.offset_delta <= rules.latest_offset
                if item.is_known and item.key_size >= 0:
                    self._hash(records.data + walk.key_at, walk.key_size, item.hashed)
                    prefetch(self._table + self._slot(item.hashed, 0, 0))
                filled += 1
                walk.index += 1
            for at in range(filled):
                item = &group[at]
                if item.is_known:
                    if item.key_size < 0:
                        selection.invalid += 1
                        continue
                    if not item.has_value and drops_tombstones:
                        continue
                    offset = self._get(item.hashed)
                    if base_offset + item.offset_delta < offset:
                        continue
                if selection.kept == self._kept_capacity and not self._grow_kept():
                    return NO_MEMORY
                self._kept[selection.kept] = item[0]
                selection.kept += 1
                if item.timestamp > selection.max_timestamp:
                    selection.max_timestamp = item.timestamp
                if not item.has_value:
                    selection.has_tombstones = True
        if walk.at != records.total:
            selection.fault = BYTES_AFTER_LAST
            return BAD_RECORDS
        selection.read = records.count
        selection.sets_horizon = (selection.has_tombstones or is_marker_of_nothing) and not selection.has_horizon
        selection.rewrites = selection.kept < records.count or selection.sets_horizon
        if not selection.rewrites or not selection.kept or has_append_time:
            selection.max_timestamp = max_timestamp
        if selection.kept and selection.rewrites:
            if selection.sets_horizon:
                selection.base_timestamp = rules.new_horizon_ms
                selection.has_horizon = selection.base_timestamp >= 0
            else:
                selection.base_timestamp = base_timestamp
                selection.has_horizon = selection.has_horizon and base_timestamp >= 0
            if not selection.has_horizon:
                selection.base_timestamp = self._kept[0].timestamp
            selection.payload_bytes = 0
            for at in range(selection.kept):
                offset = _body_size(&self._kept[at], selection.base_timestamp)
                selection.payload_bytes += varint_size(offset) + offset
        else:
            selection.base_timestamp = base_timestamp
        return FULL

    cdef int64_t _write(
        self, const Batch* batch, const Rules* rules, const Selection* selection, uint8_t* out, int64_t room
    ) noexcept nogil:
        """Write the cleaned batch to `out`. Return its size, 0 when it is dropped, or minus the size that does not fit."""
        cdef int64_t size
        cdef int32_t attributes
        if selection.kept and not selection.rewrites:
            if batch.size > room:
                return -batch.size
            memcpy(out, batch.data, batch.size)
            return batch.size
        if selection.kept:
            size = HEADER_SIZE + selection.payload_bytes
            attributes = batch.attributes & KEPT_ATTRIBUTES
            if selection.has_horizon:
                attributes |= DELETE_HORIZON_MASK
        elif batch.last_offset + 1 == rules.round_end_offset or _is_last_data(batch, rules):
            size = HEADER_SIZE
            attributes = batch.attributes & KEPT_ATTRIBUTES
        else:
            return 0
        if size > room:
            return -size
        memcpy(out, batch.data, HEADER_SIZE)  # keeps offsets, epochs, producer, sequence
        if selection.kept:
            self._put_records(batch.records.data, selection, out + HEADER_SIZE)
        put_int32(out + 8, <uint32_t> (size - LOG_OVERHEAD))
        out[ATTRIBUTES_POSITION] = 0
        out[ATTRIBUTES_POSITION + 1] = <uint8_t> attributes
        put_int64(out + 27, <uint64_t> (selection.base_timestamp if selection.kept else -1))
        put_int64(out + 35, <uint64_t> selection.max_timestamp)
        put_int32(out + 57, <uint32_t> selection.kept)
        put_int32(out + CRC_POSITION, crc32c_of(out + ATTRIBUTES_POSITION, size - ATTRIBUTES_POSITION))
        return size

    cdef void _put_records(self, const uint8_t* data, const Selection* selection, uint8_t* out) noexcept nogil:
        """Write the kept records with timestamp deltas from the new base timestamp, otherwise unchanged."""
        cdef const Item* item
        cdef int64_t at
        for at in range(selection.kept):
            item = &self._kept[at]
            out = put_varint(out, _body_size(item, selection.base_timestamp))
            out[0] = 0
            out = put_varint(out + 1, <int64_t> (<uint64_t> item.timestamp - <uint64_t> selection.base_timestamp))
            out = put_varint(out, item.offset_delta)
            out = put_varint(out, item.key_size)
            memcpy(out, data + item.rest_at, item.end - item.rest_at)
            out += item.end - item.rest_at

    cdef bint _grow_kept(self) noexcept nogil:
        cdef int64_t capacity = self._kept_capacity * 2 if self._kept_capacity else 256
        cdef void* grown = realloc(self._kept, capacity * sizeof(Item))
        if grown == NULL:
            return False
        self._kept = <Item*> grown
        self._kept_capacity = capacity
        return True

    cdef bint _note(self, int64_t position, int64_t size, int64_t last_offset, int64_t max_timestamp) noexcept nogil:
        cdef int64_t capacity
        cdef void* grown
        cdef Written* written
        if self._written_count == self._written_capacity:
            capacity = self._written_capacity * 2 if self._written_capacity else 64
            grown = realloc(self._written, capacity * sizeof(Written))
            if grown == NULL:
                return False
            self._written = <Written*> grown
            self._written_capacity = capacity
        written = &self._written[self._written_count]
        written.position = position
        written.size = size
        written.last_offset = last_offset
        written.max_timestamp = max_timestamp
        self._written_count += 1
        return True


# --- batches --------------------------------------------------------------------------------------------------------


cdef Stopped _open_batch(const uint8_t* data, int64_t remaining, Batch* batch) noexcept nogil:
    """Check the batch at `data`, its CRC included. FULL means that it is complete and plain (not ASIDE)."""
    cdef int64_t length
    cdef int32_t magic, last_offset_delta
    if remaining <= MAGIC_POSITION:
        return CUT
    magic = <signed char> data[MAGIC_POSITION]
    if 0 <= magic < MAGIC_V2:
        return ASIDE
    if magic == MAGIC_V2 and remaining < HEADER_SIZE:
        return CUT
    batch.base_offset = int64_at(data)
    length = int32_at(data + 8)
    batch.size = length + LOG_OVERHEAD
    last_offset_delta = int32_at(data + 23) if magic == MAGIC_V2 else 0
    if magic != MAGIC_V2 or batch.size < HEADER_SIZE or batch.base_offset < 0 or last_offset_delta < 0:
        return BAD_HEADER
    if batch.base_offset > INT64_MAX - last_offset_delta:
        return BAD_HEADER
    if batch.size > remaining:
        return CUT
    batch.attributes = <int32_t> (data[ATTRIBUTES_POSITION] << 8 | data[ATTRIBUTES_POSITION + 1])
    if batch.attributes & ASIDE_ATTRIBUTES:
        return ASIDE
    if crc32c_of(data + ATTRIBUTES_POSITION, batch.size - ATTRIBUTES_POSITION) != uint32_at(data + CRC_POSITION):
        return BAD_CRC
    batch.data = data
    batch.last_offset = batch.base_offset + last_offset_delta
    batch.base_timestamp = int64_at(data + 27)
    batch.max_timestamp = int64_at(data + 35)
    batch.producer_id = int64_at(data + 43)
    batch.count = int32_at(data + 57)
    _set_records(
        &batch.records, data + HEADER_SIZE, batch.size - HEADER_SIZE, batch.count, last_offset_delta,
        batch.base_timestamp
    )
    return FULL


cdef inline void _set_records(
    Payload* records, const uint8_t* data, int64_t total, int64_t count, int64_t last_offset_delta,
    int64_t base_timestamp,
) noexcept nogil:
    records.data = data
    records.total = total
    records.count = count
    records.last_offset_delta = last_offset_delta
    records.base_timestamp = base_timestamp
    records.contiguous = False


cdef inline bint _is_last_data(const Batch* batch, const Rules* rules) noexcept nogil:
    cdef int64_t low = 0, high = rules.last_data_count, middle
    if batch.producer_id < 0:
        return False
    while low < high:
        middle = (low + high) // 2
        if rules.last_data[2 * middle] < batch.last_offset:
            low = middle + 1
        else:
            high = middle
    return (
        low < rules.last_data_count
        and rules.last_data[2 * low] == batch.last_offset
        and rules.last_data[2 * low + 1] == batch.producer_id
    )


cdef inline int64_t _body_size(const Item* item, int64_t base_timestamp) noexcept nogil:
    """Return the size of a kept record without its size field: attributes, two deltas, key size, unchanged rest."""
    cdef int64_t delta = <int64_t> (<uint64_t> item.timestamp - <uint64_t> base_timestamp)
    return (
        1 + varint_size(delta) + varint_size(item.offset_delta) + varint_size(item.key_size) + item.end - item.rest_at
    )


# --- errors ---------------------------------------------------------------------------------------------------------


cdef _invalid(Fault fault, int64_t index):
    return InvalidRecordError(-1 if fault == BAD_COUNT or fault == BYTES_AFTER_LAST else index, REASONS[<int> fault])


cdef _raise_bad(Stopped stopped, int64_t position, const Batch* batch):
    if stopped == BAD_HEADER:
        raise CorruptRecordError(
            f"no batch at position {position} of the buffer: size {batch.size}, base offset {batch.base_offset}"
        )
    if stopped == BAD_CRC:
        raise CorruptRecordError(f"the batch at position {position} of the buffer has a wrong crc")
    if stopped == NO_MEMORY:
        raise MemoryError
