"""One command to an interactive kafka-metadata-shell, asked again until the shell has what it read.

With a command on its command line the shell runs it once, now and then before it has published the snapshot (it looks
again after 100 ms): an empty tree, or no such file. Its prompt comes as early, but there one may ask again.
"""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

TIMEOUT_S = 120.0
_PROMPT = b">> "
_AGAIN_AFTER_S = 0.1
_READ_BYTES = 65536


def ask(words: Sequence[str], command: Sequence[str], directory: Path, environ: Mapping[str, str]) -> str | None:
    """What the shell that `words` start says to `command`; None when it said nothing of use in time."""
    deadline = time.monotonic() + TIMEOUT_S
    with subprocess.Popen(
        words, cwd=directory, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as shell:
        try:
            said = _said(shell, deadline)
            while said is not None:
                assert shell.stdin is not None
                shell.stdin.write(" ".join(command).encode() + b"\n")
                shell.stdin.flush()
                said = _said(shell, deadline)
                if said and "No such file or directory" not in said:
                    return said
                time.sleep(_AGAIN_AFTER_S)  # a bounded wait on another process, which has no event to offer
            return None
        finally:
            shell.kill()


def _said(shell: subprocess.Popen[bytes], deadline: float) -> str | None:
    """Its output up to the next prompt; None at the deadline and at its end."""
    assert shell.stdout is not None
    found = b""
    while not found.endswith(_PROMPT):
        ready, _, _ = select.select([shell.stdout], [], [], max(0.0, deadline - time.monotonic()))
        more = os.read(shell.stdout.fileno(), _READ_BYTES) if ready else b""
        if not more:
            return None
        found += more
    return found.removesuffix(_PROMPT).decode()
