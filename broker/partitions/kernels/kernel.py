"""Selects the compiled common cases of appends to partitions, if they were built; Partition is their reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.protocol.kernel_choice import load_compiled

if TYPE_CHECKING:
    from types import ModuleType


def _compiled() -> ModuleType:
    from barnabas.broker.partitions.kernels import _partition

    return _partition


appends = load_compiled(_compiled)
"""The module _partition, or None."""
