# cython: language_level=3
"""Produce requests of Kafka's protocol and their responses, as C structures: see _produce.pyx."""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.stdlib cimport free, realloc
from libc.string cimport memset

cdef enum:
    KEPT_ITEMS = 1024


cdef struct ProduceBatch:
    # The records for one partition, and the result of their append, which the caller sets.
    int32_t partition
    uint8_t* records
    Py_ssize_t size
    int64_t base_offset
    int64_t log_append_time_ms
    int64_t log_start_offset
    int64_t record_count
    bint flush_due
    Py_ssize_t result_at  # where the response has its result; set by the encoder


cdef struct ProduceTopic:
    const uint8_t* name  # its 16 bytes of id where `by_id`
    Py_ssize_t name_size
    Py_ssize_t batch_count


cdef struct ProduceFrame:
    # Pointers are into the frame. Batches are in the order of the topics. Begin with `begin_frame`.
    int version
    int32_t correlation_id
    const uint8_t* client_id
    Py_ssize_t client_id_size  # -1: null
    const uint8_t* transactional_id
    Py_ssize_t transactional_id_size  # -1: null
    int acks
    bint by_id
    bint has_transactional  # at least one batch has the transactional attribute
    Py_ssize_t topic_count
    Py_ssize_t batch_count
    ProduceTopic* topics
    ProduceBatch* batches
    Py_ssize_t topic_capacity
    Py_ssize_t batch_capacity


cdef inline void begin_frame(ProduceFrame* frame) noexcept nogil:
    """Initialize a frame without memory."""
    memset(frame, 0, sizeof(ProduceFrame))


cdef inline void release_frame(ProduceFrame* frame) noexcept nogil:
    """Free the memory of a frame, which stays usable."""
    free(frame.topics)
    free(frame.batches)
    begin_frame(frame)


cdef inline void clear_frame(ProduceFrame* frame) noexcept nogil:
    """Remove the topics and batches of the request before."""
    if frame.batch_capacity > KEPT_ITEMS or frame.topic_capacity > KEPT_ITEMS:
        release_frame(frame)
    frame.topic_count = frame.batch_count = 0


cdef inline bint add_topic(ProduceFrame* frame) noexcept nogil:
    """Add a topic with undefined fields. Returns False without memory."""
    cdef Py_ssize_t capacity
    cdef ProduceTopic* grown
    if frame.topic_count == frame.topic_capacity:
        capacity = 2 * frame.topic_capacity + 4
        grown = <ProduceTopic*> realloc(frame.topics, capacity * sizeof(ProduceTopic))
        if grown == NULL:
            return False
        frame.topics = grown
        frame.topic_capacity = capacity
    frame.topic_count += 1
    return True


cdef inline bint add_batch(ProduceFrame* frame) noexcept nogil:
    """Add a batch with undefined fields. Returns False without memory."""
    cdef Py_ssize_t capacity
    cdef ProduceBatch* grown
    if frame.batch_count == frame.batch_capacity:
        capacity = 2 * frame.batch_capacity + 4
        grown = <ProduceBatch*> realloc(frame.batches, capacity * sizeof(ProduceBatch))
        if grown == NULL:
            return False
        frame.batches = grown
        frame.batch_capacity = capacity
    frame.batch_count += 1
    return True


cdef bint parse_frame(uint8_t* data, Py_ssize_t size, ProduceFrame* frame) noexcept nogil
"""Parse a request (without its size field) into `frame`. Returns False for one that is not plain."""

cdef Py_ssize_t response_bound(const ProduceFrame* frame) noexcept nogil
"""Return how many bytes `encode_response` needs at most."""

cdef Py_ssize_t encode_response(ProduceFrame* frame, int32_t throttle_ms, uint8_t* out) noexcept nogil
"""Write the response frame, with its size field, in which every batch was appended. Returns its size."""

cdef bytes with_failure(bytes response, int version, Py_ssize_t result_at, int code, str message)
"""Return the response with an error and no base offset instead of the append's result at `result_at`."""

cdef bytes with_throttle(bytes response, int version, int32_t throttle_ms)
"""Return the response with this throttle time."""
