"""What `barnabas --version` says."""

from __future__ import annotations

import importlib.metadata
import platform

DISTRIBUTION = "barnabas"


def version_line() -> str:
    """The distribution's version, the record kernel that was chosen at import, and the Python that runs."""
    from barnabas.protocol.records.kernel import KERNEL

    try:
        version = importlib.metadata.version(DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError:
        version = "(not installed)"
    return f"barnabas {version}, {KERNEL} kernel, Python {platform.python_version()}"
