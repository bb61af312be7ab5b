# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Fetches that wait for appends: their beginning, their deadline and the response at their end.

A waiting fetch keeps its parsed request, and its frame for the Python handler.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint8_t

from barnabas.broker.handlers.data.kernels._deadlines cimport Deadlines, Timed
from barnabas.broker.network.kernels._frames cimport FrameKernel, observe
from barnabas.broker.quotas.kernels._session_quota cimport use_quotas
from barnabas.broker.storage.kernels._clock cimport monotonic
from barnabas.protocol.kafka.kernels._fetch cimport begin_frame, release_frame

import logging

from barnabas.broker.network.deferred import Deferred
from barnabas.broker.network.response_frame import CloseConnection

logger = logging.getLogger(__name__)

cdef object _Deferred = Deferred


cdef class FetchWaits:
    """The waiting fetches of a broker. Event loop only."""

    def __init__(self, FrameKernel kernel not None, probes, loop):
        """`probes` counts the waiting fetches, `kernel.dispatch` serves those that are not plain any more."""
        self.kernel = kernel
        self.deadlines = Deadlines(loop)
        self.loop = loop
        self.probes = probes
        self.is_draining = False

    def answer_all(self):
        """Answer every waiting fetch with the records available; none waits any more."""
        self.is_draining = True
        for wait in self.deadlines:
            wait.finish()

    cdef int begin(
        self, FetchWait wait, object client, const uint8_t* data, Py_ssize_t size, int64_t missing_bytes
    ) except -1:
        """Start the time of a wait that has its `frame` and is registered. The kernel's `result` is its Deferred."""
        wait.waits = self
        wait.client = client
        wait.data = PyBytes_FromStringAndSize(<const char*> data, size)
        wait.missing_bytes = missing_bytes
        wait.started = monotonic()
        wait.spent = wait.started - self.kernel.started
        wait.deadline = wait.started + wait.frame.max_wait_ms * 1e-3
        wait.response = _Deferred(wait.leave)
        wait.is_waiting = True
        self.deadlines.add(wait)
        self.probes.fetches_waiting += 1
        self.kernel.result = wait.response
        return 0


cdef class FetchWait(Timed):
    def __cinit__(self):
        begin_frame(&self.frame)
        self.is_waiting = False

    def __dealloc__(self):
        release_frame(&self.frame)

    cdef int unregister(self) except -1:
        raise NotImplementedError

    cdef object answer(self):
        raise NotImplementedError

    cdef object handler(self):
        raise NotImplementedError

    cdef int expired(self) except -1:
        self.finish()
        return 0

    def leave(self):
        """End the wait without an answer. May be called repeatedly."""
        if not self.is_waiting:
            return
        self.is_waiting = False
        self.response = None  # refers to this method: the cycle would wait for the garbage collector
        self.waits.deadlines.remove(self)
        self.unregister()
        self.waits.probes.fetches_waiting -= 1

    def finish(self):
        """Answer with the records available now."""
        cdef FrameKernel kernel
        if not self.is_waiting:
            return
        kernel = self.waits.kernel
        late = self.response
        self.leave()
        response = None
        try:
            self.resumed = monotonic()
            if use_quotas(self.client, self.resumed, len(self.data)):
                response = self.answer()
            if response is None:
                response = kernel.dispatch(self.client, memoryview(self.data), self.handler(), self.started)
            else:
                observe(kernel.probe, monotonic() - self.started)
        except Exception as error:
            # It belongs to this request, not to the append that woke it.
            logger.exception("a bug in a fetch that has waited, request of %s", self.client)
            response = CloseConnection(f"a fetch that has waited failed: {error}")
        if type(response) is _Deferred:
            response.then(late.resolve)
        else:
            late.resolve(response)
