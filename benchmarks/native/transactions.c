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
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

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
static uint32_t crc_table[8][256];

static void die(const char *what) {
    fprintf(stderr, "transactions: %s: %s\n", what, errno ? strerror(errno) : "refused");
    exit(1);
}

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void fill_crc_table(void) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++) crc = crc & 1 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
        crc_table[0][i] = crc;
    }
    for (int row = 1; row < 8; row++)
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t before = crc_table[row - 1][i];
            crc_table[row][i] = before >> 8 ^ crc_table[0][before & 255];
        }
}

static uint32_t crc32c(const unsigned char *at, size_t size) {
    uint32_t crc = ~0u;
    for (; size >= 8; size -= 8, at += 8) {
        uint32_t low, high;
        memcpy(&low, at, 4);
        memcpy(&high, at + 4, 4);
        low = le32toh(low) ^ crc;
        high = le32toh(high);
        crc = crc_table[7][low & 255] ^ crc_table[6][low >> 8 & 255] ^ crc_table[5][low >> 16 & 255] ^
              crc_table[4][low >> 24] ^ crc_table[3][high & 255] ^ crc_table[2][high >> 8 & 255] ^
              crc_table[1][high >> 16 & 255] ^ crc_table[0][high >> 24];
    }
    while (size--) crc = crc >> 8 ^ crc_table[0][(crc ^ *at++) & 255];
    return ~crc;
}

static uint32_t get32(const unsigned char *at) {
    uint32_t value;
    memcpy(&value, at, 4);
    return ntohl(value);
}

static int16_t get16(const unsigned char *at) { return (int16_t)(at[0] << 8 | at[1]); }

static int64_t get64(const unsigned char *at) {
    uint64_t value;
    memcpy(&value, at, 8);
    return (int64_t)be64toh(value);
}

static void put16(unsigned char *at, int16_t value) {
    at[0] = (unsigned char)((uint16_t)value >> 8);
    at[1] = (unsigned char)value;
}

static void put32(unsigned char *at, uint32_t value) {
    value = htonl(value);
    memcpy(at, &value, 4);
}

static void put64(unsigned char *at, int64_t value) {
    uint64_t big = htobe64((uint64_t)value);
    memcpy(at, &big, 8);
}

/* --- the scripts */

static uint32_t next32(const unsigned char **at, const unsigned char *end) {
    errno = 0;
    if (end - *at < 4) die("truncated script");
    uint32_t value = get32(*at);
    *at += 4;
    return value;
}

static struct frame next_frame(const unsigned char **at, const unsigned char *end, size_t size) {
    errno = 0;
    if ((size_t)(end - *at) < size) die("truncated script");
    struct frame frame = {malloc(size + 1), size};
    if (!frame.bytes) die("memory for the scripts");
    memcpy(frame.bytes, *at, size);
    *at += size;
    return frame;
}

static void read_scripts(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) die(path);
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    rewind(file);
    unsigned char *all = malloc(size + 1);
    if (!all || fread(all, 1, size, file) != size) die(path);
    fclose(file);
    const unsigned char *at = all, *end = all + size;
    while (at < end) {
        producers = realloc(producers, (producer_count + 1) * sizeof *producers);
        if (!producers) die("memory for the producers");
        struct producer *p = &producers[producer_count++];
        memset(p, 0, sizeof *p);
        uint32_t produce_size = next32(&at, end);
        p->batch_count = next32(&at, end);
        if (!p->batch_count || p->batch_count > 1000) die("number of batches");
        p->batches = calloc(p->batch_count, sizeof *p->batches);
        if (!p->batches) die("memory for the batches");
        for (uint32_t i = 0; i < p->batch_count; i++) {
            p->batches[i].at = next32(&at, end);
            p->batches[i].size = next32(&at, end);
            if (p->batches[i].size < 61 || p->batches[i].at + p->batches[i].size > produce_size) die("batch position");
        }
        p->produce = next_frame(&at, end, produce_size);
        uint32_t end_size = next32(&at, end);
        p->end_id_at = next32(&at, end);
        p->end = next_frame(&at, end, end_size);
        if (end_size && p->end_id_at + 10 > end_size) die("position of the producer id");
        const unsigned char *batch = p->produce.bytes + p->batches[0].at;
        p->id = get64(batch + PRODUCER_ID_AT);
        p->epoch = get16(batch + EPOCH_AT);
        p->sequence = (int32_t)get32(batch + SEQUENCE_AT);
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
        put32(batch + SEQUENCE_AT, (uint32_t)p->sequence);
        put32(batch + CRC_AT, crc32c(batch + ATTRIBUTES_AT, p->batches[i].size - ATTRIBUTES_AT));
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

static uint32_t varint(const unsigned char **at, const unsigned char *end) {
    uint32_t value = 0;
    for (int shift = 0; shift < 35; shift += 7) {
        errno = 0;
        if (*at >= end) die("truncated answer");
        unsigned char byte = *(*at)++;
        value |= (uint32_t)(byte & 127) << shift;
        if (!(byte & 128)) break;
    }
    return value;
}

static void skip(const unsigned char **at, const unsigned char *end, size_t size) {
    errno = 0;
    if ((size_t)(end - *at) < size) die("truncated answer");
    *at += size;
}

static void skip_text(const unsigned char **at, const unsigned char *end) {
    uint32_t size = varint(at, end);
    if (size) skip(at, end, size - 1);
}

static void skip_tags(const unsigned char **at, const unsigned char *end) {
    for (uint32_t left = varint(at, end); left; left--) {
        varint(at, end);
        skip(at, end, varint(at, end));
    }
}

/* Return the first error of a Produce answer of version 12, 0 if there is none. */
static int produce_error(const unsigned char *at, const unsigned char *end) {
    int error = 0;
    uint32_t partitions_seen = 0;
    skip(&at, end, 4);
    skip_tags(&at, end);
    for (uint32_t topics = varint(&at, end); topics > 1; topics--) {
        skip_text(&at, end);
        for (uint32_t partitions = varint(&at, end); partitions > 1; partitions--) {
            skip(&at, end, 6);
            int found = get16(at - 2);
            if (found && !error) error = found;
            skip(&at, end, 24);
            for (uint32_t errors = varint(&at, end); errors > 1; errors--) {
                skip(&at, end, 4);
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
        fprintf(stderr, "transactions: %s: error %d\n", p->step == PRODUCING ? "Produce" : "EndTxn", error);
        exit(1);
    }
    int32_t count = (int32_t)get32(p->produce.bytes + p->batches[0].at + COUNT_AT);
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
        size_t size = 4 + get32(p->answer);
        if (size > ANSWER_BYTES || p->answer_have > size) die("size of an answer");
        if (p->answer_have < size) continue;
        p->answer_have = 0;
        answered(p, p->answer + 4, p->answer + size);
    }
}

static int connect_to(const char *host, const char *port) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
    errno = 0;
    if (getaddrinfo(host, port, &hints, &found)) die("unknown host");
    int fd = socket(found->ai_family, SOCK_STREAM, 0), one = 1;
    if (fd < 0 || connect(fd, found->ai_addr, found->ai_addrlen)) die("connect");
    freeaddrinfo(found);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

static int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static double percentile_us(const uint64_t *sorted, uint64_t count, double share) {
    if (!count) return 0;
    uint64_t at = (uint64_t)(share * (double)count);
    return (double)sorted[at < count ? at : count - 1] / 1e3;
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
    commits_ns = malloc(wanted * sizeof *commits_ns);
    transactions_ns = malloc(wanted * sizeof *transactions_ns);
    if (!commits_ns || !transactions_ns) die("memory");
    memset(commits_ns, 0, wanted * sizeof *commits_ns); /* touch it now, not while measuring */
    memset(transactions_ns, 0, wanted * sizeof *transactions_ns);

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
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    double cpu = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                 (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    qsort(commits_ns, commit_count, sizeof *commits_ns, by_value);
    qsort(transactions_ns, done, sizeof *transactions_ns, by_value);
    printf("{\"transactions\": %llu, \"seconds\": %.6f, \"cpu_seconds\": %.3f, \"retries\": %llu, "
           "\"commit_p50_us\": %.1f, \"commit_p99_us\": %.1f, \"p50_us\": %.1f, \"p99_us\": %.1f}\n",
           (unsigned long long)done, seconds, cpu, (unsigned long long)retries,
           percentile_us(commits_ns, commit_count, 0.5), percentile_us(commits_ns, commit_count, 0.99),
           percentile_us(transactions_ns, done, 0.5), percentile_us(transactions_ns, done, 0.99));
    return 0;
}
