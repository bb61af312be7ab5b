# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""The append of one batch to one partition: the common case of Partition.append, append_in_transaction, append_marker.

The log's append, then the partition's accounting: appended bytes, the topic's counters, the mark of a transaction that
begins or ends, and the wake of waiting fetches, once per turn of the event loop. Called in the event loop only.
"""

from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.dict cimport PyDict_Size
from cpython.object cimport PyObject
from libc.stdint cimport int32_t

from barnabas.broker.storage.kernels._append cimport APPENDED, UNUSUAL
from barnabas.broker.storage.kernels._marker cimport Marker, append_commit_marker, read_marker
from barnabas.broker.storage.kernels._slots cimport get, get_int64, is_exactly, offset_of, set_int64

from barnabas.broker.partitions.partition import Partition
from barnabas.broker.probes import TopicProbe
from barnabas.broker.storage.log.partition_log import PartitionLog

cdef extern from "Python.h":
    PyObject* Py_True
    bint PyDict_CheckExact(PyObject* value)

cdef Py_ssize_t PARTITION_LOG = offset_of(Partition, "writable_log")
cdef Py_ssize_t PARTITION_EPOCH = offset_of(Partition, "leader_epoch")
cdef Py_ssize_t PARTITION_APPENDED = offset_of(Partition, "appended_bytes")
cdef Py_ssize_t PARTITION_PROBE = offset_of(Partition, "probe")
cdef Py_ssize_t PARTITION_MARKS = offset_of(Partition, "_transaction_marks")
cdef Py_ssize_t PARTITION_WAITERS = offset_of(Partition, "_waiters")
cdef Py_ssize_t PARTITION_WAKE_SCHEDULED = offset_of(Partition, "_wake_scheduled")
cdef Py_ssize_t LOG_KERNEL = offset_of(PartitionLog, "append_kernel")
cdef Py_ssize_t PROBE_BYTES_IN = offset_of(TopicProbe, "bytes_in")
cdef Py_ssize_t PROBE_RECORDS_IN = offset_of(TopicProbe, "records_in")


cdef AppendKernel kernel_of(object partition):
    """Return the append of the partition's log; None if the broker only reads it."""
    cdef PyObject* log
    cdef PyObject* kernel
    if type(partition) is not Partition:
        return None
    log = get(<PyObject*> partition, PARTITION_LOG)
    if not is_exactly(log, <PyObject*> PartitionLog):
        return None
    kernel = get(log, LOG_KERNEL)
    if not is_exactly(kernel, <PyObject*> AppendKernel):
        return None
    return <AppendKernel> kernel


# What an append to a partition changes beside its log.
cdef struct Accounts:
    PyObject* probe
    int64_t leader_epoch
    int64_t appended_bytes
    int64_t bytes_in
    int64_t records_in


cdef bint _read_accounts(PyObject* partition, Accounts* accounts) except -1:
    """Read the numbers before an append; return whether all are what `_add` can change."""
    accounts.probe = get(partition, PARTITION_PROBE)
    return (
        is_exactly(accounts.probe, <PyObject*> TopicProbe)
        and get_int64(partition, PARTITION_EPOCH, &accounts.leader_epoch)
        and get_int64(partition, PARTITION_APPENDED, &accounts.appended_bytes)
        and get_int64(accounts.probe, PROBE_BYTES_IN, &accounts.bytes_in)
        and get_int64(accounts.probe, PROBE_RECORDS_IN, &accounts.records_in)
        and PyDict_CheckExact(get(partition, PARTITION_WAITERS))
        and PyDict_CheckExact(get(partition, PARTITION_MARKS))
    )


cdef int _add(object partition, const Accounts* accounts, const Appended* out) except -1:
    """Account for an append, and schedule the wake of waiting fetches: after the producer has its response."""
    cdef PyObject* target = <PyObject*> partition
    set_int64(target, PARTITION_APPENDED, accounts.appended_bytes + out.size_bytes)
    set_int64(accounts.probe, PROBE_BYTES_IN, accounts.bytes_in + out.size_bytes)
    set_int64(accounts.probe, PROBE_RECORDS_IN, accounts.records_in + out.record_count)
    if PyDict_Size(<object> get(target, PARTITION_WAITERS)) and get(target, PARTITION_WAKE_SCHEDULED) != Py_True:
        partition._wake_scheduled = True
        partition._loop.call_soon(partition._wake)
    return 0


cdef int append_to_partition(
    object partition, object buffer_owner, uint8_t* data, Py_ssize_t size, bint in_transaction, int64_t now_ms,
    Appended* out,
) except -1:
    """Append the client's batch at `data`, which is within the buffer of `buffer_owner` and patched in place.

    Returns APPENDED, or UNUSUAL: then nothing has changed, and Partition.append or append_in_transaction appends or
    refuses the batch. Raises MemoryError.
    """
    cdef Accounts accounts
    cdef AppendKernel kernel = kernel_of(partition)
    if kernel is None or not _read_accounts(<PyObject*> partition, &accounts):
        return UNUSUAL
    if kernel.append(
        buffer_owner, data, size, <int32_t> accounts.leader_epoch, in_transaction, now_ms, out
    ) != APPENDED:
        return UNUSUAL
    if out.opens_transaction:
        (<dict> get(<PyObject*> partition, PARTITION_MARKS))[out.base_offset] = accounts.appended_bytes
    _add(partition, &accounts, out)
    return APPENDED


def append_commits(list partitions not None, end, marker_batch, int64_t timestamp):
    """Append the marker that commits a transaction to its partitions.

    `marker_batch` is `end.batch(timestamp, log_append_time=False)`. Returns for each partition the offset up to which a
    flush is due, 0 if none is due, or -1: nothing has changed there, Partition.append_marker appends or refuses the
    marker. Raises MemoryError.
    """
    cdef Py_buffer view
    cdef Marker marker
    cdef Appended out
    cdef Accounts accounts
    cdef AppendKernel kernel
    cdef list found = [-1] * len(partitions)
    cdef Py_ssize_t index
    if not read_marker(end, &marker):
        return found
    PyObject_GetBuffer(marker_batch, &view, PyBUF_WRITABLE)
    marker.data = <uint8_t*> view.buf
    marker.size = view.len
    marker.timestamp = timestamp
    marker.log_append_time = False
    try:
        for index in range(len(found)):
            partition = partitions[index]
            kernel = kernel_of(partition)
            if kernel is None or not _read_accounts(<PyObject*> partition, &accounts):
                continue
            if append_commit_marker(kernel, &marker, <int32_t> accounts.leader_epoch, timestamp, &out) != APPENDED:
                continue
            (<dict> get(<PyObject*> partition, PARTITION_MARKS)).pop(marker.first_offset, None)
            _add(partition, &accounts, &out)
            found[index] = out.last_offset + 1 if out.flush_due else 0
    finally:
        PyBuffer_Release(&view)
    return found


def append(partition, records, bint in_transaction, int64_t now_ms):
    """Append one batch, for tests; return its offsets and size, or None if it is unusual."""
    cdef Appended out
    cdef uint8_t[::1] view = records
    if append_to_partition(partition, records, &view[0], view.shape[0], in_transaction, now_ms, &out) != APPENDED:
        return None
    return out
