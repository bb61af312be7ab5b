# cython: language_level=3
"""Counting of plain requests into the quotas of their client: see _session_quota.pyx."""

from cpython.object cimport PyObject
from libc.stdint cimport int64_t


cdef struct Counted:
    # A value that a bucket takes without exceeding its bound. `tally` NULL: there is no such quota.
    PyObject* tally
    double value


cdef struct FetchCount:
    # A fetch between `check_fetch` and `count_fetch`: it refers to the session's SessionQuota.
    Counted requested
    Counted fetched
    int64_t now_ms


cdef bint use_quotas(object session, double started, Py_ssize_t frame_bytes) except -1
"""Let the session's SessionQuota, if any, have the buckets in force for its client. Returns False if it is unusual.

`started` and `frame_bytes` as in SessionQuota.begin.
"""

cdef int64_t fetch_budget(object session) except -2
"""As SessionQuota.fetch_budget; -1 if that is unusual."""

cdef bint count_produce(object session, double started, Py_ssize_t frame_bytes, bint is_answered) except -1
"""Count a produce. Returns False, with nothing counted, if SessionQuota has to count it: a bound may be exceeded."""

cdef bint check_fetch(object session, double spent, double since, int64_t most_bytes, FetchCount* out) except -1
"""Return whether a fetch is within all bounds; if not, SessionQuota counts it.

It took `spent` seconds of the event loop, and those since a time of time.perf_counter's clock.
"""

cdef int count_fetch(FetchCount* checked, int64_t response_bytes) except -1
"""Count a checked fetch, whose response has at most the checked size."""
