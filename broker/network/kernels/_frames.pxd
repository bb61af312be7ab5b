# cython: language_level=3
"""The loop over the frames of a receive buffer, and the interface of the kernels that it calls."""

from libc.stdint cimport uint8_t


cdef struct Outgoing:
    # Response frames, with their size fields, that leave together.
    uint8_t* data
    Py_ssize_t size
    Py_ssize_t capacity


cdef uint8_t* reserve(Outgoing* out, Py_ssize_t size) except NULL
"""Make room for `size` more bytes and return where they begin. The caller adds what it wrote to `out.size`."""


cdef enum FrameOutcome:
    # UNUSUAL    nothing was changed: the dispatcher serves the frame
    # SERVED     the response, if the request has one, is in `out`
    # ANSWERED   `kernel.result` is what Dispatcher.serve would return: a ResponseFrame, a Deferred
    # MUTED      as SERVED; the connection, which exceeds a quota, serves no further request now
    # BEGUN      `kernel.result` is the handler that finishes the request, called through the dispatcher
    UNUSUAL = 0
    SERVED = 1
    ANSWERED = 2
    BEGUN = 3
    MUTED = 4


cdef int observe(object probe, double seconds) except -1
"""As ApiProbe.observe."""


cdef class FrameKernel:
    """Serves the plain requests of one API."""

    cdef readonly object probe
    cdef public object dispatch  # Dispatcher.serve, for a request that a kernel has kept and cannot answer
    cdef object result
    cdef double started  # of the frame being served, by time.perf_counter's clock; set by FrameRun

    cdef int serve(
        self, object session, object view, Py_ssize_t position, uint8_t* frame, Py_ssize_t size, Outgoing* out
    ) except -1
    """Serve a frame of `size` bytes (without its size field), `view[position : position + size]`.

    Returns a FrameOutcome. `session` is exactly a Session, and `frame` is valid during the call.
    """


cdef class FrameRun:
    """Serves the plain requests in a receive buffer. One for all connections of a broker."""

    cdef list _kernels
    cdef Outgoing _out
    cdef bint _is_running  # a request that wakes another connection's leaves that one to the dispatcher

    cdef object _work_off(
        self, object session, object view, uint8_t* data, Py_ssize_t start, Py_ssize_t end, Py_ssize_t max_frame_bytes,
        double seconds
    )
