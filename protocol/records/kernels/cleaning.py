"""Selects the implementation of the cleaner's per-record work, by the choice of kernel.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.protocol.records.kernels.kernel import KERNEL

if TYPE_CHECKING or KERNEL == "python":
    from barnabas.protocol.records.kernels.cleaning_python import OffsetTable
else:
    from barnabas.protocol.records.kernels._cleaning import OffsetTable

__all__ = ["OffsetTable"]
