/* Upper limits of this machine with the same bytes, for comparison with the broker's figures.
 *
 *     limits memcpy TOTAL_BYTES              copy a 1 MiB block within memory, out of a 64 MiB ring
 *     limits write TOTAL_BYTES FILE          write 1 MiB blocks to a new file (page cache; no fsync)
 *     limits tcp TOTAL_BYTES                 send 1 MiB blocks to another process over loopback TCP
 *     limits sendfile TOTAL_BYTES FILE       the same, with sendfile from a file in the page cache
 *     limits sync ROUNDS REQUEST_BYTES FILE  append and fdatasync, one after the other: latencies
 *     limits server ANSWER_BYTES             answer every frame (int32 size and that many bytes) with ANSWER_BYTES: the
 *                                            cost of the sockets alone; prints its port, runs until killed
 *
 * Prints one JSON object: seconds, bytes, and the CPU seconds of the side that plays the broker (write: the writer;
 * tcp: the receiver, as in a produce; sendfile: the sender, as in a fetch).
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "figures.h"
#include "program.h"

enum { BLOCK = 1 << 20, RING_BLOCKS = 64 };

static unsigned char *block_of(size_t size) {
    unsigned char *block = malloc(size);
    if (!block) die("memory");
    for (size_t i = 0; i < size; i++) block[i] = (unsigned char)(i * 31 >> 3);
    return block;
}

static void report(uint64_t bytes, uint64_t start_ns, double cpu) {
    printf("{\"bytes\": %llu, \"seconds\": %.6f, \"cpu_seconds\": %.3f}\n", (unsigned long long)bytes,
           (double)(now_ns() - start_ns) / 1e9, cpu);
}

static void report_latencies(uint64_t *ns, uint64_t rounds, uint64_t start_ns, double cpu) {
    double seconds = (double)(now_ns() - start_ns) / 1e9;
    sort_ns(ns, rounds);
    printf("{\"requests\": %llu, \"seconds\": %.6f, \"cpu_seconds\": %.3f, \"p50_us\": %.1f, \"p99_us\": %.1f}\n",
           (unsigned long long)rounds, seconds, cpu, (double)ns[rounds / 2] / 1e3, (double)ns[rounds * 99 / 100] / 1e3);
}

static void measure_memcpy(uint64_t total) {
    unsigned char *from = block_of((size_t)BLOCK * RING_BLOCKS), *to = block_of((size_t)BLOCK * RING_BLOCKS);
    double cpu = own_cpu();
    uint64_t start = now_ns(), done = 0;
    for (unsigned i = 0; done < total; done += BLOCK, i = (i + 1) % RING_BLOCKS) {
        memcpy(to + (size_t)i * BLOCK, from + (size_t)i * BLOCK, BLOCK);
        __asm__ volatile("" : : "r"(to) : "memory");
    }
    report(done, start, own_cpu() - cpu);
}

static void measure_write(uint64_t total, const char *path) {
    unsigned char *block = block_of(BLOCK);
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    if (fd < 0) die(path);
    double cpu = own_cpu();
    uint64_t start = now_ns(), done = 0;
    for (; done < total; done += BLOCK)
        if (write(fd, block, BLOCK) != BLOCK) die("write");
    report(done, start, own_cpu() - cpu);
    close(fd);
}

/* Create a connected loopback pair: the parent gets one end, the forked child (return value 0) the other. */
static pid_t fork_with_tcp(int *fd) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, size) || listen(listener, 1) ||
        getsockname(listener, (struct sockaddr *)&address, &size))
        die("listen");
    pid_t child = fork();
    if (child < 0) die("fork");
    if (child == 0) {
        *fd = socket(AF_INET, SOCK_STREAM, 0);
        if (*fd < 0 || connect(*fd, (struct sockaddr *)&address, size)) die("connect");
    } else {
        *fd = accept(listener, NULL, NULL);
        if (*fd < 0) die("accept");
    }
    close(listener);
    setsockopt(*fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return child;
}

static double child_cpu(pid_t child) {
    struct rusage usage;
    int status;
    if (wait4(child, &status, 0, &usage) != child || status) die("the other process");
    return cpu_of(&usage);
}

static void send_blocks(int fd, uint64_t total) {
    unsigned char *block = block_of(BLOCK);
    for (uint64_t done = 0; done < total;) {
        ssize_t n = send(fd, block, BLOCK, MSG_NOSIGNAL);
        if (n < 0) die("send");
        done += (uint64_t)n;
    }
}

static uint64_t receive_all(int fd) {
    unsigned char *block = block_of(BLOCK);
    uint64_t done = 0;
    for (;;) {
        ssize_t n = recv(fd, block, BLOCK, 0);
        if (n < 0) die("receive");
        if (n == 0) return done;
        done += (uint64_t)n;
    }
}

static void measure_tcp(uint64_t total) {
    int fd;
    if (fork_with_tcp(&fd) == 0) {
        send_blocks(fd, total);
        _exit(0);
    }
    double cpu = own_cpu();
    uint64_t start = now_ns(), done = receive_all(fd);
    report(done, start, own_cpu() - cpu);
}

static void measure_sendfile(uint64_t total, const char *path) {
    int fd, file = open(path, O_RDONLY);
    if (file < 0) die(path);
    off_t size = lseek(file, 0, SEEK_END), at = 0;
    if (size < BLOCK) die("the file is smaller than 1 MiB");
    pid_t child = fork_with_tcp(&fd);
    if (child == 0) {
        receive_all(fd);
        _exit(0);
    }
    double cpu = own_cpu();
    uint64_t start = now_ns(), done = 0;
    while (done < total) {
        if (at >= size) at = 0;
        ssize_t n = sendfile(fd, file, &at, BLOCK);
        if (n <= 0) die("sendfile");
        done += (uint64_t)n;
    }
    close(fd);
    cpu = own_cpu() - cpu;
    child_cpu(child);
    report(done, start, cpu);
}

static void measure_sync(uint64_t rounds, size_t request_bytes, const char *path) {
    unsigned char *block = block_of(request_bytes);
    uint64_t *ns = calloc(rounds, sizeof *ns);
    if (!ns) die("memory");
    int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600);
    if (fd < 0) die(path);
    uint64_t start = now_ns();
    for (uint64_t i = 0; i < rounds; i++) {
        uint64_t begun = now_ns();
        if (write(fd, block, request_bytes) != (ssize_t)request_bytes || fdatasync(fd)) die("write");
        ns[i] = now_ns() - begun;
    }
    report_latencies(ns, rounds, start, own_cpu());
}

/* Read once, then write one answer per complete request in the data; a partial frame waits for the rest. */
static void serve(size_t answer_bytes) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), poll = epoll_create1(0), one = 1;
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, size) || listen(listener, 128) ||
        getsockname(listener, (struct sockaddr *)&address, &size))
        die("listen");
    printf("{\"port\": %d}\n", ntohs(address.sin_port));
    fflush(stdout);
    static uint64_t left[65536]; /* by descriptor: missing bytes of the current frame */
    unsigned char *in = block_of(BLOCK), *out = block_of((size_t)BLOCK);
    uint32_t answer_size = htonl((uint32_t)answer_bytes - 4);
    for (size_t at = 0; at + answer_bytes <= BLOCK; at += answer_bytes) memcpy(out + at, &answer_size, 4);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[64];
    if (epoll_ctl(poll, EPOLL_CTL_ADD, listener, &event)) die("epoll");
    for (;;) {
        int n = epoll_wait(poll, events, 64, -1);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            if (fd == listener) {
                event.data.fd = accept(listener, NULL, NULL);
                if (event.data.fd < 0 || event.data.fd > 65535) die("accept");
                setsockopt(event.data.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                left[event.data.fd] = 0;
                if (epoll_ctl(poll, EPOLL_CTL_ADD, event.data.fd, &event)) die("epoll");
                continue;
            }
            ssize_t got = recv(fd, in, BLOCK, 0);
            if (got <= 0) {
                close(fd);
                continue;
            }
            size_t answers = 0;
            for (ssize_t at = 0; at < got;) {
                if (!left[fd]) {
                    uint32_t frame;
                    if (got - at < 4) die("a frame's size arrived in two parts, which this server does not support");
                    memcpy(&frame, in + at, 4);
                    left[fd] = (uint64_t)ntohl(frame) + 4;
                }
                uint64_t here = (uint64_t)(got - at) < left[fd] ? (uint64_t)(got - at) : left[fd];
                at += (ssize_t)here;
                left[fd] -= here;
                answers += !left[fd];
            }
            if (answers && send(fd, out, answers * answer_bytes, MSG_NOSIGNAL) < 0) close(fd);
        }
    }
}

int main(int argc, char **argv) {
    const char *what = argc > 2 ? argv[1] : "";
    uint64_t amount = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    if (!strcmp(what, "memcpy")) measure_memcpy(amount);
    else if (!strcmp(what, "write") && argc > 3) measure_write(amount, argv[3]);
    else if (!strcmp(what, "tcp")) measure_tcp(amount);
    else if (!strcmp(what, "sendfile") && argc > 3) measure_sendfile(amount, argv[3]);
    else if (!strcmp(what, "sync") && argc > 4) measure_sync(amount, strtoull(argv[3], NULL, 10), argv[4]);
    else if (!strcmp(what, "server")) serve(amount);
    else {
        fprintf(stderr, "usage: see the top of limits.c\n");
        return 2;
    }
    return 0;
}
