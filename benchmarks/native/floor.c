/* The floor under a broker: a server in C that moves the same bytes with the same system calls and does nothing else.
 *
 *     floor produce ANSWER_BYTES HEAD_BYTES FILE   per frame: pwrite of what follows its first HEAD_BYTES at the end of
 *                                                  FILE, which is created, then send of an answer of ANSWER_BYTES
 *     floor fetch HEAD_BYTES RECORD_BYTES FILE     per frame: send of HEAD_BYTES, then sendfile of the next RECORD_BYTES
 *                                                  of FILE, from its beginning again after its end
 *
 * A frame is an int32 big-endian size and that many bytes. It is received whole before it is written, as a broker must
 * to check it. Nothing is parsed, checked, indexed or looked up. Prints {"port": N} and runs until it is killed.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <unistd.h>

#include "program.h"

enum { FIRST_BUFFER = 256 << 10, CONNECTIONS_MAX = 65536, PRODUCE, FETCH };

struct connection {
    unsigned char *buffer;
    size_t capacity, have;
};

static struct connection connections[CONNECTIONS_MAX]; /* by descriptor */
static int kind, file;
static size_t head_bytes, body_bytes; /* body: of an answer (produce), of the records (fetch) */
static off_t file_end, file_at;
static unsigned char *answer;

static void await_room(int fd) {
    struct pollfd waiting = {.fd = fd, .events = POLLOUT};
    if (poll(&waiting, 1, -1) < 0 && errno != EINTR) die("poll");
}

/* Return 0 when the peer is gone. */
static int send_all(int fd, const unsigned char *bytes, size_t size, int flags) {
    while (size) {
        ssize_t n = send(fd, bytes, size, MSG_NOSIGNAL | flags);
        if (n < 0 && errno == EAGAIN) await_room(fd);
        else if (n < 0) return 0;
        else bytes += n, size -= (size_t)n;
    }
    return 1;
}

static int serve_produce(int fd, const unsigned char *frame, size_t size) {
    errno = 0;
    if (size < head_bytes) die("a frame shorter than its head");
    if (pwrite(file, frame + head_bytes, size - head_bytes, file_end) != (ssize_t)(size - head_bytes)) die("pwrite");
    file_end += (off_t)(size - head_bytes);
    return send_all(fd, answer, body_bytes, 0);
}

static int serve_fetch(int fd) {
    if (file_at + (off_t)body_bytes > file_end) file_at = 0;
    if (!send_all(fd, answer, head_bytes, MSG_MORE)) return 0;
    for (size_t left = body_bytes; left;) {
        ssize_t n = sendfile(fd, file, &file_at, left);
        if (n < 0 && errno == EAGAIN) await_room(fd);
        else if (n <= 0) return 0;
        else left -= (size_t)n;
    }
    return 1;
}

/* Return 0 when the peer is gone. */
static int receive(int fd, struct connection *c) {
    ssize_t n = recv(fd, c->buffer + c->have, c->capacity - c->have, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return 1;
    if (n <= 0) return 0;
    c->have += (size_t)n;
    size_t at = 0;
    while (c->have - at >= 4) {
        uint32_t size;
        memcpy(&size, c->buffer + at, 4);
        size_t whole = (size_t)ntohl(size) + 4;
        if (c->have - at < whole) {
            if (whole > c->capacity) {
                c->buffer = realloc(c->buffer, whole);
                if (!c->buffer) die("memory for a frame");
                c->capacity = whole;
            }
            break;
        }
        if (!(kind == PRODUCE ? serve_produce(fd, c->buffer + at, whole) : serve_fetch(fd))) return 0;
        at += whole;
    }
    c->have -= at;
    if (at) memmove(c->buffer, c->buffer + at, c->have);
    return 1;
}

static void open_connection(int listener, int poll_fd) {
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK), one = 1;
    if (fd < 0 || fd >= CONNECTIONS_MAX) die("accept");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct connection *c = &connections[fd];
    if (!c->buffer) c->buffer = malloc(c->capacity = FIRST_BUFFER);
    if (!c->buffer) die("memory for a connection");
    c->have = 0;
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    if (epoll_ctl(poll_fd, EPOLL_CTL_ADD, fd, &event)) die("epoll");
}

static void serve(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), poll_fd = epoll_create1(0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, size) || listen(listener, 1024) ||
        getsockname(listener, (struct sockaddr *)&address, &size))
        die("listen");
    struct epoll_event event = {.events = EPOLLIN, .data.fd = listener}, events[256];
    if (epoll_ctl(poll_fd, EPOLL_CTL_ADD, listener, &event)) die("epoll");
    printf("{\"port\": %d}\n", ntohs(address.sin_port));
    fflush(stdout);
    for (;;) {
        int n = epoll_wait(poll_fd, events, 256, -1);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            if (fd == listener) open_connection(listener, poll_fd);
            else if (!receive(fd, &connections[fd])) close(fd);
        }
    }
}

int main(int argc, char **argv) {
    const char *what = argc == 5 ? argv[1] : "";
    kind = !strcmp(what, "produce") ? PRODUCE : !strcmp(what, "fetch") ? FETCH : 0;
    if (!kind) {
        fprintf(stderr, "usage: see the top of floor.c\n");
        return 2;
    }
    size_t first = strtoull(argv[2], NULL, 10), second = strtoull(argv[3], NULL, 10);
    body_bytes = kind == PRODUCE ? first : second;
    head_bytes = kind == PRODUCE ? second : first;
    size_t answer_bytes = kind == PRODUCE ? body_bytes : head_bytes;
    errno = 0;
    if (answer_bytes < 4) die("an answer has at least 4 bytes");
    answer = calloc(1, answer_bytes);
    if (!answer) die("memory");
    uint32_t size = htonl((uint32_t)(kind == PRODUCE ? body_bytes - 4 : head_bytes + body_bytes - 4));
    memcpy(answer, &size, 4);
    file = open(argv[4], kind == PRODUCE ? O_CREAT | O_TRUNC | O_RDWR : O_RDONLY, 0600);
    if (file < 0) die(argv[4]);
    if (kind == FETCH) file_end = lseek(file, 0, SEEK_END);
    errno = 0;
    if (kind == FETCH && file_end < (off_t)body_bytes) die("FILE is smaller than RECORD_BYTES");
    serve();
    return 0;
}
