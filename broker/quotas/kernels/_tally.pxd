# cython: language_level=3
"""Tally: see broker/quotas/tally.py."""

from libc.stdint cimport int64_t


cdef class Tally:
    cdef public double total
    cdef public double sample
    cdef public double allowed
    cdef public int64_t last_ms
    cdef public int64_t plain_until_ms
