"""Runs a command in an interactive kafka-metadata-shell, repeatedly until the shell has loaded the snapshot.

A command on the shell's command line runs once, sometimes before the shell has loaded the snapshot (it checks every
100 ms), and then prints an empty tree or "no such file". The prompt appears as early, but allows repeated commands.
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
    """Return the output of `command` in the shell started by `words`; None without useful output before the timeout."""
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
                time.sleep(_AGAIN_AFTER_S)  # polling another process with a deadline
            return None
        finally:
            shell.kill()


def _said(shell: subprocess.Popen[bytes], deadline: float) -> str | None:
    """Return the output up to the next prompt; None after the timeout or if the shell ends."""
    assert shell.stdout is not None
    found = b""
    while not found.endswith(_PROMPT):
        ready, _, _ = select.select([shell.stdout], [], [], max(0.0, deadline - time.monotonic()))
        more = os.read(shell.stdout.fileno(), _READ_BYTES) if ready else b""
        if not more:
            return None
        found += more
    return found.removesuffix(_PROMPT).decode()
