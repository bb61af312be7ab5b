"""What `barnabas --version` says."""

from __future__ import annotations

import platform

import barnabas


def version_line() -> str:
    """The version, the record kernel that was chosen at import, and the Python that runs."""
    from barnabas.protocol.records.kernel import KERNEL

    return f"barnabas {barnabas.__version__}, {KERNEL} kernel, Python {platform.python_version()}"
