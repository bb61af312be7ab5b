"""Connections whose clients have not authenticated yet: above a limit, the oldest one is cut off.

Clients authenticate within milliseconds, so those that never do give way first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from barnabas.broker.network.gating import GatedConnection

CROWDED_OUT: Final = "unauthenticated_limit"
"""Reason of closed connections, as a label."""


class UnauthenticatedConnections:
    """Those of all SASL listeners of a broker. For the event loop's thread only."""

    def __init__(self, limit: Callable[[], int | None]) -> None:
        """`limit` returns how many there may be; None: any number."""
        self._limit = limit
        self._open: dict[GatedConnection, None] = {}
        """Oldest first."""

    def opened(self, connection: GatedConnection) -> None:
        """Add a new connection."""
        self._open[connection] = None
        limit = self._limit()
        if limit is not None and len(self._open) > limit:
            oldest = next(iter(self._open))
            del self._open[oldest]
            oldest.abort(CROWDED_OUT)

    def ended(self, connection: GatedConnection) -> None:
        """Remove a connection that is authenticated or closed. May be called twice."""
        self._open.pop(connection, None)
