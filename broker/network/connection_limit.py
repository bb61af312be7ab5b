"""Limit on open connections: max.connections, which may change at run time, and the process's limit on open files.

A connection takes up to two descriptors (its socket, and the duplicate that sendfile writes to). Clients get half of
the process's limit, so that logs can always be opened: a log that cannot open a file takes its directory offline, and
possibly the broker with it.
"""

from __future__ import annotations

import resource
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from barnabas.broker.live_config import LiveConfig

_CLIENTS_SHARE_OF_DESCRIPTORS: Final = 2
_DESCRIPTORS_PER_CONNECTION: Final = 2


class ConnectionLimit:
    """Checked once for every new connection."""

    def __init__(self, config: LiveConfig) -> None:
        """Reads the limit on open files, so create it after the log manager has raised that."""
        self._config = config
        self._open_files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)

    def refusal(self, open_connections: int) -> str | None:
        """Return why another connection beside `open_connections` is refused, or None."""
        configured = self._config.broker.get_int("max.connections")
        if open_connections >= configured:
            return f"max.connections={configured} are open"
        if self._open_files == resource.RLIM_INFINITY:
            return None
        if open_connections >= self._open_files // (_CLIENTS_SHARE_OF_DESCRIPTORS * _DESCRIPTORS_PER_CONNECTION):
            return f"{open_connections} are open, as many as the limit of {self._open_files} open files allows"
        return None
