# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Batches into columns, compiled. columns_python.py is its Python twin and documents it.

Before a batch is walked, room is reserved for all that it can hold: as many rows as its header counts (start_walk has
compared that with its bytes), and as many bytes of keys, values and headers as its payload has. So the loop over the
records stores without checks; reads are bounds-checked as in _walk.pxd. Rows of a batch that turns out to be bad are
cut off again. The GIL is kept: a Spark worker has one thread.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_GET_SIZE, PyByteArray_Resize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

from barnabas.protocol.records.kernels._big_endian cimport int32_at, int64_at, uint32_at
from barnabas.protocol.records.kernels._varint cimport VARINT_FINE, get_varint
from barnabas.protocol.records.kernels._walk cimport (
    BAD_COUNT,
    BAD_HEADERS,
    BYTES_AFTER_LAST,
    FINE,
    Fault,
    Payload,
    Walk,
    payload_of,
    start_walk,
    step,
)
from barnabas.protocol.records.kernels.columns_types import Columns, HeaderColumn, NullableBytes, Stop
from barnabas.protocol.records.errors import REASONS as _REASONS, InvalidRecordError

cdef extern from "_crc32c.h":
    void crc32c_prepare()
    uint32_t crc32c_of(const uint8_t* data, size_t size) noexcept nogil

# As in layout.py and columns_types.py; tests/protocol assert it.
cdef enum:
    HEADER_SIZE = 61
    LOG_OVERHEAD = 12
    MAGIC_V2 = 2
    MAGIC_POSITION = 16
    ATTRIBUTES_POSITION = 21
    CODEC_MASK = 0x07
    TIMESTAMP_TYPE_MASK = 0x08
    TRANSACTIONAL_MASK = 0x10
    CONTROL_MASK = 0x20
    WANTED_KEY = 1
    WANTED_VALUE = 2
    WANTED_OFFSET = 4
    WANTED_TIMESTAMP = 8
    WANTED_TIMESTAMP_TYPE = 16
    WANTED_HEADERS = 32
    LEAST_BYTES = 4096

cdef int64_t INT32_MAX = 0x7FFFFFFF
cdef int64_t INT64_MAX = 0x7FFFFFFFFFFFFFFF

cdef tuple REASONS = _REASONS

cdef object CUT = Stop.CUT
cdef object FULL = Stop.FULL
cdef object END = Stop.END
cdef object COMPRESSED = Stop.COMPRESSED
cdef object TRANSACTIONAL = Stop.TRANSACTIONAL
cdef object OLD_FORMAT = Stop.OLD_FORMAT
cdef object CORRUPT = Stop.CORRUPT

crc32c_prepare()


cdef class Room:
    """A bytearray that grows by doubling, and its used size."""

    cdef bytearray memory
    cdef int64_t used
    cdef int64_t capacity
    cdef int64_t guess

    def __cinit__(self):
        self.memory = bytearray()

    cdef inline uint8_t* reserve(self, int64_t size) except NULL:
        """Return where `size` more bytes can be written."""
        if size > self.capacity - self.used:
            self.grow(size)
        return <uint8_t*> PyByteArray_AS_STRING(self.memory) + self.used

    cdef int grow(self, int64_t size) except -1:
        cdef int64_t wanted = max(2 * self.capacity, self.used + size, self.guess, LEAST_BYTES)
        PyByteArray_Resize(self.memory, wanted)
        self.capacity = wanted
        return 0

    cdef object take(self):
        """Return the used bytes and start empty, with the same capacity reserved at the next use."""
        cdef bytearray memory = self.memory
        cdef int64_t used = self.used
        self.memory = bytearray()
        self.used = self.capacity = 0
        self.guess = used + used // 8
        return memoryview(memory)[:used]


cdef class BytesColumn:
    """A column of nullable byte strings: offsets, data, validity."""

    cdef Room offsets, data, validity
    cdef int64_t rows, null_count
    cdef int64_t kept_rows, kept_nulls, kept_bytes

    def __cinit__(self):
        self.offsets, self.data, self.validity = Room(), Room(), Room()
        self.begin()

    cdef int begin(self) except -1:
        (<int32_t*> self.offsets.reserve(4))[0] = 0
        self.offsets.used = 4
        self.rows = self.null_count = 0
        return 0

    cdef int reserve(self, int64_t rows, int64_t size) except -1:
        """Reserve room for `rows` rows of `size` bytes in all."""
        self.offsets.reserve(4 * rows)
        self.data.reserve(size)
        self.validity.reserve(rows // 8 + 2)
        self.kept_rows, self.kept_nulls, self.kept_bytes = self.rows, self.null_count, self.data.used
        return 0

    cdef inline void add(self, const uint8_t* data, int64_t size) noexcept:
        """Append a row, for which room is reserved; a negative size is null."""
        cdef uint8_t* bits = <uint8_t*> PyByteArray_AS_STRING(self.validity.memory) + (self.rows >> 3)
        cdef int bit = self.rows & 7
        if bit == 0:
            bits[0] = 0
        if size >= 0:
            bits[0] |= <uint8_t> (1 << bit)
            if size:  # `end_row` passes NULL, which memcpy must not be given even for 0 bytes
                memcpy(PyByteArray_AS_STRING(self.data.memory) + self.data.used, data, size)
                self.data.used += size
        else:
            self.null_count += 1
        self.rows += 1
        (<int32_t*> (PyByteArray_AS_STRING(self.offsets.memory) + self.offsets.used))[0] = <int32_t> self.data.used
        self.offsets.used += 4

    cdef void cut_back(self) noexcept:
        """Go back to the state at the last reserve."""
        cdef uint8_t* bits
        self.rows, self.null_count, self.data.used = self.kept_rows, self.kept_nulls, self.kept_bytes
        self.offsets.used = 4 * (self.rows + 1)
        if self.rows & 7:
            bits = <uint8_t*> PyByteArray_AS_STRING(self.validity.memory) + (self.rows >> 3)
            bits[0] &= <uint8_t> ((1 << (self.rows & 7)) - 1)

    cdef object take(self):
        self.validity.used = (self.rows + 7) // 8
        cdef object null_count = self.null_count
        taken = NullableBytes(self.offsets.take(), self.data.take(), self.validity.take(), null_count)
        self.begin()
        return taken


cdef class HeadersColumn:
    """Lists of headers: their count per row, and all keys and values one after the other."""

    cdef BytesColumn counts  # only its offsets and validity are used
    cdef BytesColumn keys, values

    def __cinit__(self):
        self.counts, self.keys, self.values = BytesColumn(), BytesColumn(), BytesColumn()

    cdef int reserve(self, int64_t rows, int64_t size) except -1:
        """Reserve room: a header takes at least two bytes of payload."""
        self.counts.reserve(rows, 0)
        self.keys.reserve(size // 2, size)
        self.values.reserve(size // 2, size)
        return 0

    cdef int add(self, const uint8_t* data, const Walk* walk) except -1:
        """Append the headers of a record that the walk has checked."""
        cdef int64_t at = walk.headers_at
        cdef int64_t left = walk.header_count
        cdef int64_t size
        while left:
            if get_varint(data, &at, walk.at, &size) != VARINT_FINE or not 0 <= size <= walk.at - at:
                raise _error(BAD_HEADERS, walk.index)
            self.keys.add(data + at, size)
            at += size
            if get_varint(data, &at, walk.at, &size) != VARINT_FINE or not -1 <= size <= walk.at - at:
                raise _error(BAD_HEADERS, walk.index)
            self.values.add(data + at, size)
            if size > 0:
                at += size
            left -= 1
        self.end_row()
        return 0

    cdef void end_row(self) noexcept:
        """End a row: the counts column stores where the row's headers end instead of where its bytes end."""
        cdef int64_t before = (<int32_t*> (PyByteArray_AS_STRING(self.counts.offsets.memory)))[self.counts.rows]
        self.counts.add(NULL, 0 if self.keys.rows > before else -1)
        (<int32_t*> (PyByteArray_AS_STRING(self.counts.offsets.memory)))[self.counts.rows] = <int32_t> self.keys.rows

    cdef void cut_back(self) noexcept:
        self.counts.cut_back()
        self.keys.cut_back()
        self.values.cut_back()

    cdef object take(self):
        cdef object header_count = self.keys.rows
        counts = self.counts.take()
        return HeaderColumn(
            counts.offsets, counts.validity, counts.null_count, header_count, self.keys.take(), self.values.take()
        )


cdef class ColumnBuilder:
    """See columns_python.ColumnBuilder."""

    cdef readonly int64_t rows, size_bytes, position
    cdef readonly str fault
    cdef public int64_t start_offset, next_offset
    cdef int64_t _end_offset
    cdef int _wanted
    cdef BytesColumn _keys, _values
    cdef HeadersColumn _headers
    cdef Room _offsets, _timestamps, _types

    def __init__(self, int wanted, int64_t start_offset, int64_t end_offset):
        self._wanted = wanted
        self.start_offset = self.next_offset = start_offset
        self._end_offset = end_offset
        self.fault = ""
        self._keys, self._values, self._headers = BytesColumn(), BytesColumn(), HeadersColumn()
        self._offsets, self._timestamps, self._types = Room(), Room(), Room()

    def fill(
        self,
        buffer,
        int64_t position,
        *,
        int64_t max_rows,
        int64_t max_bytes,
        bint check_crcs=True,
        min_timestamp=None,
        bint stop_at_transactions=False,
    ):
        """See columns_python.ColumnBuilder.fill."""
        cdef Py_buffer view
        cdef bint has_least = min_timestamp is not None
        cdef int64_t least = min_timestamp if has_least else 0
        self.position = position
        PyObject_GetBuffer(buffer, &view, PyBUF_SIMPLE)
        try:
            return self._fill(
                <const uint8_t*> view.buf, view.len, max_rows, max_bytes, check_crcs, has_least, least,
                stop_at_transactions,
            )
        finally:
            PyBuffer_Release(&view)

    cdef object _fill(
        self, const uint8_t* data, int64_t total, int64_t max_rows, int64_t max_bytes, bint check_crcs, bint has_least,
        int64_t least, bint stop_at_transactions,
    ):
        cdef const uint8_t* batch
        cdef int64_t remaining, magic, base_offset, size, delta, max_timestamp, last_offset
        cdef int attributes
        cdef uint32_t crc, computed
        cdef Payload records
        cdef Walk walk
        cdef Fault fault
        while True:
            remaining = total - self.position
            if remaining <= MAGIC_POSITION:
                return CUT
            batch = data + self.position
            magic = batch[MAGIC_POSITION]
            if magic != MAGIC_V2:
                if magic < MAGIC_V2:
                    return OLD_FORMAT
                return self._corrupt(f"magic {magic} is of no format")
            if remaining < HEADER_SIZE:
                return CUT
            base_offset = int64_at(batch)
            size = <int64_t> int32_at(batch + 8) + LOG_OVERHEAD
            if size < HEADER_SIZE:
                return self._corrupt(f"a batch of {size} bytes is smaller than its header")
            delta = int32_at(batch + 23)
            if base_offset < 0 or delta < 0 or delta > INT64_MAX - 1 - base_offset:
                return self._corrupt(f"base offset {base_offset} and last offset delta {delta} are no range")
            if base_offset >= self._end_offset:
                return END
            if size > remaining:
                return CUT
            last_offset = base_offset + delta
            max_timestamp = int64_at(batch + 35)
            if last_offset < self.start_offset or (has_least and max_timestamp < least):
                self._skip(size, last_offset)
                continue
            if self.rows and (
                self.rows >= max_rows or self.size_bytes >= max_bytes or self.size_bytes + size > INT32_MAX
            ):
                return FULL
            if check_crcs:
                crc = uint32_at(batch + 17)
                computed = crc32c_of(batch + ATTRIBUTES_POSITION, size - ATTRIBUTES_POSITION)
                if computed != crc:
                    return self._corrupt(f"stored crc {crc:#010x}, computed {computed:#010x}")
            attributes = batch[22]
            if stop_at_transactions and attributes & TRANSACTIONAL_MASK:
                return TRANSACTIONAL
            if attributes & CONTROL_MASK:
                self._skip(size, last_offset)
                continue
            if attributes & CODEC_MASK:
                return COMPRESSED
            records.data = batch + HEADER_SIZE
            records.total = size - HEADER_SIZE
            records.count = int32_at(batch + 57)
            records.last_offset_delta = delta
            records.base_timestamp = int64_at(batch + 27)
            records.contiguous = False
            fault = self._append(&records, &walk, base_offset, (attributes & TIMESTAMP_TYPE_MASK) != 0, max_timestamp)
            if fault != FINE:
                return self._corrupt(str(_error(fault, walk.index)))
            self._skip(size, last_offset)

    def skip(self, int64_t size, int64_t last_offset):
        """See columns_python.ColumnBuilder.skip."""
        self._skip(size, last_offset)

    cdef inline void _skip(self, int64_t size, int64_t last_offset) noexcept:
        self.position += size
        if last_offset + 1 > self.next_offset:
            self.next_offset = last_offset + 1

    def append_payload(
        self,
        payload,
        int64_t count,
        int64_t base_offset,
        int64_t last_offset_delta,
        int64_t base_timestamp,
        append_timestamp,
    ):
        """See columns_python.ColumnBuilder.append_payload."""
        cdef Py_buffer view
        cdef Payload records
        cdef Walk walk
        cdef Fault fault
        cdef bint is_append_time = append_timestamp is not None
        cdef int64_t time = append_timestamp if is_append_time else 0
        PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
        try:
            records = payload_of(&view, count, last_offset_delta, base_timestamp, False)
            fault = self._append(&records, &walk, base_offset, is_append_time, time)
        finally:
            PyBuffer_Release(&view)
        if fault != FINE:
            raise _error(fault, walk.index)

    cdef Fault _append(
        self, const Payload* records, Walk* walk, int64_t base_offset, bint is_append_time, int64_t append_time
    ) except *:
        cdef Fault fault = start_walk(records, walk)
        cdef int64_t begun, before, size, offset
        cdef int wanted = self._wanted
        cdef int64_t* offsets
        cdef int64_t* timestamps
        cdef int32_t* types
        if fault != FINE:
            return fault
        offsets = <int64_t*> self._offsets.reserve(8 * records.count + 8)
        timestamps = <int64_t*> self._timestamps.reserve(8 * records.count + 8)
        types = <int32_t*> self._types.reserve(4 * records.count + 4)
        if wanted & WANTED_KEY:
            self._keys.reserve(records.count, records.total)
        if wanted & WANTED_VALUE:
            self._values.reserve(records.count, records.total)
        if wanted & WANTED_HEADERS:
            self._headers.reserve(records.count, records.total)
        begun = 0  # rows of this batch
        size = 0
        while walk.index < records.count:
            before = walk.at
            fault = step(records, walk)
            if fault != FINE:
                break
            walk.index += 1
            offset = base_offset + walk.offset_delta
            if offset < self.start_offset or offset >= self._end_offset:
                continue
            offsets[begun] = offset
            timestamps[begun] = append_time if is_append_time else walk.timestamp
            types[begun] = is_append_time
            if wanted & WANTED_KEY:
                self._keys.add(records.data + walk.key_at, walk.key_size)
                if walk.key_size > 0:
                    size += walk.key_size
            if wanted & WANTED_VALUE:
                self._values.add(records.data + walk.value_at, walk.value_size)
                if walk.value_size > 0:
                    size += walk.value_size
            if wanted & WANTED_HEADERS:
                self._headers.add(records.data, walk)
                if walk.header_count:
                    size += walk.at - walk.headers_at
            begun += 1
        if fault == FINE and walk.at != records.total:
            fault = BYTES_AFTER_LAST
        if fault != FINE:
            if wanted & WANTED_KEY:
                self._keys.cut_back()
            if wanted & WANTED_VALUE:
                self._values.cut_back()
            if wanted & WANTED_HEADERS:
                self._headers.cut_back()
            return fault
        if wanted & WANTED_OFFSET:
            self._offsets.used += 8 * begun
        if wanted & WANTED_TIMESTAMP:
            self._timestamps.used += 8 * begun
        if wanted & WANTED_TIMESTAMP_TYPE:
            self._types.used += 4 * begun
        self.rows += begun
        self.size_bytes += size
        return FINE

    def append_record(self, int64_t offset, int64_t timestamp, int timestamp_type, key, value):
        """See columns_python.ColumnBuilder.append_record."""
        if offset < self.start_offset or offset >= self._end_offset:
            return
        if self._wanted & WANTED_OFFSET:
            (<int64_t*> self._offsets.reserve(8))[0] = offset
            self._offsets.used += 8
        if self._wanted & WANTED_TIMESTAMP:
            (<int64_t*> self._timestamps.reserve(8))[0] = timestamp
            self._timestamps.used += 8
        if self._wanted & WANTED_TIMESTAMP_TYPE:
            (<int32_t*> self._types.reserve(4))[0] = timestamp_type
            self._types.used += 4
        if self._wanted & WANTED_KEY:
            self._add(self._keys, key)
        if self._wanted & WANTED_VALUE:
            self._add(self._values, value)
        if self._wanted & WANTED_HEADERS:
            self._headers.reserve(1, 0)
            self._headers.end_row()
        self.rows += 1

    cdef int _add(self, BytesColumn column, bytes part) except -1:
        if part is None:
            column.reserve(1, 0)
            column.add(NULL, -1)
        else:
            column.reserve(1, PyBytes_GET_SIZE(part))
            column.add(<const uint8_t*> PyBytes_AS_STRING(part), PyBytes_GET_SIZE(part))
            self.size_bytes += PyBytes_GET_SIZE(part)
        return 0

    def take(self):
        """See columns_python.ColumnBuilder.take."""
        cdef object rows = self.rows
        self.rows = self.size_bytes = 0
        return Columns(
            rows,
            self._keys.take() if self._wanted & WANTED_KEY else None,
            self._values.take() if self._wanted & WANTED_VALUE else None,
            self._offsets.take() if self._wanted & WANTED_OFFSET else None,
            self._timestamps.take() if self._wanted & WANTED_TIMESTAMP else None,
            self._types.take() if self._wanted & WANTED_TIMESTAMP_TYPE else None,
            self._headers.take() if self._wanted & WANTED_HEADERS else None,
        )

    cdef object _corrupt(self, str fault):
        self.fault = fault
        return CORRUPT


cdef _error(Fault fault, int64_t index):
    return InvalidRecordError(-1 if fault == BAD_COUNT or fault == BYTES_AFTER_LAST else index, REASONS[<int> fault])
