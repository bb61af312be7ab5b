/* Big-endian fields of scripts, requests and answers. Every `take` is bounded by `end`. */
#ifndef FIELDS_H
#define FIELDS_H

#include <arpa/inet.h>
#include <endian.h>
#include <stdint.h>

#include "program.h"

static inline int16_t get16(const unsigned char *at) { return (int16_t)(at[0] << 8 | at[1]); }

static inline int32_t get32(const unsigned char *at) {
    uint32_t value;
    memcpy(&value, at, 4);
    return (int32_t)ntohl(value);
}

static inline int64_t get64(const unsigned char *at) {
    uint64_t value;
    memcpy(&value, at, 8);
    return (int64_t)be64toh(value);
}

static inline const unsigned char *take(const unsigned char **at, const unsigned char *end, size_t size) {
    errno = 0;
    if ((size_t)(end - *at) < size) die("truncated script or answer");
    const unsigned char *here = *at;
    *at += size;
    return here;
}

static inline int16_t take16(const unsigned char **at, const unsigned char *end) { return get16(take(at, end, 2)); }

static inline int32_t take32(const unsigned char **at, const unsigned char *end) { return get32(take(at, end, 4)); }

static inline int64_t take64(const unsigned char **at, const unsigned char *end) { return get64(take(at, end, 8)); }

static inline uint32_t take_varint(const unsigned char **at, const unsigned char *end) {
    uint32_t value = 0;
    for (int shift = 0; shift < 35; shift += 7) {
        unsigned char byte = *take(at, end, 1);
        value |= (uint32_t)(byte & 127) << shift;
        if (!(byte & 128)) break;
    }
    return value;
}

/* Skip a compact string, which may be null. */
static inline void skip_text(const unsigned char **at, const unsigned char *end) {
    uint32_t size = take_varint(at, end);
    if (size) take(at, end, size - 1);
}

static inline void skip_tags(const unsigned char **at, const unsigned char *end) {
    for (uint32_t left = take_varint(at, end); left; left--) {
        take_varint(at, end);
        take(at, end, take_varint(at, end));
    }
}

static inline unsigned char *put16(unsigned char *at, int16_t value) {
    at[0] = (unsigned char)((uint16_t)value >> 8);
    at[1] = (unsigned char)value;
    return at + 2;
}

static inline unsigned char *put32(unsigned char *at, int32_t value) {
    uint32_t big = htonl((uint32_t)value);
    memcpy(at, &big, 4);
    return at + 4;
}

static inline unsigned char *put64(unsigned char *at, int64_t value) {
    uint64_t big = htobe64((uint64_t)value);
    memcpy(at, &big, 8);
    return at + 8;
}

static inline unsigned char *put_varint(unsigned char *at, uint32_t value) {
    for (; value > 127; value >>= 7) *at++ = (unsigned char)(value | 128);
    *at++ = (unsigned char)value;
    return at;
}

#endif
