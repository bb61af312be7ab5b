# cython: language_level=3
"""Producer state of one batch: see _producers.pyx."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t

# A batch that a known producer may append. Objects are borrowed: they stay because the lock is held.
cdef struct ProducerStep:
    PyObject* state
    PyObject* entry
    int64_t producer_id
    int64_t epoch
    int64_t base_sequence
    bint new_epoch
    bint opens_transaction

cdef bint check_batch(
    PyObject* core,
    int64_t producer_id,
    int64_t epoch,
    int64_t base_sequence,
    int64_t offset_delta,
    bint is_transactional,
    ProducerStep* step,
) except -1
cdef bint check_epoch(
    PyObject* core,
    int64_t producer_id,
    int64_t epoch,
    int64_t base_sequence,
    bint is_transactional,
    ProducerStep* step,
) except -1
cdef bint check_marker(
    PyObject* core,
    int64_t producer_id,
    int64_t epoch,
    int64_t coordinator_epoch,
    bint has_own_epoch,
    ProducerStep* step,
) except -1
cdef int note_marker(
    PyObject* core, const ProducerStep* step, int64_t coordinator_epoch, int64_t timestamp
) except -1
cdef int note_batch(
    PyObject* core,
    const ProducerStep* step,
    int64_t last_offset,
    int64_t offset_delta,
    int64_t timestamp,
    int64_t appended_ms,
) except -1
