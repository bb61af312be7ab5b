# cython: language_level=3
"""The system's clocks."""

from libc.stdint cimport int64_t

cdef extern from "<time.h>" nogil:
    struct timespec:
        long tv_sec
        long tv_nsec
    int CLOCK_MONOTONIC
    int CLOCK_REALTIME
    int clock_gettime(int clock, timespec* now)


cdef inline double monotonic() noexcept nogil:
    """Return the seconds of time.monotonic and time.perf_counter."""
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return now.tv_sec + now.tv_nsec * 1e-9


cdef inline int64_t wall_ms() noexcept nogil:
    """As SystemClock.wall_ms."""
    cdef timespec now
    clock_gettime(CLOCK_REALTIME, &now)
    return <int64_t> now.tv_sec * 1000 + now.tv_nsec // 1000000
