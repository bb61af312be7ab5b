"""Selects the builder of columns, compiled or Python, by the choice of kernel.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.protocol.records.kernels.columns_types import Columns, HeaderColumn, NullableBytes, Stop, Wanted
from barnabas.protocol.records.kernels.kernel import KERNEL

if TYPE_CHECKING:
    from barnabas.protocol.records.kernels.columns_python import ColumnBuilder
elif KERNEL == "compiled":
    from barnabas.protocol.records.kernels._columns import ColumnBuilder
else:
    from barnabas.protocol.records.kernels.columns_python import ColumnBuilder

__all__ = ["ColumnBuilder", "Columns", "HeaderColumn", "NullableBytes", "Stop", "Wanted"]
