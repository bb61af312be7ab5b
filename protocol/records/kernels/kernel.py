"""Selects the implementation of the per-record work: the compiled kernel if it was built, otherwise its Python twin.

Both have the same functions, results and errors, and the same tests run them; only speed differs. With
BARNABAS_KERNEL=python in the environment the twin is used; with BARNABAS_KERNEL=compiled the import fails if the
compiled kernel is missing. Import these functions from here, never from one of the two.
"""

from __future__ import annotations

import os
from typing import Final, Literal

_wanted = os.environ.get("BARNABAS_KERNEL", "")
if _wanted not in ("", "compiled", "python"):
    raise ImportError(f"BARNABAS_KERNEL={_wanted} is neither compiled nor python")

_kernel: Literal["compiled", "python"] = "python"

if _wanted != "python":
    try:
        from barnabas.protocol.records.kernels._kernel import (
            append_record,
            check_payload,
            decode_payload,
            find_batch,
            find_timestamp,
            murmur2,
        )

        _kernel = "compiled"
    except ImportError:
        if _wanted == "compiled":
            raise

if _kernel == "python":
    from barnabas.protocol.records.kernels.kernel_python import (
        append_record,
        check_payload,
        decode_payload,
        find_batch,
        find_timestamp,
        murmur2,
    )

KERNEL: Final = _kernel
"""The implementation in use, "compiled" or "python", as `barnabas --version` prints it."""

__all__ = [
    "KERNEL",
    "append_record",
    "check_payload",
    "decode_payload",
    "find_batch",
    "find_timestamp",
    "murmur2",
]
