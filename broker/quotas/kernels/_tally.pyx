# cython: language_level=3
"""Tally with its numbers in one piece of memory, for the counting of _session_quota.pyx. Twin of broker/quotas/tally.py.

Numbers in slots would be eighteen cache lines for each request, which are cold after a request's system calls.
"""


cdef class Tally:
    """What one rate counts for each value."""
