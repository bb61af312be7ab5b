"""Certificates: the TLS contexts of a broker's listeners, and their renewal.

Imports TLS's libraries when the first listener needs them: brokers without TLS do not pay for them.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from barnabas.broker.startup_error import StartupError

if TYPE_CHECKING:
    from barnabas.broker.security.tls.listener_context import ListenerContext
    from barnabas.broker.storage.services.scheduler import Scheduler
    from barnabas.config.security.listener_properties import ListenerProperties

REFRESH_MS: Final = 2_000
"""Interval of the checks for changed files and properties."""


class Certificates:
    """The contexts by listener. Threads of the scheduler and of the metrics read it."""

    def __init__(self) -> None:
        self._contexts: dict[str, ListenerContext] = {}
        self._lock = threading.Lock()

    def load(self, properties: ListenerProperties) -> ListenerContext:
        """Load a listener's certificate. Reads files and blocks. Raises StartupError, naming the listener."""
        from barnabas.broker.security.tls.listener_context import ListenerContext
        from barnabas.transport.errors import TlsConfigError

        context = ListenerContext(properties)
        try:
            context.load()
        except TlsConfigError as error:
            raise StartupError(f"the listener {properties.listener} cannot serve TLS: {error}") from error
        with self._lock:
            self._contexts[properties.listener] = context
        return context

    def contexts(self) -> dict[str, ListenerContext]:
        """Return the contexts by the names of their listeners."""
        with self._lock:
            return dict(self._contexts)

    def start(self, scheduler: Scheduler) -> None:
        """Refresh periodically, if there is any context."""
        if self._contexts:
            scheduler.schedule("tls-certificates", self.refresh, delay_ms=REFRESH_MS, period_ms=REFRESH_MS)

    def refresh(self) -> None:
        """Replace the contexts whose files or properties have changed. Blocks."""
        for context in self.contexts().values():
            context.refresh()
