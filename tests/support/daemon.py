"""A real `barnabas serve` process, as `barnabas.clients.testing` provides it to users' tests.

    with start_daemon(tmp_path, "num.partitions=3") as daemon:
        connect(daemon.host, daemon.port)

Every wait has a timeout, and error messages contain the daemon's log. `start_daemon` forks the process from one with
its modules imported; `start_fresh_daemon` starts an interpreter, for tests of imports, of memory and of mounts, and
costs four times as much CPU.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from barnabas.clients.broker_process import BrokerProcess as Daemon
from barnabas.clients.broker_process import BrokerProcessError as DaemonError
from barnabas.clients.broker_process import SpawnedProcess
from tests.support.forking import FAULT_FILE, REPOSITORY, fork_server

__all__ = ["REPOSITORY", "Daemon", "DaemonError", "start_daemon", "start_fresh_daemon", "with_fault"]

_KERNEL_VARIABLE = "BARNABAS_KERNEL"


class _ForkedDaemon(Daemon):
    """A daemon whose starts cost a quarter of the CPU. Restarts and `kill` work as with any other."""

    def _spawn(self, command: list[str], environ: Mapping[str, str], log: IO[bytes]) -> SpawnedProcess:
        arguments = command[command.index("serve") :]
        return fork_server().start(
            arguments, environ=environ, cwd=str(self.directory), stdout=log.fileno(), stderr=log.fileno()
        )


def start_daemon(directory: Path, *settings: str, environ: Mapping[str, str] | None = None) -> Daemon:
    """Start a daemon on free ports of 127.0.0.1 with its data in `directory`/data; return it when it is ready.

    `settings` are `name=value` texts as for `--set`; those for listeners, metrics.listener and log.dirs replace the
    defaults. Failpoints and `with_fault` of `environ` work as in an interpreter of its own, which the daemon gets only
    for another choice of kernels. The caller stops it: use it as a context manager, or call `stop()` or `kill()`.
    """
    if environ is not None and _KERNEL_VARIABLE in environ:
        return start_fresh_daemon(directory, *settings, environ=environ)
    daemon = _ForkedDaemon(directory, _named(settings), environ)
    daemon.start()
    return daemon


def start_fresh_daemon(directory: Path, *settings: str, environ: Mapping[str, str] | None = None) -> Daemon:
    """Start a daemon as `start_daemon` does, in an interpreter of its own."""
    daemon = Daemon(directory, _named(settings), environ)
    daemon.start()
    return daemon


def with_fault(directory: Path, code: str) -> dict[str, str]:
    """Return the environment of a daemon in which `code` runs before the broker starts.

    The code may replace functions of modules; a module that has imported such a function by its name keeps the
    original one.
    """
    folder = directory / "fault"
    folder.mkdir()
    (folder / FAULT_FILE).write_text(code)
    return {**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{REPOSITORY}"}


def _named(settings: tuple[str, ...]) -> dict[str, object]:
    return {name: value for name, _, value in (setting.partition("=") for setting in settings)}
