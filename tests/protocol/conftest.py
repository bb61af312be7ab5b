"""Fixtures of the record tests: each test that asks for `kernel` runs with the compiled kernel and with its twin."""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest

from barnabas.protocol.records import builder, reader

KERNELS = {
    "compiled": "barnabas.protocol.records._kernel",
    "python": "barnabas.protocol.records.kernel_python",
}


def load_kernel(name: str) -> ModuleType:
    try:
        return importlib.import_module(KERNELS[name])
    except ImportError:
        if name == "compiled":
            pytest.skip("the compiled kernel was not built on this machine")
        raise


@pytest.fixture(params=sorted(KERNELS))
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """One of the two kernels, in use by the builder and the reader for the time of the test."""
    module = load_kernel(request.param)
    for user in (builder, reader):
        for name in ("append_record", "check_payload", "decode_payload", "find_timestamp", "record_size"):
            if hasattr(user, name):
                monkeypatch.setattr(user, name, getattr(module, name))
    return module


@pytest.fixture
def kernels() -> tuple[ModuleType, ModuleType]:
    """Both: (compiled, python)."""
    return load_kernel("compiled"), load_kernel("python")
