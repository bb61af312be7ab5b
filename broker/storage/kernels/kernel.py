"""Selects the compiled common cases of the log engine, if they were built.

Unlike the kernels of protocol/records, which have twins, these have the log engine's Python code as their reference:
without them every case goes there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.protocol.kernel_choice import load_compiled

if TYPE_CHECKING:
    from collections.abc import Callable

    from barnabas.broker.storage.kernels._append import AppendKernel
    from barnabas.broker.storage.log.append import AppendResult
    from barnabas.broker.storage.log.core import LogCore

    AppendCommit = Callable[..., AppendResult | None]


def _compiled() -> tuple[type[AppendKernel], AppendCommit]:
    from barnabas.broker.storage.kernels._append import AppendKernel
    from barnabas.broker.storage.kernels._marker import append_commit

    return AppendKernel, append_commit


_append_kernel, append_commit = load_compiled(_compiled) or (None, None)


def append_kernel(core: LogCore) -> AppendKernel | None:
    """Return a compiled append for this log, or None without a compiled kernel."""
    return None if _append_kernel is None else _append_kernel(core)
