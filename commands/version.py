"""What `barnabas --version` says."""

from __future__ import annotations

import platform

from barnabas import __version__


def version_line() -> str:
    """The version, the record kernel that was chosen at import, and the Python that runs."""
    from barnabas.protocol.records.kernels.kernel import KERNEL

    return f"barnabas {__version__}, {KERNEL} kernel, Python {platform.python_version()}"
