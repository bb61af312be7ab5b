/* Clock, CPU time and percentiles. */
#ifndef FIGURES_H
#define FIGURES_H

#include <stdint.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

static inline uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline double cpu_of(const struct rusage *usage) {
    return (double)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) +
           (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1e6;
}

/* Return this process's CPU seconds. */
static inline double own_cpu(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return cpu_of(&usage);
}

static inline int by_value(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static inline void sort_ns(uint64_t *values, uint64_t count) { qsort(values, count, sizeof *values, by_value); }

static inline double percentile_us(const uint64_t *sorted, uint64_t count, double share) {
    if (!count) return 0;
    uint64_t at = (uint64_t)(share * (double)count);
    return (double)sorted[at < count ? at : count - 1] / 1e3;
}

#endif
