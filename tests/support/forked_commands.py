"""`barnabas ...` in a forked process, as `subprocess.run` would run it."""

from __future__ import annotations

import subprocess
import tempfile
import threading
from collections.abc import Mapping
from typing import IO

from tests.support.daemon import REPOSITORY
from tests.support.forking import TIMEOUT_S, fork_server


def run_forked(*arguments: str, environ: Mapping[str, str], stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run a command with a pipe as standard input; its output goes to files."""
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        process = fork_server().start(
            list(arguments), environ=environ, cwd=str(REPOSITORY), stdout=stdout.fileno(), stderr=stderr.fileno()
        )
        writer = threading.Thread(target=_write, args=(process.stdin, stdin))
        writer.start()
        try:
            code = process.wait(TIMEOUT_S)
        finally:
            process.kill()
            writer.join(TIMEOUT_S)
        stdout.seek(0)
        stderr.seek(0)
        return subprocess.CompletedProcess(list(arguments), code, stdout.read(), stderr.read())


def _write(pipe: IO[bytes], data: bytes) -> None:
    rest = memoryview(data)
    with pipe:
        try:
            while rest:
                rest = rest[pipe.write(rest) :]
        except BrokenPipeError:  # the command has ended without reading everything
            return
