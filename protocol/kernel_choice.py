"""The choice between compiled kernels and Python, by the environment variable BARNABAS_KERNEL.

(empty)     a compiled kernel is used if it was built
compiled    it is used, and a missing one fails the import
python      none is used
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def load_compiled(load: Callable[[], T]) -> T | None:
    """Return what `load` imports from compiled modules, or None if Python code is to be used. Raises ImportError."""
    wanted = os.environ.get("BARNABAS_KERNEL", "")
    if wanted not in ("", "compiled", "python"):
        raise ImportError(f"BARNABAS_KERNEL={wanted} is neither compiled nor python")
    if wanted == "python":
        return None
    try:
        return load()
    except ImportError:
        if wanted == "compiled":
            raise
        return None
