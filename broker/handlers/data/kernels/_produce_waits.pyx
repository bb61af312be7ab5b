# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Produces that wait for the flusher's group commit: their response is encoded before the wait.

As FlushWaits.answer_after, without a second parse of the request. A failed flush replaces a result in the response.
"""

from barnabas.broker.network.kernels._frames cimport FrameKernel, observe
from barnabas.broker.quotas.kernels._session_quota cimport count_produce, use_quotas
from barnabas.broker.storage.kernels._clock cimport monotonic
from barnabas.protocol.kafka.kernels._produce cimport with_failure, with_throttle

from barnabas.broker.network.deferred import Deferred
from barnabas.broker.network.response_frame import ResponseFrame
from barnabas.broker.partitions.flush_waits import flush_failure
from barnabas.protocol.messages.api_key import ApiKey

cdef object _Deferred = Deferred
cdef object _ResponseFrame = ResponseFrame
cdef object _flush_failure = flush_failure
cdef object _new_tuple = tuple.__new__
cdef tuple _NO_PARTS = ()
cdef int _PRODUCE_API = ApiKey.PRODUCE
cdef int _THROTTLE_MAX_MS = 0x7FFFFFFF


cdef ProduceWait wait_for_flushes(
    FrameKernel kernel, object session, bytes response, int version, Py_ssize_t frame_bytes
):
    cdef ProduceWait wait = ProduceWait.__new__(ProduceWait)
    wait.kernel = kernel
    wait.session = session
    wait.late = _Deferred()
    wait.response = response
    wait.version = version
    wait.frame_bytes = frame_bytes
    wait.started = kernel.started
    wait.spent = monotonic() - kernel.started
    wait.failures = None
    wait.missing = 0
    return wait


cdef class ProduceWait:
    cdef object flush_of(self, object partition, Py_ssize_t result_at):
        cdef Flush flush = Flush.__new__(Flush)
        flush.wait = self
        flush.partition = partition
        flush.result_at = result_at
        self.missing += 1
        return flush

    cdef int flushed(self, object partition, Py_ssize_t result_at, object error) except -1:
        """Note the end of one flush, and answer after the last one."""
        if error is not None:
            if self.failures is None:
                self.failures = {}
            self.failures[result_at] = _flush_failure(partition, error)
        self.missing -= 1
        if self.missing == 0 and not self.late.done:
            self.answer()
        return 0

    cdef int answer(self) except -1:
        cdef double resumed = monotonic()
        cdef double now
        cdef object quota = self.session.quota
        if self.failures is not None:
            # A message makes the response longer: the last result first, so that the other positions hold.
            for result_at in sorted(self.failures, reverse=True):
                code, message = self.failures[result_at]
                self.response = with_failure(self.response, self.version, result_at, code, message)
        if quota is not None:
            started = resumed - self.spent
            if not use_quotas(self.session, started, self.frame_bytes) or not count_produce(
                self.session, started, self.frame_bytes, True
            ):
                quota.begin(started, self.frame_bytes)
                throttle_ms = min(quota.finish(_PRODUCE_API, is_answered=True), _THROTTLE_MAX_MS)
                self.response = with_throttle(self.response, self.version, throttle_ms)
            now = monotonic()
        else:
            now = resumed
        observe(self.kernel.probe, now - self.started)
        self.late.resolve(_new_tuple(_ResponseFrame, (self.response, _NO_PARTS)))
        return 0


cdef class Flush:
    """The callback of one flush."""

    cdef ProduceWait wait
    cdef object partition
    cdef Py_ssize_t result_at

    def __call__(self, error):
        """Note that the flush is complete, or has failed with `error`."""
        self.wait.flushed(self.partition, self.result_at, error)
