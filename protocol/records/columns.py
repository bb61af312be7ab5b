"""The builder of columns, and what it takes and gives."""

from __future__ import annotations

from barnabas.protocol.records.columns_python import ColumnBuilder
from barnabas.protocol.records.columns_types import Columns, HeaderColumn, NullableBytes, Stop, Wanted

__all__ = ["ColumnBuilder", "Columns", "HeaderColumn", "NullableBytes", "Stop", "Wanted"]
