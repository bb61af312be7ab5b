"""Scripts for native/transactions.c, and the blocking requests that surround a run of it.

The scripts use the versions in which a producer takes a new epoch for each transaction (KIP-890): Produce 12 includes
its partitions in the transaction, EndTxn 5 answers the next epoch. Both systems receive identical frames.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Sequence

from benchmarks.requests.frames import call, compact, flexible_frame, text, varint
from benchmarks.requests.records import build_batch

_PRODUCE, _FIND_COORDINATOR, _INIT_PRODUCER_ID, _END_TXN = 0, 10, 22, 26
_PRODUCE_VERSION, _END_TXN_VERSION = 12, 5
_TRANSACTION = 1
_TIMEOUT_MS = 60_000
_NOT_YET = (3, 5, 14, 15, 16, 51)
"""Errors while `__transaction_state` is created and loaded, and while an earlier transaction completes."""
_WAIT_S = 60.0
_ATTRIBUTES_AT, _PRODUCER_ID_AT, _TRANSACTIONAL = 21, 43, 1 << 4


def build_script(
    transactional_id: str | None,
    producer_id: int,
    producer_epoch: int,
    topic: str,
    partitions: Sequence[int],
    batch: bytes,
) -> bytes:
    """Return the script of one producer; without a transactional id it is idempotent only."""
    stamped = bytearray(batch)
    struct.pack_into(">qhi", stamped, _PRODUCER_ID_AT, producer_id, producer_epoch, 0)
    if transactional_id is not None:
        struct.pack_into(">h", stamped, _ATTRIBUTES_AT, _TRANSACTIONAL)
    frame, positions = _produce_frame(transactional_id, topic, partitions, bytes(stamped))
    script = struct.pack(">ii", len(frame), len(positions))
    script += b"".join(struct.pack(">ii", position, len(batch)) for position in positions) + frame
    if transactional_id is None:
        return script + struct.pack(">ii", 0, 0)
    end = flexible_frame(_END_TXN, _END_TXN_VERSION, compact(transactional_id) + bytes(10) + b"\x01" + b"\0")
    return script + struct.pack(">ii", len(end), len(end) - 12) + end


def small_batch(value_bytes: int) -> bytes:
    """Return a batch of one record."""
    return build_batch(1, value_bytes).data


def init_producer(connection: socket.socket, transactional_id: str | None) -> tuple[int, int]:
    """Return a new producer id and epoch. Waits for the coordinator; raises RuntimeError on other errors."""
    if transactional_id is not None:
        _retry(connection, _FIND_COORDINATOR, 1, text(transactional_id) + struct.pack(">b", _TRANSACTION), 4)
    body = text(transactional_id) + struct.pack(">i", _TIMEOUT_MS)
    answer = _retry(connection, _INIT_PRODUCER_ID, 1, body, 4)
    producer_id, epoch = struct.unpack_from(">qh", answer, 6)
    return int(producer_id), int(epoch)


def _retry(connection: socket.socket, api: int, version: int, body: bytes, error_at: int) -> bytes:
    give_up = time.monotonic() + _WAIT_S
    while True:
        answer = call(connection, api, version, body)
        (error,) = struct.unpack_from(">h", answer, error_at)
        if not error:
            return answer
        if error not in _NOT_YET or time.monotonic() > give_up:
            raise RuntimeError(f"api {api}: error {error}")
        time.sleep(0.01)


def _produce_frame(
    transactional_id: str | None, topic: str, partitions: Sequence[int], batch: bytes
) -> tuple[bytes, list[int]]:
    """Return the frame and the position of the batch of each partition."""
    start = compact(transactional_id) + struct.pack(">hi", -1, _TIMEOUT_MS)
    start += varint(2) + compact(topic) + varint(len(partitions) + 1)
    body, ends = bytearray(start), []
    for partition in partitions:
        body += struct.pack(">i", partition) + varint(len(batch) + 1) + batch
        ends.append(len(body))
        body += b"\0"
    body += b"\0\0"
    frame = flexible_frame(_PRODUCE, _PRODUCE_VERSION, bytes(body))
    head = len(frame) - len(body)
    return frame, [head + end - len(batch) for end in ends]
