# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, nonecheck=False
"""The common case of SessionQuota.begin, fetched and finish: a request within all bounds, in the current samples.

Adds to the same RateBuckets as the Python code. What is left to SessionQuota: a sum above what its bound allows, the
first value of a sample (every second), and quotas that were changed. All but `use_quotas` need a session with a quota.
"""

from cpython.object cimport Py_EQ, PyObject, PyObject_RichCompareBool
from libc.stdint cimport int64_t

from barnabas.broker.quotas.kernels._tally cimport Tally
from barnabas.broker.storage.kernels._clock cimport CLOCK_MONOTONIC, clock_gettime, timespec
from barnabas.broker.storage.kernels._slots cimport get, get_int64, is_exactly, offset_of

from barnabas.broker.network.session import Session
from barnabas.broker.quotas.bucket import RateBucket
from barnabas.broker.quotas.manager import QuotaManager, monotonic_ms
from barnabas.broker.quotas.session_quota import SessionQuota

cdef Py_ssize_t SESSION_QUOTA = offset_of(Session, "quota")
cdef Py_ssize_t SESSION_CLIENT_ID = offset_of(Session, "client_id")
cdef Py_ssize_t SESSION_PRINCIPAL = offset_of(Session, "principal")
cdef Py_ssize_t QUOTA_MANAGER = offset_of(SessionQuota, "_manager")
cdef Py_ssize_t QUOTA_GENERATION = offset_of(SessionQuota, "_generation")
cdef Py_ssize_t QUOTA_CLIENT_ID = offset_of(SessionQuota, "_client_id")
cdef Py_ssize_t QUOTA_PRINCIPAL = offset_of(SessionQuota, "_principal")
cdef Py_ssize_t QUOTA_PRODUCE = offset_of(SessionQuota, "_produce")
cdef Py_ssize_t QUOTA_FETCH = offset_of(SessionQuota, "_fetch")
cdef Py_ssize_t QUOTA_REQUEST = offset_of(SessionQuota, "_request")
cdef Py_ssize_t MANAGER_GENERATION = offset_of(QuotaManager, "generation")
cdef Py_ssize_t MANAGER_CLOCK_MS = offset_of(QuotaManager, "clock_ms")
cdef Py_ssize_t BUCKET_TALLY = offset_of(RateBucket, "tally")

cdef PyObject* SESSION_QUOTA_CLASS = <PyObject*> SessionQuota
cdef PyObject* MANAGER_CLASS = <PyObject*> QuotaManager
cdef PyObject* BUCKET_CLASS = <PyObject*> RateBucket
cdef PyObject* TALLY_CLASS = <PyObject*> Tally
cdef object _monotonic_ms = monotonic_ms

cdef double UNLIMITED = 0x7FFFFFFF
cdef double PERCENT = 100.0


cdef bint use_quotas(object session, double started, Py_ssize_t frame_bytes) except -1:
    cdef PyObject* quota = get(<PyObject*> session, SESSION_QUOTA)
    cdef PyObject* manager
    cdef PyObject* client_id
    cdef PyObject* known
    cdef int64_t generation, current
    if quota == <PyObject*> None:
        return True
    if not is_exactly(quota, SESSION_QUOTA_CLASS):
        return False
    manager = get(quota, QUOTA_MANAGER)
    if not is_exactly(manager, MANAGER_CLASS):
        return False
    if get_int64(quota, QUOTA_GENERATION, &generation) and get_int64(manager, MANAGER_GENERATION, &current):
        client_id = get(<PyObject*> session, SESSION_CLIENT_ID)
        known = get(quota, QUOTA_CLIENT_ID)
        if (
            generation == current
            and client_id != NULL
            and known != NULL
            and get(<PyObject*> session, SESSION_PRINCIPAL) == get(quota, QUOTA_PRINCIPAL)
            and PyObject_RichCompareBool(<object> client_id, <object> known, Py_EQ)
        ):
            return True
    (<object> quota).begin(started, frame_bytes)
    return True


cdef int64_t fetch_budget(object session) except -2:
    cdef PyObject* bucket = get(get(<PyObject*> session, SESSION_QUOTA), QUOTA_FETCH)
    cdef PyObject* tally
    cdef double allowed
    if bucket == <PyObject*> None:
        return <int64_t> UNLIMITED
    tally = _tally(bucket)
    if tally == NULL:
        return -1
    allowed = (<Tally> tally).allowed
    if not allowed >= 0:
        return -1
    return <int64_t> allowed if allowed < UNLIMITED else <int64_t> UNLIMITED


cdef bint count_produce(object session, double started, Py_ssize_t frame_bytes, bint is_answered) except -1:
    cdef PyObject* quota = get(<PyObject*> session, SESSION_QUOTA)
    cdef Counted produced, requested
    cdef PyObject* request = get(quota, QUOTA_REQUEST) if is_answered else <PyObject*> None
    cdef double now = _now(request, started)
    cdef int64_t now_ms = _milliseconds(quota, now)
    if not _fits(request, (now - started) * PERCENT, now_ms, &requested):
        return False
    if not _fits(get(quota, QUOTA_PRODUCE), frame_bytes, now_ms, &produced):
        return False
    _count(&requested, now_ms)
    _count(&produced, now_ms)
    return True


cdef bint check_fetch(object session, double spent, double since, int64_t most_bytes, FetchCount* out) except -1:
    cdef PyObject* quota = get(<PyObject*> session, SESSION_QUOTA)
    cdef PyObject* request = get(quota, QUOTA_REQUEST)
    cdef double now = _now(request, since)
    out.now_ms = _milliseconds(quota, now)
    return _fits(request, (spent + now - since) * PERCENT, out.now_ms, &out.requested) and _fits(
        get(quota, QUOTA_FETCH), most_bytes, out.now_ms, &out.fetched
    )


cdef int count_fetch(FetchCount* checked, int64_t response_bytes) except -1:
    checked.fetched.value = response_bytes
    _count(&checked.requested, checked.now_ms)
    _count(&checked.fetched, checked.now_ms)
    return 0


cdef inline PyObject* _tally(PyObject* bucket) noexcept:
    """Return the tally of a bucket, borrowed; NULL where it is not the compiled one."""
    cdef PyObject* tally
    if not is_exactly(bucket, BUCKET_CLASS):
        return NULL
    tally = get(bucket, BUCKET_TALLY)
    return tally if is_exactly(tally, TALLY_CLASS) else NULL


cdef inline double _now(PyObject* request, double since) noexcept:
    """Return the clock of time.perf_counter; without a quota of request time `since` is near enough, and free."""
    cdef timespec now
    if request == <PyObject*> None:
        return since
    clock_gettime(CLOCK_MONOTONIC, &now)
    return now.tv_sec + now.tv_nsec * 1e-9


cdef inline int64_t _milliseconds(PyObject* quota, double now) except -1:
    """Return the ms of the manager's clock."""
    cdef PyObject* clock_ms = get(get(quota, QUOTA_MANAGER), MANAGER_CLOCK_MS)
    if clock_ms == <PyObject*> _monotonic_ms:
        return <int64_t> (now * 1000)
    return (<object> clock_ms)()


cdef inline bint _fits(PyObject* bucket, double value, int64_t now_ms, Counted* out) noexcept:
    """Return whether the bucket takes the value in its current sample and stays within its bound; None takes any."""
    cdef PyObject* tally
    out.tally = NULL
    if bucket == <PyObject*> None:
        return True
    tally = _tally(bucket)
    if tally == NULL:
        return False
    # As Rate.record_and_throttle_ms. NaN, which a bound may be, is unusual.
    if now_ms >= (<Tally> tally).plain_until_ms or not (<Tally> tally).total + value <= (<Tally> tally).allowed:
        return False
    out.tally = tally
    out.value = value
    return True


cdef inline void _count(const Counted* counted, int64_t now_ms) noexcept:
    """As Rate.record in the current sample."""
    cdef Tally tally
    if counted.tally == NULL:
        return
    tally = <Tally> counted.tally
    tally.total += counted.value
    tally.sample += counted.value
    tally.last_ms = now_ms
