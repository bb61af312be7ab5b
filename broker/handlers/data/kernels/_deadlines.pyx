# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""Deadlines of waiting requests: one timer of the event loop for all of them.

Most waits end long before their deadline, and a timer of the loop for each costs more than the rest of the wait. So a
binary heap has the deadlines, and the loop one timer, for a deadline that was the earliest when it was set. It is moved
forward for an earlier deadline, and otherwise left alone: when it fires too early, it is set again.
"""

from cpython.list cimport PyList_GET_SIZE

from barnabas.broker.storage.kernels._clock cimport monotonic

cdef double NEVER = float("inf")
cdef double RESOLUTION_SECONDS = 0.0005  # half of uvloop's


cdef class Timed:
    def __cinit__(self):
        self.slot = -1

    cdef int expired(self) except -1:
        return 0


cdef class Deadlines:
    """Event loop only. Iterating gives the waiting entries, in no order."""

    def __init__(self, loop):
        self._heap = []
        self._loop = loop
        self._timer = None
        self._armed = NEVER

    def __len__(self):
        return len(self._heap)

    def __iter__(self):
        return iter(list(self._heap))

    cdef int add(self, Timed entry) except -1:
        cdef Py_ssize_t slot = PyList_GET_SIZE(self._heap)
        self._heap.append(entry)
        entry.slot = slot
        self._up(slot)
        if entry.deadline < self._armed:
            self._arm(entry.deadline, monotonic())
        return 0

    cdef int remove(self, Timed entry) except -1:
        """Remove an entry; one that is in no heap is ignored."""
        cdef Py_ssize_t slot = entry.slot
        cdef Timed last
        if slot < 0:
            return 0
        entry.slot = -1
        last = <Timed> self._heap.pop()
        if last is not entry:
            self._heap[slot] = last
            last.slot = slot
            self._up(slot)
            self._down(last.slot)
        return 0

    def expire(self):
        """End the waits whose time is over. Called by the timer."""
        cdef Timed first
        cdef double now = monotonic()
        self._timer = None
        self._armed = NEVER
        try:
            while PyList_GET_SIZE(self._heap) > 0:
                first = <Timed> self._heap[0]
                if first.deadline > now + RESOLUTION_SECONDS:
                    break
                self.remove(first)
                first.expired()
        finally:
            if PyList_GET_SIZE(self._heap) > 0 and (<Timed> self._heap[0]).deadline < self._armed:
                self._arm((<Timed> self._heap[0]).deadline, now)

    cdef int _arm(self, double deadline, double now) except -1:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._loop.call_later(max(deadline - now, 2 * RESOLUTION_SECONDS), self.expire)
        self._armed = deadline
        return 0

    cdef int _up(self, Py_ssize_t slot) except -1:
        cdef Timed entry = <Timed> self._heap[slot]
        cdef Timed parent
        while slot > 0:
            parent = <Timed> self._heap[(slot - 1) >> 1]
            if parent.deadline <= entry.deadline:
                break
            self._heap[slot] = parent
            parent.slot = slot
            slot = (slot - 1) >> 1
        self._heap[slot] = entry
        entry.slot = slot
        return 0

    cdef int _down(self, Py_ssize_t slot) except -1:
        cdef Timed entry = <Timed> self._heap[slot]
        cdef Timed child
        cdef Py_ssize_t below
        cdef Py_ssize_t count = PyList_GET_SIZE(self._heap)
        while True:
            below = 2 * slot + 1
            if below >= count:
                break
            child = <Timed> self._heap[below]
            if below + 1 < count and (<Timed> self._heap[below + 1]).deadline < child.deadline:
                below += 1
                child = <Timed> self._heap[below]
            if entry.deadline <= child.deadline:
                break
            self._heap[slot] = child
            child.slot = slot
            slot = below
        self._heap[slot] = entry
        entry.slot = slot
        return 0
