"""XXH3 with 64 bits, seed 0 and the default secret, in plain Python: what Kafka hashes a group's topics with.

    1 to 3, 4 to 8, 9 to 16, 17 to 128, 129 to 240 bytes     a formula for each
    more                                                     stripes of 64 bytes into eight lanes, mixed every 1,024

Some 10 us for a short name; a topic of 1,000 partitions is 4 KB and takes 0.3 ms, once for each change of it.
Source: the XXH3 specification (xxHash's doc/xxhash_spec.md), hash4j.
"""

from __future__ import annotations

import struct
from typing import Final

_MASK: Final = (1 << 64) - 1

_PRIME32_1: Final = 0x9E3779B1
_PRIME32_2: Final = 0x85EBCA77
_PRIME32_3: Final = 0xC2B2AE3D
_PRIME64_1: Final = 0x9E3779B185EBCA87
_PRIME64_2: Final = 0xC2B2AE3D27D4EB4F
_PRIME64_3: Final = 0x165667B19E3779F9
_PRIME64_4: Final = 0x85EBCA77C2B2AE63
_PRIME64_5: Final = 0x27D4EB2F165667C5
_PRIME_MX1: Final = 0x165667919E3779F9
_PRIME_MX2: Final = 0x9FB21C651E98DF25

_SECRET: Final = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671f"
    "cb79e64eccc0e578825ad07dccff7221b8084674f743248ee03590e6813a264c"
    "3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364"
    "eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e"
    "2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)

_STRIPE: Final = 64
_STRIPES_OF_A_BLOCK: Final = 16
_LANES: Final = struct.Struct("<8Q")


def xxh3_64(data: bytes) -> int:
    """The hash, unsigned."""
    size = len(data)
    if size > 240:
        return _long(data)
    if size > 128:
        return _middle(data)
    if size > 16:
        return _short(data)
    if size > 8:
        return _up_to_16(data)
    if size >= 4:
        return _up_to_8(data)
    return _up_to_3(data)


def _up_to_3(data: bytes) -> int:
    size = len(data)
    if not size:
        return _avalanche64(_u64(_SECRET, 56) ^ _u64(_SECRET, 64))
    combined = (data[0] << 16) | (data[size >> 1] << 24) | data[-1] | (size << 8)
    return _avalanche64(combined ^ (_u32(_SECRET, 0) ^ _u32(_SECRET, 4)))


def _up_to_8(data: bytes) -> int:
    size = len(data)
    mixed = (_u32(data, size - 4) + (_u32(data, 0) << 32)) ^ (_u64(_SECRET, 8) ^ _u64(_SECRET, 16))
    mixed ^= _rotated(mixed, 49) ^ _rotated(mixed, 24)
    mixed = (mixed * _PRIME_MX2) & _MASK
    mixed ^= (mixed >> 35) + size
    mixed = (mixed * _PRIME_MX2) & _MASK
    return mixed ^ (mixed >> 28)


def _up_to_16(data: bytes) -> int:
    size = len(data)
    low = _u64(data, 0) ^ (_u64(_SECRET, 24) ^ _u64(_SECRET, 32))
    high = _u64(data, size - 8) ^ (_u64(_SECRET, 40) ^ _u64(_SECRET, 48))
    swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
    return _avalanche((size + swapped + high + _folded(low, high)) & _MASK)


def _short(data: bytes) -> int:
    size = len(data)
    total = size * _PRIME64_1
    for pair in reversed(range((size - 1) // 32 + 1)):
        total += _mix16(data, 16 * pair, 32 * pair)
        total += _mix16(data, size - 16 * (pair + 1), 32 * pair + 16)
    return _avalanche(total & _MASK)


def _middle(data: bytes) -> int:
    size = len(data)
    total = size * _PRIME64_1
    for step in range(8):
        total += _mix16(data, 16 * step, 16 * step)
    total = _avalanche(total & _MASK)
    for step in range(8, size // 16):
        total += _mix16(data, 16 * step, 16 * (step - 8) + 3)
    total += _mix16(data, size - 16, 136 - 17)
    return _avalanche(total & _MASK)


def _long(data: bytes) -> int:
    size = len(data)
    lanes = [
        *(_PRIME32_3, _PRIME64_1, _PRIME64_2, _PRIME64_3),
        *(_PRIME64_4, _PRIME32_2, _PRIME64_5, _PRIME32_1),
    ]
    stripes = (size - 1) // _STRIPE
    for stripe in range(stripes):
        in_block = stripe % _STRIPES_OF_A_BLOCK
        _accumulate(lanes, data, stripe * _STRIPE, 8 * in_block)
        if in_block == _STRIPES_OF_A_BLOCK - 1:
            _scramble(lanes)
    _accumulate(lanes, data, size - _STRIPE, 192 - _STRIPE - 7)
    total = size * _PRIME64_1
    for pair in range(4):
        key = 11 + 16 * pair
        total += _folded(lanes[2 * pair] ^ _u64(_SECRET, key), lanes[2 * pair + 1] ^ _u64(_SECRET, key + 8))
    return _avalanche(total & _MASK)


def _accumulate(lanes: list[int], data: bytes, at: int, secret_at: int) -> None:
    values = _LANES.unpack_from(data, at)
    keys = _LANES.unpack_from(_SECRET, secret_at)
    for lane in range(8):
        keyed = values[lane] ^ keys[lane]
        lanes[lane ^ 1] = (lanes[lane ^ 1] + values[lane]) & _MASK
        lanes[lane] = (lanes[lane] + (keyed & 0xFFFFFFFF) * (keyed >> 32)) & _MASK


def _scramble(lanes: list[int]) -> None:
    keys = _LANES.unpack_from(_SECRET, 192 - _STRIPE)
    for lane in range(8):
        value = lanes[lane]
        lanes[lane] = ((value ^ (value >> 47) ^ keys[lane]) * _PRIME32_1) & _MASK


def _mix16(data: bytes, at: int, secret_at: int) -> int:
    return _folded(_u64(data, at) ^ _u64(_SECRET, secret_at), _u64(data, at + 8) ^ _u64(_SECRET, secret_at + 8))


def _folded(left: int, right: int) -> int:
    product = left * right
    return (product & _MASK) ^ (product >> 64)


def _avalanche(value: int) -> int:
    value ^= value >> 37
    value = (value * _PRIME_MX1) & _MASK
    return value ^ (value >> 32)


def _avalanche64(value: int) -> int:
    value ^= value >> 33
    value = (value * _PRIME64_2) & _MASK
    value ^= value >> 29
    value = (value * _PRIME64_3) & _MASK
    return value ^ (value >> 32)


def _rotated(value: int, bits: int) -> int:
    return ((value << bits) | (value >> (64 - bits))) & _MASK


def _u32(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "little")


def _u64(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little")
