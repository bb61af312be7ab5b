# cython: language_level=3
"""A Fetch request of either dialect, parsed: the dialect's kernel fills it and encodes the response from it."""

from libc.stdint cimport int32_t, int64_t
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
    bint is_native
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
    frame.is_native = False
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
