# cython: language_level=3
"""Fetches that wait for appends: see _fetch_waits.pyx."""

from libc.stdint cimport int64_t, uint8_t

from barnabas.broker.handlers.data.kernels._deadlines cimport Deadlines, Timed
from barnabas.broker.network.kernels._frames cimport FrameKernel
from barnabas.protocol.kafka.kernels._fetch cimport FetchFrame


cdef class FetchWaits:
    """The waiting fetches of a broker."""

    cdef FrameKernel kernel
    cdef Deadlines deadlines
    cdef object loop
    cdef object probes
    cdef bint is_draining

    cdef int begin(
        self, FetchWait wait, object client, const uint8_t* data, Py_ssize_t size, int64_t missing_bytes
    ) except -1


cdef class FetchWait(Timed):
    """A fetch that found less than its min_bytes and waits for appends, at most its max_wait_ms."""

    cdef FetchWaits waits
    cdef object client
    cdef bytes data  # the request's frame
    cdef FetchFrame frame  # as parsed; it owns its memory
    cdef int64_t missing_bytes
    cdef double started
    cdef double spent  # seconds of the event loop before the wait
    cdef double resumed  # when the wait was over, by `monotonic`
    cdef bint is_waiting
    cdef object response  # a Deferred while the fetch waits

    cdef int unregister(self) except -1
    """Leave the partitions, or the fetch session, whose appends wake this fetch."""

    cdef object answer(self)
    """Read again and return the response, None if the request is not plain any more."""

    cdef object handler(self)
    """Return the Python handler that answers the request if it is not plain any more."""
