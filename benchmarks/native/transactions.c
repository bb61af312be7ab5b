/* Load generator of transactions: each connection is one producer that writes and commits, one request after the other.
 *
 *     transactions HOST PORT SCRIPT_FILE TRANSACTIONS SECONDS
 *
 * SCRIPT_FILE contains one script per producer, integers big-endian:
 *
 *     int32 size of the Produce frame, int32 number of batches, per batch int32 position and int32 size,
 *     the frame (version 12 of Kafka's Produce, with its size prefix),
 *     int32 size of the EndTxn frame (0: an idempotent producer without transactions), int32 position of the producer id
 *     in it (the epoch follows), the frame (version 5 of EndTxn, with its size prefix)
 *
 * A transaction is one Produce and one EndTxn. Producer id, epoch and sequence of every batch are those of the producer
 * (its first batch has the initial ones); the CRC is computed again. The answer of EndTxn has the id and epoch of the
 * next transaction: a new epoch starts its sequences at 0. An answer with a retriable coordinator error is repeated
 * after 1 ms and counted; any other error ends the program.
 *
 * The program ends after TRANSACTIONS, or starts no more after SECONDS; started ones are finished. A commit's latency
 * runs from the first send of EndTxn to its answer without error, a transaction's from the first send of its Produce to
 * the same moment.
 *
 * Prints one JSON object. Exits 1 with an error message.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "crc32c.h"
#include "fields.h"
#include "figures.h"
#include "program.h"

enum {
    ANSWER_BYTES = 1 << 16,
    RETRY_NS = 1000000,
    CRC_AT = 17, ATTRIBUTES_AT = 21, PRODUCER_ID_AT = 43, EPOCH_AT = 51, SEQUENCE_AT = 53, COUNT_AT = 57,
    COORDINATOR_LOAD_IN_PROGRESS = 14, COORDINATOR_NOT_AVAILABLE = 15, NOT_COORDINATOR = 16, NOT_ENOUGH_REPLICAS = 19,
    CONCURRENT_TRANSACTIONS = 51
};

struct frame {
    unsigned char *bytes;
    size_t size;
};

struct batch {
    uint32_t at, size;
};

enum step { IDLE, PRODUCING, ENDING };

struct producer {
    int fd;
    struct frame produce, end;
    struct batch *batches;
    uint32_t batch_count, end_id_at;
    int64_t id;
    int16_t epoch;
    int32_t sequence;
    enum step step;
    const struct frame *sending;
    size_t sent;
    uint64_t began_ns, ending_ns, retry_at_ns;
    unsigned char answer[ANSWER_BYTES];
    size_t answer_have;
};

static struct producer *producers;
static unsigned producer_count;
static uint64_t wanted, begun, done, retries, deadline_ns, commit_count;
static uint64_t *commits_ns, *transactions_ns;

/* --- the scripts */

static struct frame next_frame(const unsigned char **at, const unsigned char *end, size_t size) {
    struct frame frame = {allocate(size, 1), size};
    memcpy(frame.bytes, take(at, end, size), size);
    return frame;
}

static void read_scripts(const char *path) {
    size_t size;
    unsigned char *all = read_file(path, &size);
    const unsigned char *at = all, *end = all + size;
    while (at < end) {
        producers = realloc(producers, (producer_count + 1) * sizeof *producers);
        if (!producers) die("memory for the producers");
        struct producer *p = &producers[producer_count++];
        memset(p, 0, sizeof *p);
        uint32_t produce_size = (uint32_t)take32(&at, end);
        p->batch_count = (uint32_t)take32(&at, end);
        if (!p->batch_count || p->batch_count > 1000) die("number of batches");
        p->batches = allocate(p->batch_count, sizeof *p->batches);
        for (uint32_t i = 0; i < p->batch_count; i++) {
            p->batches[i].at = (uint32_t)take32(&at, end);
            p->batches[i].size = (uint32_t)take32(&at, end);
            if (p->batches[i].size < 61 || p->batches[i].at + p->batches[i].size > produce_size) die("batch position");
        }
        p->produce = next_frame(&at, end, produce_size);
        uint32_t end_size = (uint32_t)take32(&at, end);
        p->end_id_at = (uint32_t)take32(&at, end);
        p->end = next_frame(&at, end, end_size);
        if (end_size && p->end_id_at + 10 > end_size) die("position of the producer id");
        const unsigned char *batch = p->produce.bytes + p->batches[0].at;
        p->id = get64(batch + PRODUCER_ID_AT);
        p->epoch = get16(batch + EPOCH_AT);
        p->sequence = get32(batch + SEQUENCE_AT);
    }
    free(all);
    errno = 0;
    if (!producer_count) die("no producer in the file");
}

/* --- one producer */

static void stamp(struct producer *p) {
    for (uint32_t i = 0; i < p->batch_count; i++) {
        unsigned char *batch = p->produce.bytes + p->batches[i].at;
        put64(batch + PRODUCER_ID_AT, p->id);
        put16(batch + EPOCH_AT, p->epoch);
        put32(batch + SEQUENCE_AT, p->sequence);
        put32(batch + CRC_AT, (int32_t)crc32c(batch + ATTRIBUTES_AT, p->batches[i].size - ATTRIBUTES_AT));
    }
    if (p->end.size) {
        put64(p->end.bytes + p->end_id_at, p->id);
        put16(p->end.bytes + p->end_id_at + 8, p->epoch);
    }
}

static void flush(struct producer *p) {
    while (p->sending && p->sent < p->sending->size) {
        ssize_t n = send(p->fd, p->sending->bytes + p->sent, p->sending->size - p->sent, MSG_NOSIGNAL);
        if (n < 0) {
            if (errno == EAGAIN) return;
            if (errno == EINTR) continue;
            die("send");
        }
        p->sent += (size_t)n;
    }
}

static void transmit(struct producer *p) {
    p->sending = p->step == PRODUCING ? &p->produce : &p->end;
    p->sent = 0;
    p->retry_at_ns = 0;
    flush(p);
}

static void begin(struct producer *p) {
    uint64_t now = now_ns();
    if (begun >= wanted || (deadline_ns && now >= deadline_ns)) {
        wanted = begun;
        p->step = IDLE;
        p->sending = NULL;
        return;
    }
    begun++;
    p->began_ns = now;
    p->step = PRODUCING;
    stamp(p);
    transmit(p);
}

/* Return the first error of a Produce answer of version 12, 0 if there is none. */
static int produce_error(const unsigned char *at, const unsigned char *end) {
    int error = 0;
    uint32_t partitions_seen = 0;
    take(&at, end, 4);
    skip_tags(&at, end);
    for (uint32_t topics = take_varint(&at, end); topics > 1; topics--) {
        skip_text(&at, end);
        for (uint32_t partitions = take_varint(&at, end); partitions > 1; partitions--) {
            take(&at, end, 6);
            int found = get16(at - 2);
            if (found && !error) error = found;
            take(&at, end, 24);
            for (uint32_t errors = take_varint(&at, end); errors > 1; errors--) {
                take(&at, end, 4);
                skip_text(&at, end);
                skip_tags(&at, end);
            }
            skip_text(&at, end);
            skip_tags(&at, end);
            partitions_seen++;
        }
        skip_tags(&at, end);
    }
    errno = 0;
    if (!partitions_seen) die("a Produce answer without partitions");
    return error;
}

static int is_retriable(int error) {
    return error == CONCURRENT_TRANSACTIONS || error == NOT_ENOUGH_REPLICAS || error == NOT_COORDINATOR ||
           error == COORDINATOR_LOAD_IN_PROGRESS || error == COORDINATOR_NOT_AVAILABLE;
}

static void finish(struct producer *p, uint64_t now) {
    transactions_ns[done++] = now - p->began_ns;
    begin(p);
}

static void answered(struct producer *p, const unsigned char *at, const unsigned char *end) {
    uint64_t now = now_ns();
    int error;
    if (p->step == PRODUCING) {
        error = produce_error(at, end);
    } else {
        errno = 0;
        if (end - at < 21) die("truncated answer");
        error = get16(at + 9); /* after correlation id, tags and throttle time */
    }
    if (error && is_retriable(error)) {
        retries++;
        p->retry_at_ns = now + RETRY_NS;
        return;
    }
    if (error) {
        fail(p->step == PRODUCING ? "Produce: error" : "EndTxn: error", error);
    }
    int32_t count = get32(p->produce.bytes + p->batches[0].at + COUNT_AT);
    if (p->step == PRODUCING && p->end.size) {
        p->step = ENDING;
        p->ending_ns = now_ns();
        transmit(p);
        return;
    }
    if (p->step == PRODUCING) {
        p->sequence += count;
        finish(p, now);
        return;
    }
    commits_ns[commit_count++] = now - p->ending_ns;
    int64_t id = get64(at + 11);
    int16_t epoch = get16(at + 19);
    p->sequence = id == p->id && epoch == p->epoch ? p->sequence + count : 0;
    p->id = id;
    p->epoch = epoch;
    finish(p, now);
}

static void pull(struct producer *p) {
    for (;;) {
        ssize_t n = recv(p->fd, p->answer + p->answer_have, ANSWER_BYTES - p->answer_have, 0);
        if (n < 0) {
            if (errno == EAGAIN) return;
            if (errno == EINTR) continue;
            die("receive");
        }
        errno = 0;
        if (n == 0) die("the broker closed a connection");
        p->answer_have += (size_t)n;
        if (p->answer_have < 4) continue;
        size_t size = 4 + (size_t)(uint32_t)get32(p->answer);
        if (size > ANSWER_BYTES || p->answer_have > size) die("size of an answer");
        if (p->answer_have < size) continue;
        p->answer_have = 0;
        answered(p, p->answer + 4, p->answer + size);
    }
}

int main(int argc, char **argv) {
    if (argc != 6) {
        fprintf(stderr, "usage: transactions HOST PORT SCRIPT_FILE TRANSACTIONS SECONDS\n");
        return 2;
    }
    wanted = strtoull(argv[4], NULL, 10);
    errno = 0;
    if (!wanted) die("TRANSACTIONS must be at least 1");
    fill_crc_table();
    read_scripts(argv[3]);
    commits_ns = allocate(wanted, sizeof *commits_ns);
    transactions_ns = allocate(wanted, sizeof *transactions_ns);

    int poll = epoll_create1(0);
    for (unsigned i = 0; i < producer_count; i++) {
        producers[i].fd = connect_to(argv[1], argv[2]);
        struct epoll_event e = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = &producers[i]};
        if (epoll_ctl(poll, EPOLL_CTL_ADD, producers[i].fd, &e)) die("epoll");
    }
    uint64_t start = now_ns(), progress = start;
    double seconds_max = atof(argv[5]);
    if (seconds_max > 0) deadline_ns = start + (uint64_t)(seconds_max * 1e9);
    for (unsigned i = 0; i < producer_count; i++) begin(&producers[i]);
    while (done < wanted) {
        struct epoll_event events[256];
        uint64_t now = now_ns(), before = done;
        int wait_ms = 1000;
        for (unsigned i = 0; i < producer_count; i++) {
            if (!producers[i].retry_at_ns) continue;
            if (producers[i].retry_at_ns <= now) transmit(&producers[i]);
            else wait_ms = 1;
        }
        int n = epoll_wait(poll, events, 256, wait_ms);
        if (n < 0 && errno != EINTR) die("epoll_wait");
        for (int i = 0; i < n; i++) {
            struct producer *p = events[i].data.ptr;
            if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) pull(p);
            flush(p);
        }
        if (done > before) progress = now;
        errno = 0;
        if (now - progress > 30000000000u) die("no transaction ended for 30 seconds");
    }
    double seconds = (double)(now_ns() - start) / 1e9;
    double cpu = own_cpu();
    sort_ns(commits_ns, commit_count);
    sort_ns(transactions_ns, done);
    printf("{\"transactions\": %llu, \"seconds\": %.6f, \"cpu_seconds\": %.3f, \"retries\": %llu, "
           "\"commit_p50_us\": %.1f, \"commit_p99_us\": %.1f, \"p50_us\": %.1f, \"p99_us\": %.1f}\n",
           (unsigned long long)done, seconds, cpu, (unsigned long long)retries,
           percentile_us(commits_ns, commit_count, 0.5), percentile_us(commits_ns, commit_count, 0.99),
           percentile_us(transactions_ns, done, 0.5), percentile_us(transactions_ns, done, 0.99));
    return 0;
}
