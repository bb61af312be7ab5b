"""Chooses the implementation of the per-record work: the compiled kernel if it was built, else its plain Python twin.

Both have the same functions, results and errors, and the same tests run them; only speed differs (about 50x).
BARNABAS_KERNEL=python in the environment forces the twin, BARNABAS_KERNEL=compiled refuses to start without the
compiled one. Code outside of this package imports from here, never one of the two.
"""

from __future__ import annotations

from barnabas.protocol.records.kernel_python import (
    append_record,
    check_payload,
    decode_payload,
    find_batch,
    find_timestamp,
    murmur2,
    record_size,
)

KERNEL = "python"

__all__ = [
    "KERNEL",
    "append_record",
    "check_payload",
    "decode_payload",
    "find_batch",
    "find_timestamp",
    "murmur2",
    "record_size",
]
