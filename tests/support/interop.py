"""Whether a test that needs third-party software may skip.

`make interop` sets BARNABAS_INTEROP=require where Java and Maven are on the PATH: what cannot run there is a failure,
so that a broken download never passes for a green matrix.
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
    """End the test: failed where interop is required, skipped elsewhere; `reason` names what is missing."""
    __tracebackhide__ = True
    if is_required():
        pytest.fail(f"{reason} (BARNABAS_INTEROP=require: this may not be skipped)", pytrace=False)
    pytest.skip(reason)


def need_commands(*names: str) -> None:
    """End the test by `require_or_skip` unless every one of these commands is on the PATH."""
    __tracebackhide__ = True
    missing = [name for name in names if shutil.which(name) is None]
    if missing:
        require_or_skip(f"not on the PATH: {', '.join(missing)}")
