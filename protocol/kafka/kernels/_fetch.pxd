# cython: language_level=3
"""Fetch requests and responses of Kafka's protocol as C structures: see _fetch.pyx."""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free, realloc

cdef enum:
    FRAME_MAX = 1048576  # larger requests are read in Python
    KEPT_ITEMS = 1024  # of an earlier request: a request that waits keeps the memory


cdef struct FetchTopic:
    # `at` and `size`: its id or its name in the frame. Its entries are `count` from `first` on.
    int32_t at
    int32_t size
    int32_t first
    int32_t count


cdef struct FetchEntry:
    int64_t offset
    int32_t number
    int32_t leader_epoch
    int32_t last_fetched_epoch  # -1: none
    int32_t max_bytes


cdef struct FetchFrame:
    bint by_id  # topics are named by their ids
    int32_t version
    int32_t correlation_id
    int32_t client_at
    int32_t client_size  # -1: null
    int32_t max_wait_ms
    int32_t min_bytes
    int32_t max_bytes
    bint committed_only
    int32_t session_id
    int32_t session_epoch
    int32_t topic_count
    int32_t entry_count
    FetchTopic* topics
    FetchEntry* entries
    int32_t topic_capacity
    int32_t entry_capacity


cdef struct FetchedPart:
    # The result of an entry; `records_at`, their place in the response, is set by the encoder.
    int64_t high_watermark
    int64_t last_stable_offset
    int64_t log_start_offset
    int64_t records_size
    int64_t records_at


cdef inline void begin_frame(FetchFrame* frame) noexcept nogil:
    """Initialize a frame without memory."""
    frame.topics = NULL
    frame.entries = NULL
    frame.topic_capacity = 0
    frame.entry_capacity = 0


cdef inline void release_frame(FetchFrame* frame) noexcept nogil:
    """Free the memory of a frame, which can be used again."""
    free(frame.topics)
    free(frame.entries)
    begin_frame(frame)


cdef inline void clear_frame(FetchFrame* frame) noexcept nogil:
    """Remove the topics and entries of the request before."""
    if frame.topic_capacity > KEPT_ITEMS or frame.entry_capacity > KEPT_ITEMS:
        release_frame(frame)
    frame.topic_count = frame.entry_count = 0


cdef inline int reserve_topics(FetchFrame* frame, int64_t count) except -1:
    cdef FetchTopic* grown
    if count > frame.topic_capacity:
        grown = <FetchTopic*> realloc(frame.topics, count * sizeof(FetchTopic))
        if grown == NULL:
            raise MemoryError
        frame.topics = grown
        frame.topic_capacity = <int32_t> count
    return 0


cdef inline int reserve_entries(FetchFrame* frame, int64_t count) except -1:
    cdef FetchEntry* grown
    cdef int64_t capacity
    if count > frame.entry_capacity:
        capacity = max(count, min(2 * <int64_t> frame.entry_capacity, <int64_t> FRAME_MAX))
        grown = <FetchEntry*> realloc(frame.entries, capacity * sizeof(FetchEntry))
        if grown == NULL:
            raise MemoryError
        frame.entries = grown
        frame.entry_capacity = <int32_t> capacity
    return 0


cdef bint parse_frame(const uint8_t* data, Py_ssize_t size, FetchFrame* frame) except -1
cdef int64_t response_bound(const FetchFrame* frame) noexcept nogil
cdef int64_t encode_response(
    const FetchFrame* frame, const uint8_t* data, FetchedPart* parts, bint with_records, uint8_t* out
) noexcept nogil
