"""QuotaManager: the quotas in force, their buckets, and the connections that they concern.

Without quotas of users or client ids every `Session.quota` is None, which is all that a request costs then. The event
loop's thread only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from barnabas.broker.quotas.bucket import Buckets, MutationBucket, RateBucket
from barnabas.broker.quotas.entities import QuotaKind, QuotaTable
from barnabas.broker.quotas.rate import WindowSizes
from barnabas.broker.quotas.session_quota import SessionQuota

if TYPE_CHECKING:
    from barnabas.broker.metadata.security.image import QuotaEntity
    from barnabas.broker.network.session import Session
    from barnabas.broker.quotas.probe import QuotaProbe
    from barnabas.config import BrokerConfig


class QuotaWindows(NamedTuple):
    """Samples of the rates, and of the buckets of controller mutations."""

    rates: WindowSizes = WindowSizes()
    mutations: WindowSizes = WindowSizes()

    @classmethod
    def of(cls, config: BrokerConfig) -> QuotaWindows:
        """Read quota.window.* and controller.quota.window.*."""
        return cls(
            WindowSizes(config.get_int("quota.window.num"), config.get_int("quota.window.size.seconds")),
            WindowSizes(
                config.get_int("controller.quota.window.num"), config.get_int("controller.quota.window.size.seconds")
            ),
        )


def monotonic_ms() -> int:
    """Return ms that never go backwards."""
    return time.monotonic_ns() // 1_000_000


class Channel(Protocol):
    """A connection whose client may have quotas."""

    session: Session

    def mute(self, seconds: float) -> None:
        """Serve no request for this time."""
        ...


class QuotaManager:
    """Quotas of users and client ids."""

    __slots__ = (
        "_channels",
        "_is_active",
        "_tables",
        "clock_ms",
        "fetch",
        "generation",
        "mutation",
        "probe",
        "produce",
        "request",
        "windows",
    )

    def __init__(
        self,
        clock_ms: Callable[[], int],
        probe: QuotaProbe,
        windows: QuotaWindows,
    ) -> None:
        """`clock_ms`: ms that never go backwards; called on any thread."""
        self.clock_ms = clock_ms
        self.probe = probe
        self.windows = windows.rates
        self.generation = 0
        """Grows with every change of quotas."""
        self.produce = Buckets(RateBucket, windows.rates)
        self.fetch = Buckets(RateBucket, windows.rates)
        self.request = Buckets(RateBucket, windows.rates)
        self.mutation = Buckets(MutationBucket, windows.mutations)
        self._tables: Mapping[QuotaKind, QuotaTable] = {}
        self._channels: set[Channel] = set()
        self._is_active = False

    def replace(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        """Use these quotas from now on: also for the open connections, whose rates go on."""
        self._tables = {kind: QuotaTable(kind, quotas) for kind in QuotaKind}
        self.generation += 1
        was_active, self._is_active = self._is_active, any(self._tables.values())
        if was_active != self._is_active:
            for channel in self._channels:
                self._attach(channel)

    def table(self, kind: QuotaKind) -> QuotaTable:
        """Return the quotas of one kind."""
        return self._tables[kind]

    def opened(self, channel: Channel) -> None:
        """Add a connection."""
        self._channels.add(channel)
        self._attach(channel)

    def closed(self, channel: Channel) -> None:
        """Forget a connection. What it has counted stays."""
        self._channels.discard(channel)
        self._detach(channel.session)

    def _attach(self, channel: Channel) -> None:
        self._detach(channel.session)
        if self._is_active:
            channel.session.quota = SessionQuota(self, channel.session, channel.mute)

    @staticmethod
    def _detach(session: Session) -> None:
        if session.quota is not None:
            session.quota.release()
            session.quota = None
