/* What every program here needs: an end with a message, memory, a script's bytes, a connection. */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* End with a message. Callers set errno to 0 when no system call has failed. */
static inline _Noreturn void die(const char *what) {
    fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, errno ? strerror(errno) : "refused");
    exit(1);
}

/* End with a message that has a number, such as an error code. */
static inline _Noreturn void fail(const char *what, long long number) {
    fprintf(stderr, "%s: %s %lld\n", program_invocation_short_name, what, number);
    exit(1);
}

/* Return zeroed memory whose pages exist: their first use must not be part of the measurement. */
static inline void *allocate(size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size);
    if (!memory) die("memory");
    memset(memory, 0, count * size);
    return memory;
}

static inline unsigned char *read_file(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    if (!file) die(path);
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    unsigned char *bytes = allocate(*size, 1);
    if (fread(bytes, 1, *size, file) != *size) die(path);
    fclose(file);
    return bytes;
}

/* Connect, then make the socket non-blocking. */
static inline int connect_to(const char *host, const char *port) {
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

#endif
