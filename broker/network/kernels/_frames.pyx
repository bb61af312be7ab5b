# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""The loop over the frames of a receive buffer.

    frame := int32 size | size bytes

The API is in the first two bytes of a frame. Those of a native one are none of Kafka's APIs.

It stops before a frame that is incomplete, has a size that is refused or needs the dispatcher, after the time of one
turn, after one that mutes the connection, and when the responses should leave. A kernel reads each byte of the buffer
after it has compared its position with the frame's end.
"""

from cpython.buffer cimport PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_CheckExact
from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.object cimport PyObject
from libc.stdint cimport uint8_t, uint32_t
from libc.stdlib cimport free, realloc

from barnabas.broker.storage.kernels._clock cimport monotonic
from barnabas.broker.storage.kernels._slots cimport get, is_exactly, offset_of, put

from barnabas.broker.network.response_frame import ResponseFrame
from barnabas.broker.network.session import Session
from barnabas.broker.probes import REQUEST_LATENCY_BOUNDS_SECONDS, ApiProbe

cdef enum:
    SIZE_PREFIX = 4
    API_SIZE = 2
    FIRST_CAPACITY = 4096
    SEND_BYTES = 65536  # as HOLD_BYTES_MAX: responses leave at this size
    KEPT_BYTES = 1048576
    BOUNDS_MAX = 32

cdef object _ResponseFrame = ResponseFrame
cdef object _Session = Session
cdef object _ApiProbe = ApiProbe

cdef Py_ssize_t COUNTS = offset_of(ApiProbe, "counts")
cdef Py_ssize_t SUM_SECONDS = offset_of(ApiProbe, "sum_seconds")

cdef double[BOUNDS_MAX] bounds
cdef int bound_count = len(REQUEST_LATENCY_BOUNDS_SECONDS)
if bound_count > BOUNDS_MAX:
    raise ImportError("the request histogram has more buckets than the kernel has room for")
for _index, _bound in enumerate(REQUEST_LATENCY_BOUNDS_SECONDS):
    bounds[_index] = _bound


cdef uint8_t* reserve(Outgoing* out, Py_ssize_t size) except NULL:
    cdef Py_ssize_t capacity = out.capacity
    cdef uint8_t* data
    if size > capacity - out.size:
        capacity = max(2 * capacity, out.size + size, FIRST_CAPACITY)
        data = <uint8_t*> realloc(out.data, capacity)
        if data == NULL:
            raise MemoryError
        out.data = data
        out.capacity = capacity
    return out.data + out.size


cdef int observe(object probe, double seconds) except -1:
    cdef PyObject* counts = get(<PyObject*> probe, COUNTS)
    cdef PyObject* total = get(<PyObject*> probe, SUM_SECONDS)
    cdef Py_ssize_t index = 0
    while index < bound_count and bounds[index] < seconds:
        index += 1
    if not is_exactly(counts, <PyObject*> list) or index >= PyList_GET_SIZE(<list> counts) or total == NULL:
        raise TypeError("the probe of an API is incomplete")
    (<list> counts)[index] += 1
    total_now = <object> total + seconds
    put(<PyObject*> probe, SUM_SECONDS, <PyObject*> total_now)
    return 0


cdef class FrameKernel:
    """Serves the plain requests of one API. Base of the kernels that a FrameRun calls."""

    def __init__(self, probe):
        """`probe` counts the API's requests."""
        if type(probe) is not _ApiProbe:
            raise TypeError("a frame kernel needs the ApiProbe of its API")
        self.probe = probe
        self.dispatch = None
        self.result = None

    cdef int serve(
        self, object session, object view, Py_ssize_t position, uint8_t* frame, Py_ssize_t size, Outgoing* out
    ) except -1:
        return UNUSUAL


cdef class FrameRun:
    """Serves the plain requests in a receive buffer. One for all connections of a broker; event loop only."""

    def __cinit__(self):
        self._out.data = NULL
        self._out.size = 0
        self._out.capacity = 0
        self._is_running = False

    def __init__(self, kernels):
        """`kernels`: by the key of their API."""
        self._kernels = [kernels.get(api) for api in range(max(kernels, default=-1) + 1)]
        for kernel in self._kernels:
            if kernel is not None and not isinstance(kernel, FrameKernel):
                raise TypeError(f"{kernel!r} is not a frame kernel")

    def __dealloc__(self):
        free(self._out.data)

    def use(self, dispatch):
        """Hand requests that a kernel has kept and cannot answer to `dispatch`, which is Dispatcher.serve."""
        for kernel in self._kernels:
            if kernel is not None:
                kernel.dispatch = dispatch

    def serve(
        self, session, view, Py_ssize_t start, Py_ssize_t end, Py_ssize_t max_frame_bytes, double seconds
    ):
        """Serve plain requests in `view[start:end]`; begin none after `seconds`.

        Returns None if the first frame is not plain, else
            position    of the first frame that was not served
            responses   their bytes, or None
            outcome     what Dispatcher.serve would return for the last frame that was served, or None
            handler     finishes the request at `position`, through the dispatcher; None: it was not begun
        """
        cdef Py_buffer buffer
        if self._is_running or type(session) is not _Session:
            return None
        PyObject_GetBuffer(view, &buffer, PyBUF_WRITABLE)
        self._is_running = True
        try:
            if not 0 <= start <= end <= buffer.len:
                raise ValueError("frames beyond the end of their buffer")
            return self._work_off(session, view, <uint8_t*> buffer.buf, start, end, max_frame_bytes, seconds)
        finally:
            self._is_running = False
            PyBuffer_Release(&buffer)

    cdef object _work_off(
        self, object session, object view, uint8_t* data, Py_ssize_t start, Py_ssize_t end, Py_ssize_t max_frame_bytes,
        double seconds
    ):
        cdef Outgoing* out = &self._out
        cdef Py_ssize_t position = start
        cdef Py_ssize_t size
        cdef uint8_t* prefix
        cdef FrameKernel kernel
        cdef int api
        cdef double now, before, turn_ends
        cdef int outcome = UNUSUAL
        cdef object responses = None
        cdef object result = None
        out.size = 0
        now = monotonic()
        turn_ends = now + seconds
        while end - position > SIZE_PREFIX and out.size < SEND_BYTES:
            prefix = data + position
            # A size above the largest int32 is negative in the frame; the limit is below that.
            size = <Py_ssize_t> (
                <uint32_t> prefix[0] << 24 | <uint32_t> prefix[1] << 16 | <uint32_t> prefix[2] << 8 | prefix[3]
            )
            if size < API_SIZE or size > max_frame_bytes or size > end - position - SIZE_PREFIX:
                break
            api = prefix[SIZE_PREFIX] << 8 | prefix[SIZE_PREFIX + 1]  # a key below 0 is above every other here
            if api >= PyList_GET_SIZE(self._kernels):
                break
            if <PyObject*> PyList_GET_ITEM(self._kernels, api) == <PyObject*> None:
                break
            if now > turn_ends:
                break
            kernel = <FrameKernel> PyList_GET_ITEM(self._kernels, api)
            kernel.started = now
            outcome = kernel.serve(session, view, position + SIZE_PREFIX, prefix + SIZE_PREFIX, size, out)
            if outcome == UNUSUAL:
                break
            if outcome == BEGUN:
                result, kernel.result = kernel.result, None
                break
            position += SIZE_PREFIX + size
            size = 0
            if outcome == ANSWERED:
                result, kernel.result = kernel.result, None
                if type(result) is _ResponseFrame:
                    observe(kernel.probe, monotonic() - now)
                break
            before = now
            now = monotonic()
            observe(kernel.probe, now - before)
            if outcome == MUTED:
                break
        if position == start and result is None:
            return None
        if out.size > 0:
            responses = PyBytes_FromStringAndSize(<char*> out.data, out.size)
            if out.capacity > KEPT_BYTES:
                free(out.data)
                out.data = NULL
                out.capacity = 0
        if outcome == BEGUN:
            return position, responses, None, result
        return position, responses, result, None
