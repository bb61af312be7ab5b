"""The two kernels by name, for tests that run both."""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest

KERNELS = {
    "compiled": "barnabas.protocol.records._kernel",
    "python": "barnabas.protocol.records.kernel_python",
}


def load_kernel(name: str) -> ModuleType:
    """The module; skips the test where the compiled kernel was not built."""
    try:
        return importlib.import_module(KERNELS[name])
    except ImportError:
        if name == "compiled":
            pytest.skip("the compiled kernel was not built on this machine")
        raise
