"""A real `barnabas serve` process, as `barnabas.clients.testing` provides it to users' tests.

    with start_daemon(tmp_path, "num.partitions=3") as daemon:
        connect(daemon.host, daemon.port)

Every wait has a timeout, and error messages contain the daemon's log.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from barnabas.clients.testing import BrokerProcess as Daemon
from barnabas.clients.testing import BrokerProcessError as DaemonError

REPOSITORY = Path(__file__).resolve().parents[2]

__all__ = ["REPOSITORY", "Daemon", "DaemonError", "start_daemon"]


def start_daemon(directory: Path, *settings: str, environ: Mapping[str, str] | None = None) -> Daemon:
    """Start a daemon on free ports of 127.0.0.1 with its data in `directory`/data; return it when it is ready.

    `settings` are `name=value` texts as for `--set`; those for listeners, metrics.listener and log.dirs replace the
    defaults. The caller stops it: use it as a context manager, or call `stop()` or `kill()`.
    """
    named = [setting.partition("=") for setting in settings]
    daemon = Daemon(directory, {name: value for name, _, value in named}, environ)
    daemon.start()
    return daemon
