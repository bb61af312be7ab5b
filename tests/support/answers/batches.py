"""Record batches with fixed timestamps."""

from __future__ import annotations

from typing import Any

from barnabas.protocol.records import Codec, RecordBatchBuilder
from tests.support.answers.fixed import NOW_MS


def batch(*values: bytes, key: Any = b"k", timestamp: Any = NOW_MS, codec: Any = Codec.NONE, **producer: Any) -> bytes:
    """Return a batch of records; `producer`: the builder's fields of producers and transactions."""
    builder = RecordBatchBuilder(codec, max_bytes=1 << 20, **producer)
    for value in values or (b"v",):
        assert builder.append(timestamp, key, value, ())
    return bytes(builder.build())
