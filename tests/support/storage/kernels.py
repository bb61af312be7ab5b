"""The compiled modules and their pure Python versions by name, for tests that run both."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import ModuleType

import pytest

KERNELS = {
    "compiled": "barnabas.protocol.records.kernels._kernel",
    "python": "barnabas.protocol.records.kernels.kernel_python",
}
SCANS = {
    "compiled": "barnabas.protocol.records.kernels._scan",
    "python": "barnabas.protocol.records.kernels.scan_python",
}


def load_kernel(name: str, modules: Mapping[str, str] = KERNELS) -> ModuleType:
    """Return the module; skip the test if the compiled one was not built."""
    try:
        return importlib.import_module(modules[name])
    except ImportError:
        if name == "compiled":
            pytest.skip("the compiled kernel was not built on this machine")
        raise
