"""One broker's Prometheus registry: its collectors and the process's own figures. Never the process-wide one."""

from __future__ import annotations

from typing import Final, Protocol, cast

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.registry import Collector

from barnabas import __version__
from barnabas.broker.metrics.authentication_collector import AuthenticationCollector
from barnabas.broker.metrics.cleaner_collector import CleanerCollector
from barnabas.broker.metrics.client_metrics_collector import ClientMetricsCollector
from barnabas.broker.metrics.daemon_collectors import (
    BrokerCollector,
    ConnectionCollector,
    EventLoopCollector,
    RequestCollector,
    TopicCollector,
)
from barnabas.broker.metrics.family import Family
from barnabas.broker.metrics.group_collector import GroupCollector
from barnabas.broker.metrics.group_lag_collector import GroupLagCollector
from barnabas.broker.metrics.group_retention_collector import GroupRetentionCollector
from barnabas.broker.metrics.mirror_collector import MirrorCollector
from barnabas.broker.metrics.quota_collector import QuotaCollector
from barnabas.broker.metrics.share_collector import ShareCollector
from barnabas.broker.metrics.standby_collector import StandbyCollector
from barnabas.broker.metrics.state import BrokerState
from barnabas.broker.metrics.storage_collectors import (
    FlushCollector,
    LogCollector,
    LogDirCollector,
    MoveCollector,
    TaskCollector,
)
from barnabas.broker.metrics.tls_collector import TlsCollector
from barnabas.broker.metrics.transaction_collector import TransactionCollector
from barnabas.broker.probes import BrokerProbes


class DeclaredCollector(Protocol):
    """A collector class with its families."""

    families: tuple[Family, ...]


COLLECTORS: Final = cast(
    "tuple[type[DeclaredCollector], ...]",
    (
        BrokerCollector,
        RequestCollector,
        TopicCollector,
        ConnectionCollector,
        TlsCollector,
        AuthenticationCollector,
        QuotaCollector,
        GroupCollector,
        GroupLagCollector,
        GroupRetentionCollector,
        TransactionCollector,
        ShareCollector,
        ClientMetricsCollector,
        MirrorCollector,
        StandbyCollector,
        EventLoopCollector,
        LogCollector,
        LogDirCollector,
        MoveCollector,
        FlushCollector,
        CleanerCollector,
        TaskCollector,
    ),
)
"""In the order of docs/metrics.md and of the exposition."""


def make_registry(probes: BrokerProbes, state: BrokerState) -> CollectorRegistry:
    """Return a registry that reads `probes` and `state` at each scrape."""
    from barnabas.protocol.records.kernels.kernel import KERNEL

    registry = CollectorRegistry(auto_describe=True)
    collectors: tuple[Collector, ...] = (
        BrokerCollector(state, __version__, KERNEL),
        RequestCollector(probes),
        TopicCollector(probes),
        ConnectionCollector(probes),
        TlsCollector(probes, state),
        AuthenticationCollector(probes),
        QuotaCollector(probes),
        GroupCollector(probes),
        GroupLagCollector(state),
        GroupRetentionCollector(state),
        TransactionCollector(probes, state),
        ShareCollector(probes, state),
        ClientMetricsCollector(state),
        MirrorCollector(state),
        StandbyCollector(state),
        EventLoopCollector(probes),
        LogCollector(state),
        LogDirCollector(state),
        MoveCollector(state),
        FlushCollector(state),
        CleanerCollector(state),
        TaskCollector(state),
    )
    for collector in collectors:
        registry.register(collector)
    ProcessCollector(registry=registry)
    return registry
