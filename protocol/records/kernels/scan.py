"""Selects the scan over stored batches, compiled or Python, by the choice of kernel.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.protocol.records.kernels.kernel import KERNEL

if TYPE_CHECKING:
    from barnabas.protocol.records.kernels.scan_python import BatchScan
elif KERNEL == "compiled":
    from barnabas.protocol.records.kernels._scan import BatchScan
else:
    from barnabas.protocol.records.kernels.scan_python import BatchScan

__all__ = ["BatchScan"]
