"""What must happen before any test module is imported."""

from __future__ import annotations

import signal

import pytest

# A shell's background job ignores Ctrl-C, and so would every process that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Its assertions are those of several test modules, whichever of them is collected first.
pytest.register_assert_rewrite("tests.interop.clients.features")
