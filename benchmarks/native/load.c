/* Load generator: sends prebuilt frames over TCP and reads the answers, as fast as the broker accepts them.
 *
 *     load HOST PORT FRAMES_FILE CONNECTIONS DEPTH REQUESTS [SECONDS]
 *
 * FRAMES_FILE contains consecutive requests, each an int32 big-endian size and that many bytes. The requests are sent in
 * turn and repeatedly, over all connections together; each connection has at most DEPTH unanswered requests. The program
 * ends after REQUESTS answers, or stops sending after SECONDS.
 *
 * Only the size of an answer is read; the rest is discarded. The caller checks the broker's work (end offsets, received
 * bytes). A latency runs from the first send of a request to the last byte of its answer.
 *
 * Prints one JSON object. Exits 1 with an error message when the broker closes a connection.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "fields.h"
#include "figures.h"
#include "program.h"

enum { RECEIVE_BYTES = 1 << 20, CONNECTIONS_MAX = 4096, DEPTH_MAX = 256 };

struct frame {
    const unsigned char *bytes;
    size_t size;
};

struct connection {
    int fd;
    const unsigned char *out; /* rest of the request being sent */
    size_t out_left;
    unsigned in_flight;               /* sent or being sent, not answered */
    unsigned oldest;                  /* ring position of the oldest unanswered request's time */
    uint64_t started_ns[DEPTH_MAX];
    unsigned char size_bytes[4]; /* the answer's size, as far as received */
    unsigned size_have;
    uint64_t answer_left;
};

static struct frame *frames;
static size_t frame_count, next_frame;
static uint64_t requests_max, requests_sent, requests_answered, deadline_ns;
static uint64_t sent_bytes, received_bytes;
static uint64_t *latencies_ns;
static unsigned depth;
static unsigned char receive_buffer[RECEIVE_BYTES];

static void read_frames(const char *path) {
    size_t size;
    const unsigned char *all = read_file(path, &size);
    for (size_t at = 0; at + 4 <= size;) {
        size_t whole = (size_t)(uint32_t)get32(all + at) + 4;
        if (at + whole > size) break;
        if ((frame_count & (frame_count - 1)) == 0) /* at each power of two: double the capacity */
            frames = realloc(frames, (frame_count ? frame_count * 2 : 1) * sizeof *frames);
        if (!frames) die("memory for the frames");
        frames[frame_count++] = (struct frame){all + at, whole};
        at += whole;
    }
    errno = 0;
    if (!frame_count) die("no complete frame in the file");
}

static void push(struct connection *c) {
    for (;;) {
        if (!c->out_left) {
            if (c->in_flight >= depth || requests_sent >= requests_max) return;
            uint64_t now = now_ns();
            if (deadline_ns && now >= deadline_ns) {
                requests_max = requests_sent;
                return;
            }
            const struct frame *f = &frames[next_frame];
            next_frame = next_frame + 1 == frame_count ? 0 : next_frame + 1;
            c->out = f->bytes;
            c->out_left = f->size;
            c->started_ns[(c->oldest + c->in_flight) % DEPTH_MAX] = now;
            c->in_flight++;
            requests_sent++;
        }
        ssize_t n = send(c->fd, c->out, c->out_left, MSG_NOSIGNAL);
        if (n < 0) {
            if (errno == EAGAIN) return;
            if (errno == EINTR) continue;
            die("send");
        }
        c->out += n;
        c->out_left -= (size_t)n;
        sent_bytes += (uint64_t)n;
    }
}

static void answered(struct connection *c) {
    errno = 0;
    if (!c->in_flight) die("an answer without a request");
    latencies_ns[requests_answered++] = now_ns() - c->started_ns[c->oldest];
    c->oldest = (c->oldest + 1) % DEPTH_MAX;
    c->in_flight--;
}

static void pull(struct connection *c) {
    for (;;) {
        ssize_t n = recv(c->fd, receive_buffer, RECEIVE_BYTES, 0);
        if (n < 0) {
            if (errno == EAGAIN) return;
            if (errno == EINTR) continue;
            die("receive");
        }
        errno = 0;
        if (n == 0) die("the broker closed a connection");
        received_bytes += (uint64_t)n;
        for (ssize_t at = 0; at < n;) {
            if (c->size_have < 4) {
                c->size_bytes[c->size_have++] = receive_buffer[at++];
                if (c->size_have < 4) continue;
                c->answer_left = (uint32_t)get32(c->size_bytes);
            } else {
                uint64_t here = (uint64_t)(n - at) < c->answer_left ? (uint64_t)(n - at) : c->answer_left;
                at += (ssize_t)here;
                c->answer_left -= here;
            }
            if (c->size_have == 4 && !c->answer_left) {
                c->size_have = 0;
                answered(c);
            }
        }
        if (n < RECEIVE_BYTES) return; /* a short read emptied the socket; more data causes a new edge */
    }
}

int main(int argc, char **argv) {
    if (argc < 7) {
        fprintf(stderr, "usage: load HOST PORT FRAMES_FILE CONNECTIONS DEPTH REQUESTS [SECONDS]\n");
        return 2;
    }
    unsigned connection_count = (unsigned)atoi(argv[4]);
    depth = (unsigned)atoi(argv[5]);
    requests_max = strtoull(argv[6], NULL, 10);
    errno = 0;
    if (!connection_count || connection_count > CONNECTIONS_MAX) die("CONNECTIONS must be 1 to 4096");
    if (!depth || depth > DEPTH_MAX) die("DEPTH must be 1 to 256");
    if (!requests_max) die("REQUESTS must be at least 1");
    read_frames(argv[3]);
    latencies_ns = allocate(requests_max, sizeof *latencies_ns);
    struct connection *connections = allocate(connection_count, sizeof *connections);

    int poll = epoll_create1(0);
    for (unsigned i = 0; i < connection_count; i++) {
        connections[i].fd = connect_to(argv[1], argv[2]);
        struct epoll_event e = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = &connections[i]};
        if (epoll_ctl(poll, EPOLL_CTL_ADD, connections[i].fd, &e)) die("epoll");
    }
    uint64_t start = now_ns();
    if (argc > 7) deadline_ns = start + (uint64_t)(atof(argv[7]) * 1e9);
    for (unsigned i = 0; i < connection_count; i++) push(&connections[i]);
    while (requests_answered < requests_max) {
        struct epoll_event events[256];
        int n = epoll_wait(poll, events, 256, 30000);
        if (n < 0 && errno != EINTR) die("epoll_wait");
        errno = 0;
        if (n == 0) die("no answer for 30 seconds");
        for (int i = 0; i < n; i++) {
            struct connection *c = events[i].data.ptr;
            if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)) pull(c);
            push(c);
        }
    }
    double seconds = (double)(now_ns() - start) / 1e9;
    double cpu = own_cpu();
    sort_ns(latencies_ns, requests_answered);
    printf("{\"requests\": %llu, \"seconds\": %.6f, \"sent_bytes\": %llu, \"received_bytes\": %llu, \"cpu_seconds\": %.3f, "
           "\"p50_us\": %.1f, \"p99_us\": %.1f, \"p999_us\": %.1f, \"max_us\": %.1f}\n",
           (unsigned long long)requests_answered, seconds, (unsigned long long)sent_bytes,
           (unsigned long long)received_bytes, cpu, percentile_us(latencies_ns, requests_answered, 0.5), percentile_us(latencies_ns, requests_answered, 0.99), percentile_us(latencies_ns, requests_answered, 0.999),
           percentile_us(latencies_ns, requests_answered, 1.0));
    return 0;
}
