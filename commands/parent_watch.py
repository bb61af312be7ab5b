"""The end of whoever started the broker, seen through a pipe.

A parent that was killed cannot stop its child. What it leaves is a pipe without a writer: the kernel closes its end,
and the child's read returns. (Linux's parent-death signal would not do: it follows the thread that forked, not the
process.)
"""

from __future__ import annotations

import logging
import os
import signal
import threading

logger = logging.getLogger(__name__)

_STANDARD_INPUT = 0
_CHUNK_BYTES = 4096


def stop_when_standard_input_ends() -> None:
    """From now on the end of standard input is a SIGTERM to this process: a clean stop."""
    threading.Thread(target=_wait_for_the_end, name="stdin-watch", daemon=True).start()


def _wait_for_the_end() -> None:
    try:
        while os.read(_STANDARD_INPUT, _CHUNK_BYTES):
            pass
    except OSError:  # closed or not readable: there is nobody on the other end either
        pass
    logger.info("standard input ended: whoever started this broker is gone, or asks for its stop")
    os.kill(os.getpid(), signal.SIGTERM)
