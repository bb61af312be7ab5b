# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Producer state of one batch: the common case of the checks of ProducerState and of note_batch and note_marker.

A check changes nothing and returns False for an unusual batch: one of a producer that is not in the state, a repeated
one, and every one that is refused. The caller holds the log's lock throughout.
"""

from barnabas.broker.storage.kernels._numbers cimport new_number, new_tuple, set_number
from barnabas.broker.storage.kernels._slots cimport (
    Py_INCREF,
    get,
    get_int64,
    is_exactly,
    offset_of,
    put,
    set_int64,
)

from barnabas.broker.storage.log.core import LogCore
from barnabas.broker.storage.producers.entry import BatchMetadata, ProducerEntry
from barnabas.broker.storage.producers.open_transactions import OpenTransactions
from barnabas.broker.storage.producers.state import ProducerState

cdef extern from "Python.h":
    PyObject* PyTuple_GET_ITEM(PyObject* source, Py_ssize_t index)
    PyObject* PyDict_GetItemWithError(PyObject* source, PyObject* key) except? NULL
    int PyDict_SetItem(PyObject* target, PyObject* key, PyObject* value) except -1
    int PyDict_DelItem(PyObject* target, PyObject* key) except -1
    bint PyDict_Next(PyObject* source, Py_ssize_t* position, PyObject** key, PyObject** value)
    bint PyDict_CheckExact(PyObject* value)
    bint PyList_CheckExact(PyObject* value)
    Py_ssize_t PyList_GET_SIZE(PyObject* source)
    PyObject* PyList_GET_ITEM(PyObject* source, Py_ssize_t index)
    void PyList_SET_ITEM(PyObject* target, Py_ssize_t index, PyObject* item)
    PyObject* PyList_New(Py_ssize_t size) except NULL
    int PyList_Append(PyObject* target, PyObject* item) except -1
    long long PyLong_AsLongLong(PyObject* number)
    PyObject* Py_None
    void Py_DECREF(PyObject* object)

cdef enum:
    NO_OFFSET = -1
    NO_SEQUENCE = -1
    REMEMBERED_BATCHES = 5  # as in entry.py; a test compares them

cdef int64_t MAX_SEQUENCE = 0x7FFFFFFF

cdef Py_ssize_t CORE_PRODUCERS = offset_of(LogCore, "producers")
cdef Py_ssize_t CORE_FIRST_UNSTABLE = offset_of(LogCore, "first_unstable_offset")
cdef Py_ssize_t STATE_PRODUCERS = offset_of(ProducerState, "producers")
cdef Py_ssize_t STATE_OPEN = offset_of(ProducerState, "open_transactions")
cdef Py_ssize_t OPEN_PRODUCERS = offset_of(OpenTransactions, "_producers")
cdef Py_ssize_t OPEN_FIRST_OFFSET = offset_of(OpenTransactions, "first_offset")
cdef Py_ssize_t ENTRY_EPOCH = offset_of(ProducerEntry, "epoch")
cdef Py_ssize_t ENTRY_COORDINATOR_EPOCH = offset_of(ProducerEntry, "coordinator_epoch")
cdef Py_ssize_t ENTRY_BATCHES = offset_of(ProducerEntry, "batches")
cdef Py_ssize_t ENTRY_FIRST_OFFSET = offset_of(ProducerEntry, "txn_first_offset")
cdef Py_ssize_t ENTRY_LAST_TIMESTAMP = offset_of(ProducerEntry, "last_timestamp")
cdef Py_ssize_t ENTRY_LAST_APPEND = offset_of(ProducerEntry, "last_append_ms")


cdef bint check_batch(
    PyObject* core,
    int64_t producer_id,
    int64_t epoch,
    int64_t base_sequence,
    int64_t offset_delta,
    bint is_transactional,
    ProducerStep* step,
) except -1:
    """Check a client's batch: the next of its producer in this epoch, or the first of a higher epoch."""
    cdef PyObject* batches
    cdef int64_t last_sequence, known, expected = 0
    cdef Py_ssize_t count, index
    if not check_epoch(core, producer_id, epoch, base_sequence, is_transactional, step):
        return False
    if not is_transactional and _is_in_transaction(step.entry):
        return False
    if step.new_epoch:
        return base_sequence == 0
    batches = get(step.entry, ENTRY_BATCHES)
    count = PyList_GET_SIZE(batches)
    last_sequence = (base_sequence + offset_delta) & MAX_SEQUENCE
    for index in range(count):
        known = PyLong_AsLongLong(PyTuple_GET_ITEM(PyList_GET_ITEM(batches, index), 0))
        if known == last_sequence:
            return False  # perhaps a repeated batch
        expected = (known + 1) & MAX_SEQUENCE
    return base_sequence == expected


cdef bint check_epoch(
    PyObject* core,
    int64_t producer_id,
    int64_t epoch,
    int64_t base_sequence,
    bint is_transactional,
    ProducerStep* step,
) except -1:
    """Check the epoch only, as for a coordinator's batch, which has no sequences; fill `step`."""
    cdef PyObject* producers
    cdef PyObject* batches
    cdef int64_t known_epoch
    cdef Py_ssize_t index
    step.state = get(core, CORE_PRODUCERS)
    if not is_exactly(step.state, <PyObject*> ProducerState):
        return False
    producers = get(step.state, STATE_PRODUCERS)
    if producers == NULL or not PyDict_CheckExact(producers):
        return False
    step.entry = _find(producers, producer_id)
    if not is_exactly(step.entry, <PyObject*> ProducerEntry):
        return False
    if not get_int64(step.entry, ENTRY_EPOCH, &known_epoch) or epoch < known_epoch:
        return False
    batches = get(step.entry, ENTRY_BATCHES)
    if batches == NULL or not PyList_CheckExact(batches) or PyList_GET_SIZE(batches) > REMEMBERED_BATCHES:
        return False
    for index in range(PyList_GET_SIZE(batches)):
        if not is_exactly(PyList_GET_ITEM(batches, index), <PyObject*> BatchMetadata):
            return False
    step.producer_id = producer_id
    step.epoch = epoch
    step.base_sequence = base_sequence
    step.new_epoch = epoch != known_epoch
    step.opens_transaction = is_transactional and not _is_in_transaction(step.entry)
    if step.opens_transaction and not _can_open(step.state):
        return False
    return True


cdef int note_batch(
    PyObject* core,
    const ProducerStep* step,
    int64_t last_offset,
    int64_t offset_delta,
    int64_t timestamp,
    int64_t appended_ms,
) except -1:
    """Add the stored batch to the state, and the log's first unstable offset if a transaction begins with it."""
    cdef PyObject* entry = step.entry
    cdef PyObject* batch
    cdef int64_t last_sequence = NO_SEQUENCE
    if step.base_sequence >= 0:
        last_sequence = (step.base_sequence + offset_delta) & MAX_SEQUENCE
    if step.new_epoch:
        _move_to_epoch(step)
    batch = new_tuple(BatchMetadata, 4)
    set_number(batch, 0, last_sequence)
    set_number(batch, 1, last_offset)
    set_number(batch, 2, offset_delta)
    set_number(batch, 3, timestamp)
    _remember(get(entry, ENTRY_BATCHES), batch)
    put(entry, ENTRY_LAST_TIMESTAMP, PyTuple_GET_ITEM(batch, 3))
    Py_DECREF(batch)
    set_int64(entry, ENTRY_LAST_APPEND, appended_ms)
    if step.opens_transaction:
        _open_transaction(core, step, last_offset - offset_delta)
    return 0


cdef bint check_marker(
    PyObject* core,
    int64_t producer_id,
    int64_t epoch,
    int64_t coordinator_epoch,
    bint has_own_epoch,
    ProducerStep* step,
) except -1:
    """Check the end marker of a known producer's open transaction; fill `step`.

    `has_own_epoch`: each transaction has an epoch of its own, so the marker's is above its data's.
    """
    cdef int64_t known_coordinator
    if not check_epoch(core, producer_id, epoch, NO_SEQUENCE, False, step):
        return False
    if not _is_in_transaction(step.entry) or (has_own_epoch and not step.new_epoch) or not _can_open(step.state):
        return False
    return get_int64(step.entry, ENTRY_COORDINATOR_EPOCH, &known_coordinator) and coordinator_epoch >= known_coordinator


cdef int note_marker(
    PyObject* core, const ProducerStep* step, int64_t coordinator_epoch, int64_t timestamp
) except -1:
    """Add the stored end marker to the state, and change the log's first unstable offset."""
    cdef PyObject* opened = get(step.state, STATE_OPEN)
    if step.new_epoch:
        _move_to_epoch(step)
    set_int64(step.entry, ENTRY_COORDINATOR_EPOCH, coordinator_epoch)
    set_int64(step.entry, ENTRY_LAST_TIMESTAMP, timestamp)
    _close_transaction(opened, get(step.entry, ENTRY_FIRST_OFFSET))
    set_int64(step.entry, ENTRY_FIRST_OFFSET, NO_OFFSET)
    put(core, CORE_FIRST_UNSTABLE, get(opened, OPEN_FIRST_OFFSET))
    return 0


cdef int _move_to_epoch(const ProducerStep* step) except -1:
    cdef PyObject* batches = PyList_New(0)
    set_int64(step.entry, ENTRY_EPOCH, step.epoch)
    put(step.entry, ENTRY_BATCHES, batches)
    Py_DECREF(batches)
    return 0


cdef int _remember(PyObject* batches, PyObject* batch) except -1:
    """Append to the last five batches, the oldest of which goes."""
    cdef PyObject* oldest
    cdef Py_ssize_t index
    if PyList_GET_SIZE(batches) < REMEMBERED_BATCHES:
        PyList_Append(batches, batch)
        return 0
    oldest = PyList_GET_ITEM(batches, 0)
    for index in range(REMEMBERED_BATCHES - 1):
        PyList_SET_ITEM(batches, index, PyList_GET_ITEM(batches, index + 1))
    Py_INCREF(batch)
    PyList_SET_ITEM(batches, REMEMBERED_BATCHES - 1, batch)
    Py_DECREF(oldest)
    return 0


cdef int _open_transaction(PyObject* core, const ProducerStep* step, int64_t first_offset) except -1:
    cdef PyObject* opened = get(step.state, STATE_OPEN)
    cdef PyObject* number = new_number(first_offset)
    cdef PyObject* producer_id = new_number(step.producer_id)
    put(step.entry, ENTRY_FIRST_OFFSET, number)
    PyDict_SetItem(get(opened, OPEN_PRODUCERS), number, producer_id)
    if get(opened, OPEN_FIRST_OFFSET) == Py_None:
        put(opened, OPEN_FIRST_OFFSET, number)
    put(core, CORE_FIRST_UNSTABLE, get(opened, OPEN_FIRST_OFFSET))
    Py_DECREF(producer_id)
    Py_DECREF(number)
    return 0


cdef int _close_transaction(PyObject* opened, PyObject* first_offset) except -1:
    """As OpenTransactions.end."""
    cdef PyObject* transactions = get(opened, OPEN_PRODUCERS)
    cdef PyObject* oldest = Py_None
    cdef Py_ssize_t position = 0
    if PyDict_GetItemWithError(transactions, first_offset) != NULL:
        PyDict_DelItem(transactions, first_offset)
    PyDict_Next(transactions, &position, &oldest, NULL)
    put(opened, OPEN_FIRST_OFFSET, oldest)
    return 0


cdef bint _can_open(PyObject* state) except -1:
    cdef PyObject* opened = get(state, STATE_OPEN)
    if not is_exactly(opened, <PyObject*> OpenTransactions) or get(opened, OPEN_FIRST_OFFSET) == NULL:
        return False
    return get(opened, OPEN_PRODUCERS) != NULL and PyDict_CheckExact(get(opened, OPEN_PRODUCERS))


cdef bint _is_in_transaction(PyObject* entry) except -1:
    cdef int64_t first_offset = NO_OFFSET
    return not get_int64(entry, ENTRY_FIRST_OFFSET, &first_offset) or first_offset != NO_OFFSET


cdef PyObject* _find(PyObject* producers, int64_t producer_id) except? NULL:
    """Return the producer's entry, borrowed; NULL without one."""
    cdef PyObject* key = new_number(producer_id)
    cdef PyObject* found
    try:
        found = PyDict_GetItemWithError(producers, key)
    finally:
        Py_DECREF(key)
    return found
