# cython: language_level=3
"""Produces that wait for a flush: see _produce_waits.pyx."""

from barnabas.broker.network.kernels._frames cimport FrameKernel


cdef class ProduceWait:
    """A produce whose batches were appended, with its response, until the last of its flushes is complete."""

    cdef FrameKernel kernel
    cdef object session
    cdef object late  # the Deferred of the response
    cdef bytes response
    cdef int version
    cdef Py_ssize_t frame_bytes
    cdef double started
    cdef double spent  # seconds of the event loop before the wait
    cdef dict failures  # position of the result in the response -> code, message; None without failures
    cdef Py_ssize_t missing

    cdef object flush_of(self, object partition, Py_ssize_t result_at)
    """Return the callback of one more flush to wait for."""

    cdef int flushed(self, object partition, Py_ssize_t result_at, object error) except -1
    cdef int answer(self) except -1


cdef ProduceWait wait_for_flushes(
    FrameKernel kernel, object session, bytes response, int version, Py_ssize_t frame_bytes
)
"""Return a wait for the flushes of its `flush_of`, which begins now."""
