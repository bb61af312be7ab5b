"""Iteration over the whole batches of a segment file, for what the driver reads from headers."""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.pipeline.segments.files import OpenFile
from barnabas.protocol.records.errors import CorruptRecordError
from barnabas.protocol.records.kernels.kernel import find_batch

_CHUNK_BYTES = 1 << 20


def batches_from(file: OpenFile, size_bytes: int, position: int, least: int) -> Iterator[memoryview]:
    """Yield each whole batch (or old message) in [position, size_bytes) whose last offset is at least `least`.

    A batch is valid until the next one is requested. CRCs are not checked. Iteration ends at the first invalid or
    incomplete batch, which the task that reads it reports. Raises OSError.
    """
    buffer = memoryview(bytearray(min(_CHUNK_BYTES, max(1, size_bytes - position))))
    while position < size_bytes:
        filled = file.read_into(buffer[: size_bytes - position], position)
        inside = 0
        size = 0
        while True:
            try:
                inside, _, _, size = find_batch(buffer[:filled], inside, least)
            except CorruptRecordError:
                return
            if not size or inside + size > filled:
                break
            yield buffer[inside : inside + size]
            inside += size
        if size > size_bytes - position - inside or not (inside or size > len(buffer)):
            return
        position += inside
        if size > len(buffer):
            buffer = memoryview(bytearray(size))
