/* Open-loop load: one producer that sends by the clock, and consumers that long-poll the same partitions.
 *
 *     stream HOST PORT SCRIPT_FILE RATE SECONDS CONSUMERS SESSIONS
 *
 * SCRIPT_FILE, integers big-endian:
 *
 *     16 bytes topic id
 *     int32 number of partitions P, per partition int64 log end offset: each consumer fetches partitions 0 to P-1
 *     int32 number of active partitions A, per active partition int32 its number, int32 size, and a complete frame of
 *         Produce version 13 with one batch of one record for it
 *
 * Record number n is due n / RATE seconds after the start and goes to the active partition n % A; the producer never
 * waits for answers. A consumer sends Fetch version 17 with min_bytes 1 and max_wait_ms 500, and the next one when the
 * answer is complete. SESSIONS 0: each Fetch has all partitions. SESSIONS 1: incremental fetches (KIP-227) as Kafka's
 * Java client sends them: after the first answer only the partitions whose position changed. A broker that opens no
 * session receives all partitions each time.
 *
 * The latency of a record runs from the moment at which it was due, not from its send, to the last byte of the answer
 * that has it, once per consumer. So a broker that falls behind is charged for the delay of all later records.
 * "late" is the time from due to send, which is the generator's own part; "produce" runs from due to the answer.
 *
 * Each consumer must receive every record, in order and without a gap. The program ends after that, prints one JSON
 * object, or exits 1 with an error message.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "fields.h"
#include "figures.h"
#include "program.h"

enum {
    BATCH_HEADER = 61, LAST_OFFSET_DELTA_AT = 23,
    FETCH_HEADER = 24,      /* size, api, version, correlation id, client id "benchmark", tags */
    FETCH_FIXED = 21,       /* wait, min and max bytes, isolation, session id and epoch */
    FETCH_PARTITION = 33,
    PRODUCE_ERROR_AT = 27,  /* after size prefix's end: correlation id, tags, 1 topic, its id, 1 partition, its number */
    MAX_WAIT_MS = 500, MAX_BYTES = 50 << 20, PARTITION_MAX_BYTES = 1 << 20,
    SESSION_ID_NOT_FOUND = 70, INVALID_SESSION_EPOCH = 71,
    CONSUMERS_MAX = 4096, SILENT_SECONDS_MAX = 30, SETTLE_MS = 200
};

struct stream { /* one connection: bytes to send and the answer being received */
    int fd;
    unsigned char *out;
    size_t out_capacity, out_size, out_sent;
    unsigned char *in;
    size_t in_capacity, in_have;
};

struct consumer {
    struct stream stream;
    int64_t *positions; /* by partition */
    unsigned char *is_changed;
    uint32_t *changed, changed_count;
    int32_t session_id, session_epoch;
    uint64_t received;
};

struct active {
    uint32_t partition, size;
    const unsigned char *frame;
};

static unsigned char topic_id[16];
static uint32_t partition_count, active_count;
static int64_t *first_offsets;    /* by partition */
static int32_t *active_of;        /* by partition: its index in `actives`, or -1 */
static struct active *actives;
static struct stream producer;
static struct consumer *consumers;
static unsigned consumer_count;
static int with_sessions, poll_fd;
static double rate;
static uint64_t wanted, sent, acknowledged, fetches, session_answers, start_ns;
static uint64_t *latencies_ns, latency_count, *late_ns, *produce_ns;

static uint64_t due_ns(uint64_t number) { return start_ns + (uint64_t)((double)number * 1e9 / rate); }

/* --- connections */

static void open_stream(struct stream *s, const char *host, const char *port, void *tag, size_t out_capacity) {
    s->out_capacity = out_capacity;
    s->in_capacity = 1 << 20;
    s->out = allocate(s->out_capacity, 1);
    s->in = allocate(s->in_capacity, 1);
    s->fd = connect_to(host, port);
    struct epoll_event e = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = tag};
    if (epoll_ctl(poll_fd, EPOLL_CTL_ADD, s->fd, &e)) die("epoll");
}

/* Return whether all bytes are sent. */
static int flush(struct stream *s) {
    while (s->out_sent < s->out_size) {
        ssize_t n = send(s->fd, s->out + s->out_sent, s->out_size - s->out_sent, MSG_NOSIGNAL);
        if (n < 0) {
            if (errno == EAGAIN) return 0;
            if (errno == EINTR) continue;
            die("send");
        }
        s->out_sent += (size_t)n;
    }
    return 1;
}

/* Receive what is there; call `answered` with each complete answer, without its size. */
static void pull(struct stream *s, void *owner, void (*answered)(void *, const unsigned char *, const unsigned char *)) {
    for (;;) {
        size_t room = s->in_capacity - s->in_have;
        ssize_t n = recv(s->fd, s->in + s->in_have, room, 0);
        if (n < 0) {
            if (errno == EAGAIN) return;
            if (errno == EINTR) continue;
            die("receive");
        }
        errno = 0;
        if (n == 0) die("the broker closed a connection");
        s->in_have += (size_t)n;
        size_t at = 0;
        while (s->in_have - at >= 4) {
            size_t whole = (size_t)(uint32_t)get32(s->in + at) + 4;
            if (s->in_have - at < whole) {
                if (whole > s->in_capacity) {
                    s->in_capacity = whole;
                    s->in = realloc(s->in, whole);
                    if (!s->in) die("memory for an answer");
                }
                break;
            }
            answered(owner, s->in + at + 4, s->in + at + whole);
            at += whole;
        }
        s->in_have -= at;
        memmove(s->in, s->in + at, s->in_have);
        if ((size_t)n < room) return; /* a short read emptied the socket; more data causes a new edge */
    }
}

/* --- the producer */

static void produce_what_is_due(void) {
    while (sent < wanted && flush(&producer)) {
        uint64_t now = now_ns(), due = due_ns(sent);
        if (now < due) return;
        const struct active *a = &actives[sent % active_count];
        memcpy(producer.out, a->frame, a->size);
        producer.out_size = a->size;
        producer.out_sent = 0;
        late_ns[sent++] = now - due;
    }
    flush(&producer);
}

static void produced(void *owner, const unsigned char *at, const unsigned char *end) {
    (void)owner;
    take(&at, end, PRODUCE_ERROR_AT);
    int16_t error = take16(&at, end);
    if (error) fail("Produce: error", error);
    errno = 0;
    if (acknowledged >= sent) die("an answer without a request");
    produce_ns[acknowledged] = now_ns() - due_ns(acknowledged);
    acknowledged++;
}

/* --- a consumer */

static unsigned char *put_partition(unsigned char *at, const struct consumer *c, uint32_t partition) {
    at = put32(at, (int32_t)partition);
    at = put32(at, -1); /* current leader epoch */
    at = put64(at, c->positions[partition]);
    at = put32(at, -1); /* last fetched epoch */
    at = put64(at, -1); /* log start offset */
    at = put32(at, PARTITION_MAX_BYTES);
    *at++ = 0;
    return at;
}

static void fetch(struct consumer *c) {
    static const char client[] = "benchmark";
    int is_incremental = c->session_id != 0;
    unsigned char *at = c->stream.out + 4;
    at = put16(at, 1);
    at = put16(at, 17);
    at = put32(at, 1);
    at = put16(at, sizeof client - 1);
    memcpy(at, client, sizeof client - 1);
    at += sizeof client - 1;
    *at++ = 0;
    at = put32(at, MAX_WAIT_MS);
    at = put32(at, 1);
    at = put32(at, MAX_BYTES);
    *at++ = 0; /* read_uncommitted */
    at = put32(at, c->session_id);
    at = put32(at, is_incremental ? c->session_epoch : with_sessions ? 0 : -1);
    uint32_t count = is_incremental ? c->changed_count : partition_count;
    at = put_varint(at, count ? 2 : 1);
    if (count) {
        memcpy(at, topic_id, 16);
        at = put_varint(at + 16, count + 1);
        for (uint32_t i = 0; i < count; i++) at = put_partition(at, c, is_incremental ? c->changed[i] : i);
        *at++ = 0;
    }
    *at++ = 1; /* no forgotten topics */
    *at++ = 1; /* no rack */
    *at++ = 0;
    for (uint32_t i = 0; i < c->changed_count; i++) c->is_changed[c->changed[i]] = 0;
    c->changed_count = 0;
    c->stream.out_size = (size_t)(at - c->stream.out);
    c->stream.out_sent = 0;
    put32(c->stream.out, (int32_t)(c->stream.out_size - 4));
    fetches++;
    flush(&c->stream);
}

static void take_records(struct consumer *c, uint32_t partition, const unsigned char *at, const unsigned char *end,
                         uint64_t now) {
    while (end - at >= BATCH_HEADER) {
        const unsigned char *batch = at;
        int64_t base = take64(&at, end);
        int32_t size = take32(&at, end);
        if (size < BATCH_HEADER - 12) fail("size of a batch", size);
        if (end - at < size) return; /* the rest of this batch comes with the next answer */
        at += size;
        const unsigned char *delta = batch + LAST_OFFSET_DELTA_AT;
        int64_t last = base + take32(&delta, end);
        if (base != c->positions[partition] || active_of[partition] < 0) fail("a gap at offset", base);
        for (int64_t offset = base; offset <= last; offset++) {
            uint64_t number = (uint64_t)(offset - first_offsets[partition]) * active_count;
            number += (uint64_t)active_of[partition];
            if (number >= sent) fail("a record that was not sent: offset", offset);
            latencies_ns[latency_count++] = now - due_ns(number);
            c->received++;
        }
        c->positions[partition] = last + 1;
        if (!c->is_changed[partition]) {
            c->is_changed[partition] = 1;
            c->changed[c->changed_count++] = partition;
        }
    }
}

static void fetched(void *owner, const unsigned char *at, const unsigned char *end) {
    struct consumer *c = owner;
    uint64_t now = now_ns();
    take(&at, end, 4);
    skip_tags(&at, end);
    take32(&at, end); /* throttle time */
    int16_t error = take16(&at, end);
    int32_t session_id = take32(&at, end);
    if (error == SESSION_ID_NOT_FOUND || error == INVALID_SESSION_EPOCH) {
        c->session_id = 0;
        fetch(c);
        return;
    }
    if (error) fail("Fetch: error", error);
    if (c->session_id) c->session_epoch++;
    else c->session_epoch = 1;
    c->session_id = with_sessions ? session_id : 0;
    session_answers += c->session_id != 0;
    for (uint32_t topics = take_varint(&at, end); topics > 1; topics--) {
        take(&at, end, 16);
        for (uint32_t left = take_varint(&at, end); left > 1; left--) {
            uint32_t partition = (uint32_t)take32(&at, end);
            int16_t partition_error = take16(&at, end);
            if (partition_error) fail("Fetch: a partition's error", partition_error);
            if (partition >= partition_count) fail("Fetch: unknown partition", partition);
            take(&at, end, 24);
            for (uint32_t aborted = take_varint(&at, end); aborted > 1; aborted--) {
                take(&at, end, 16);
                skip_tags(&at, end);
            }
            take32(&at, end); /* preferred read replica */
            uint32_t size = take_varint(&at, end);
            if (size > 1) {
                const unsigned char *records = take(&at, end, size - 1);
                take_records(c, partition, records, records + size - 1, now);
            }
            skip_tags(&at, end);
        }
        skip_tags(&at, end);
    }
    fetch(c);
}

/* --- the run */

static void read_script(const char *path) {
    size_t size, largest = 0;
    const unsigned char *all = read_file(path, &size);
    const unsigned char *at = all, *end = all + size;
    memcpy(topic_id, take(&at, end, 16), 16);
    partition_count = (uint32_t)take32(&at, end);
    errno = 0;
    if (!partition_count || partition_count > 1000000) die("number of partitions");
    first_offsets = allocate(partition_count, sizeof *first_offsets);
    active_of = allocate(partition_count, sizeof *active_of);
    for (uint32_t i = 0; i < partition_count; i++) {
        first_offsets[i] = take64(&at, end);
        active_of[i] = -1;
    }
    active_count = (uint32_t)take32(&at, end);
    errno = 0;
    if (!active_count || active_count > partition_count) die("number of active partitions");
    actives = allocate(active_count, sizeof *actives);
    for (uint32_t i = 0; i < active_count; i++) {
        actives[i].partition = (uint32_t)take32(&at, end);
        actives[i].size = (uint32_t)take32(&at, end);
        actives[i].frame = take(&at, end, actives[i].size);
        if (actives[i].partition >= partition_count) fail("unknown active partition", actives[i].partition);
        active_of[actives[i].partition] = (int32_t)i;
        if (actives[i].size > largest) largest = actives[i].size;
    }
    producer.out_capacity = largest;
}

static int is_done(void) {
    if (acknowledged < wanted) return 0;
    for (unsigned i = 0; i < consumer_count; i++)
        if (consumers[i].received < wanted) return 0;
    return 1;
}

static int timer_at(uint64_t first_ns, uint64_t interval_ns) {
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    struct itimerspec when = {
        .it_value = {(time_t)(first_ns / 1000000000u), (long)(first_ns % 1000000000u)},
        .it_interval = {(time_t)(interval_ns / 1000000000u), (long)(interval_ns % 1000000000u)},
    };
    if (fd < 0 || timerfd_settime(fd, TFD_TIMER_ABSTIME, &when, NULL)) die("timer");
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = NULL};
    if (epoll_ctl(poll_fd, EPOLL_CTL_ADD, fd, &e)) die("epoll");
    return fd;
}

static void prepare(char **argv) {
    double seconds = atof(argv[5]);
    rate = atof(argv[4]);
    consumer_count = (unsigned)atoi(argv[6]);
    with_sessions = atoi(argv[7]);
    errno = 0;
    if (rate <= 0 || rate * seconds < 1 || rate * seconds > 1e8) die("RATE and SECONDS must make 1 to 100,000,000 records");
    if (consumer_count > CONSUMERS_MAX) die("CONSUMERS must be 0 to 4096");
    wanted = (uint64_t)(rate * seconds);
    read_script(argv[3]);
    latencies_ns = allocate(wanted * consumer_count, sizeof *latencies_ns);
    late_ns = allocate(wanted, sizeof *late_ns);
    produce_ns = allocate(wanted, sizeof *produce_ns);
    consumers = allocate(consumer_count, sizeof *consumers);
    poll_fd = epoll_create1(0);
    open_stream(&producer, argv[1], argv[2], &producer, producer.out_capacity);
    for (unsigned i = 0; i < consumer_count; i++) {
        struct consumer *c = &consumers[i];
        c->positions = allocate(partition_count, sizeof *c->positions);
        memcpy(c->positions, first_offsets, partition_count * sizeof *first_offsets);
        c->is_changed = allocate(partition_count, 1);
        c->changed = allocate(partition_count, sizeof *c->changed);
        size_t fetch_bytes = FETCH_HEADER + FETCH_FIXED + 32 + (size_t)partition_count * FETCH_PARTITION;
        open_stream(&c->stream, argv[1], argv[2], c, fetch_bytes);
    }
}

int main(int argc, char **argv) {
    if (argc != 8) {
        fprintf(stderr, "usage: stream HOST PORT SCRIPT_FILE RATE SECONDS CONSUMERS SESSIONS\n");
        return 2;
    }
    prepare(argv);
    start_ns = now_ns() + (uint64_t)SETTLE_MS * 1000000u; /* the first fetches are waiting by then */
    int timer = timer_at(start_ns, (uint64_t)(1e9 / rate));
    for (unsigned i = 0; i < consumer_count; i++) fetch(&consumers[i]);
    uint64_t progress_ns = start_ns;
    uint64_t progress = 0, fetches_before = 0;
    double cpu = 0;
    while (!is_done()) {
        struct epoll_event events[256];
        int n = epoll_wait(poll_fd, events, 256, 1000);
        if (n < 0 && errno != EINTR) die("epoll_wait");
        for (int i = 0; i < n; i++) {
            void *tag = events[i].data.ptr;
            if (!tag) {
                uint64_t ticks;
                if (read(timer, &ticks, sizeof ticks) < 0 && errno != EAGAIN) die("timer");
                if (!sent) cpu = own_cpu(), fetches_before = fetches;
            } else if (tag == &producer) {
                pull(&producer, NULL, produced);
            } else {
                struct consumer *c = tag;
                flush(&c->stream);
                pull(&c->stream, c, fetched);
            }
        }
        produce_what_is_due();
        uint64_t now = now_ns();
        if (acknowledged + latency_count > progress) progress = acknowledged + latency_count, progress_ns = now;
        errno = 0;
        if (now > progress_ns && now - progress_ns > SILENT_SECONDS_MAX * 1000000000ull) die("no record for 30 seconds");
    }
    double seconds = (double)(now_ns() - start_ns) / 1e9;
    cpu = own_cpu() - cpu;
    sort_ns(latencies_ns, latency_count);
    sort_ns(late_ns, sent);
    sort_ns(produce_ns, acknowledged);
    printf("{\"records\": %llu, \"received\": %llu, \"seconds\": %.6f, \"cpu_seconds\": %.3f, \"fetches\": %llu, "
           "\"session_answers\": %llu, \"p50_us\": %.1f, \"p99_us\": %.1f, \"p999_us\": %.1f, \"max_us\": %.1f, "
           "\"late_p99_us\": %.1f, \"produce_p50_us\": %.1f, \"produce_p99_us\": %.1f}\n",
           (unsigned long long)sent, (unsigned long long)latency_count, seconds, cpu,
           (unsigned long long)(fetches - fetches_before), (unsigned long long)session_answers,
           percentile_us(latencies_ns, latency_count, 0.5), percentile_us(latencies_ns, latency_count, 0.99),
           percentile_us(latencies_ns, latency_count, 0.999), percentile_us(latencies_ns, latency_count, 1.0),
           percentile_us(late_ns, sent, 0.99), percentile_us(produce_ns, acknowledged, 0.5),
           percentile_us(produce_ns, acknowledged, 0.99));
    return 0;
}
