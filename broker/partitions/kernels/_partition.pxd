# cython: language_level=3
"""The append of one batch to one partition: see _partition.pyx."""

from libc.stdint cimport int64_t, uint8_t

from barnabas.broker.storage.kernels._append cimport AppendKernel, Appended

cdef AppendKernel kernel_of(object partition)
cdef int append_to_partition(
    object partition, object buffer_owner, uint8_t* data, Py_ssize_t size, bint in_transaction, int64_t now_ms,
    Appended* out,
) except -1
