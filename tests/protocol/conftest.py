"""Fixtures of the record tests: a test that asks for `kernel` runs with the compiled kernel and with its twin."""

from __future__ import annotations

from types import ModuleType

import pytest

from barnabas.protocol.records import builder, reader
from tests.support.storage.kernels import KERNELS, load_kernel


@pytest.fixture(params=sorted(KERNELS))
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """One of the two kernels, in use by the builder and the reader for the time of the test."""
    module = load_kernel(request.param)
    for user in (builder, reader):
        for name in (
            "append_record",
            "append_records",
            "check_payload",
            "decode_fetched",
            "decode_payload",
            "find_timestamp",
        ):
            if hasattr(user, name):
                monkeypatch.setattr(user, name, getattr(module, name))
    return module
