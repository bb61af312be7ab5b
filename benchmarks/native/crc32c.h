/* CRC-32C of record batches, eight bytes at a time. Call `fill_crc_table` first. */
#ifndef CRC32C_H
#define CRC32C_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

static uint32_t crc_table[8][256];

static inline void fill_crc_table(void) {
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

static inline uint32_t crc32c(const unsigned char *at, size_t size) {
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

#endif
