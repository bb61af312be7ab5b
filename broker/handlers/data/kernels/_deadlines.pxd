# cython: language_level=3
"""Deadlines of waiting requests: see _deadlines.pyx."""


cdef class Timed:
    """An object with a deadline, in seconds of the monotonic clock. At most one Deadlines has it."""

    cdef double deadline
    cdef Py_ssize_t slot  # in the heap; -1: in none

    cdef int expired(self) except -1
    """Called once the deadline has passed, when it is in no heap any more."""


cdef class Deadlines:
    """A heap of deadlines with one timer of the event loop."""

    cdef list _heap
    cdef object _loop
    cdef object _timer
    cdef double _armed  # when the timer fires

    cdef int add(self, Timed entry) except -1
    cdef int remove(self, Timed entry) except -1
    cdef int _arm(self, double deadline, double now) except -1
    cdef int _up(self, Py_ssize_t slot) except -1
    cdef int _down(self, Py_ssize_t slot) except -1
