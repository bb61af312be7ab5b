"""What must happen before any test module is imported."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import settings

# The same examples in every run, here and in CI, which is where Hypothesis would otherwise change its mind by itself:
# a landing is judged by examples that its author has seen. `--hypothesis-profile=searching` looks for new ones.
settings.register_profile("repeatable", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("searching", derandomize=False, deadline=None, print_blob=True)
settings.load_profile("repeatable")

# A shell's background job ignores Ctrl-C, and so would every process that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# .ci/run names one worker of xdist, whose event loops, and whose daemons', run in asyncio's debug mode.
if os.environ.get("PYTEST_XDIST_WORKER") == os.environ.get("ASYNCIO_DEBUG_WORKER", ""):
    os.environ["PYTHONASYNCIODEBUG"] = "1"

# Its assertions are those of several test modules, whichever of them is collected first.
pytest.register_assert_rewrite("tests.interop.clients.features")
