"""Selects the implementation of the per-record work: the compiled kernel if it was built, otherwise its Python twin.

Both have the same functions, results and errors, and the same tests run them; only speed differs. Import these
functions from here, never from one of the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from barnabas.protocol.kernel_choice import load_compiled

if TYPE_CHECKING:
    from types import ModuleType


def _compiled() -> ModuleType:
    from barnabas.protocol.records.kernels import _kernel

    return _kernel


KERNEL: Final[Literal["compiled", "python"]] = "python" if load_compiled(_compiled) is None else "compiled"
"""The implementation in use, as `barnabas --version` prints it."""

if TYPE_CHECKING or KERNEL == "python":
    from barnabas.protocol.records.kernels.kernel_python import (
        append_record,
        append_records,
        check_payload,
        decode_fetched,
        decode_payload,
        find_batch,
        find_lz4_end,
        find_timestamp,
        murmur2,
        one_record_batch,
    )
else:
    from barnabas.protocol.records.kernels._kernel import (
        append_record,
        append_records,
        check_payload,
        decode_fetched,
        decode_payload,
        find_batch,
        find_lz4_end,
        find_timestamp,
        murmur2,
        one_record_batch,
    )

__all__ = [
    "KERNEL",
    "append_record",
    "append_records",
    "check_payload",
    "decode_fetched",
    "decode_payload",
    "find_batch",
    "find_lz4_end",
    "find_timestamp",
    "murmur2",
    "one_record_batch",
]
