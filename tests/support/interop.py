"""Whether tests that need third-party software may skip.

`make interop` sets BARNABAS_INTEROP=require if Java and Maven are on the PATH. Missing software is then a failure, so
that a broken download is not mistaken for success.
"""

from __future__ import annotations

import os
import shutil
from typing import NoReturn

import pytest


def is_required() -> bool:
    """Return whether missing software is a failure in this run."""
    return os.environ.get("BARNABAS_INTEROP") == "require"


def require_or_skip(reason: str) -> NoReturn:
    """End the test: as a failure if interop is required, otherwise skipped. `reason` names the missing software."""
    __tracebackhide__ = True
    if is_required():
        pytest.fail(f"{reason} (BARNABAS_INTEROP=require: this may not be skipped)", pytrace=False)
    pytest.skip(reason)


def need_commands(*names: str) -> None:
    """End the test by `require_or_skip` if any of these commands is not on the PATH."""
    __tracebackhide__ = True
    missing = [name for name in names if shutil.which(name) is None]
    if missing:
        require_or_skip(f"not on the PATH: {', '.join(missing)}")
