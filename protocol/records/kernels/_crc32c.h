/* CRC-32C (Castagnoli) of a buffer, for the kernels that check batches without the GIL.
 *
 * With SSE4.2, asked for when the module is loaded, three streams of the crc32 instruction run side by side (its latency
 * is three cycles, its throughput one) and are joined by tables that shift a checksum over a block of zeros. Elsewhere
 * eight bytes a step by tables. Both give the checksum of RFC 3720: start and end inverted, reflected. Tables are made by
 * crc32c_prepare(), which must have run before crc32c_of(); it may run again. Source of the method: M. Adler, "Fast
 * CRC-32C", and Intel's "Fast CRC Computation for iSCSI Polynomial"; written anew.
 */
#ifndef BARNABAS_CRC32C_H
#define BARNABAS_CRC32C_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define BARNABAS_CRC32C_SSE 1
#include <nmmintrin.h>
#else
#define BARNABAS_CRC32C_SSE 0
#endif

#define CRC32C_POLYNOMIAL 0x82F63B78u
#define CRC32C_LONG 4096  /* bytes per stream and round; a multiple of 8 */
#define CRC32C_SHORT 256

static uint32_t crc32c_table[8][256];
static uint32_t crc32c_shift_long[4][256];
static uint32_t crc32c_shift_short[4][256];
static int crc32c_has_instruction;

/* The state after one more byte. */
static inline uint32_t crc32c_byte(uint32_t state, uint8_t byte) {
    return (state >> 8) ^ crc32c_table[0][(state ^ byte) & 0xFF];
}

static inline uint32_t crc32c_shifted(uint32_t table[4][256], uint32_t state) {
    return table[0][state & 0xFF] ^ table[1][state >> 8 & 0xFF] ^ table[2][state >> 16 & 0xFF] ^ table[3][state >> 24];
}

/* Tables of what `size` bytes of zeros make of each byte of a state: the state is linear in its bits. */
static void crc32c_prepare_shift(uint32_t table[4][256], size_t size) {
    uint32_t bits[32];
    for (int bit = 0; bit < 32; bit++) {
        uint32_t state = (uint32_t) 1 << bit;
        for (size_t left = size; left; left--)
            state = crc32c_byte(state, 0);
        bits[bit] = state;
    }
    for (int byte = 0; byte < 4; byte++)
        for (int value = 0; value < 256; value++) {
            uint32_t state = 0;
            for (int bit = 0; bit < 8; bit++)
                if (value >> bit & 1)
                    state ^= bits[byte * 8 + bit];
            table[byte][value] = state;
        }
}

static void crc32c_prepare(void) {
    for (int value = 0; value < 256; value++) {
        uint32_t state = (uint32_t) value;
        for (int bit = 0; bit < 8; bit++)
            state = state >> 1 ^ (state & 1 ? CRC32C_POLYNOMIAL : 0);
        crc32c_table[0][value] = state;
    }
    for (int value = 0; value < 256; value++)
        for (int step = 1; step < 8; step++) {
            uint32_t before = crc32c_table[step - 1][value];
            crc32c_table[step][value] = before >> 8 ^ crc32c_table[0][before & 0xFF];
        }
    crc32c_prepare_shift(crc32c_shift_long, CRC32C_LONG);
    crc32c_prepare_shift(crc32c_shift_short, CRC32C_SHORT);
#if BARNABAS_CRC32C_SSE
    __builtin_cpu_init();
    crc32c_has_instruction = __builtin_cpu_supports("sse4.2") ? 1 : 0;
#endif
}

/* Eight bytes a step: each table is that of a byte which so many bytes follow. Any machine, any byte order. */
static uint32_t crc32c_by_tables(const uint8_t *data, size_t size) {
    uint32_t state = 0xFFFFFFFFu;
    for (; size >= 8; size -= 8, data += 8)
        state = crc32c_table[7][data[0] ^ (state & 0xFF)] ^ crc32c_table[6][data[1] ^ (state >> 8 & 0xFF)]
              ^ crc32c_table[5][data[2] ^ (state >> 16 & 0xFF)] ^ crc32c_table[4][data[3] ^ (state >> 24)]
              ^ crc32c_table[3][data[4]] ^ crc32c_table[2][data[5]] ^ crc32c_table[1][data[6]]
              ^ crc32c_table[0][data[7]];
    for (; size; size--)
        state = crc32c_byte(state, *data++);
    return ~state;
}

#if BARNABAS_CRC32C_SSE
static inline uint64_t crc32c_load(const uint8_t *data) {
    uint64_t word;
    memcpy(&word, data, 8);
    return word;
}

/* As many rounds of three blocks as fit. */
__attribute__((target("sse4.2")))
static inline const uint8_t *crc32c_rounds(
    uint64_t *state, const uint8_t *data, size_t *size, size_t block, uint32_t table[4][256]
) {
    uint64_t first = *state;
    while (*size >= 3 * block) {
        uint64_t second = 0, third = 0;
        for (const uint8_t *end = data + block; data < end; data += 8) {
            first = _mm_crc32_u64(first, crc32c_load(data));
            second = _mm_crc32_u64(second, crc32c_load(data + block));
            third = _mm_crc32_u64(third, crc32c_load(data + 2 * block));
        }
        first = crc32c_shifted(table, (uint32_t) first) ^ second;
        first = crc32c_shifted(table, (uint32_t) first) ^ third;
        data += 2 * block;
        *size -= 3 * block;
    }
    *state = first;
    return data;
}

__attribute__((target("sse4.2")))
static uint32_t crc32c_by_instruction(const uint8_t *data, size_t size) {
    uint64_t state = 0xFFFFFFFFu;
    data = crc32c_rounds(&state, data, &size, CRC32C_LONG, crc32c_shift_long);
    data = crc32c_rounds(&state, data, &size, CRC32C_SHORT, crc32c_shift_short);
    for (; size >= 8; size -= 8, data += 8)
        state = _mm_crc32_u64(state, crc32c_load(data));
    for (; size; size--)
        state = _mm_crc32_u8((uint32_t) state, *data++);
    return ~(uint32_t) state;
}
#endif

static inline uint32_t crc32c_of(const uint8_t *data, size_t size) {
#if BARNABAS_CRC32C_SSE
    if (crc32c_has_instruction)
        return crc32c_by_instruction(data, size);
#endif
    return crc32c_by_tables(data, size);
}

#endif
