"""Collectors over the daemon's own counters: requests, topics, connections, the event loop, the broker as a whole.

They run in the metrics thread while the event loop keeps counting: a dict is copied (atomically under the GIL) before
it is iterated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar

from prometheus_client.core import Metric

from barnabas.broker.metrics.family import Family, Row
from barnabas.broker.metrics.state import BrokerState
from barnabas.broker.probes import (
    LOOP_LAG_BOUNDS_SECONDS,
    REQUEST_LATENCY_BOUNDS_SECONDS,
    BrokerProbes,
    TopicProbe,
)


class RequestCollector:
    """Requests by API: their duration and their errors."""

    duration = Family(
        "barnabas_request_duration_seconds",
        "histogram",
        "Time from a request's arrival to handing its response to the socket, long polls included; "
        "the count is the number of answered requests.",
        labels=("api",),
        bounds=REQUEST_LATENCY_BOUNDS_SECONDS,
    )
    errors = Family(
        "barnabas_request_errors_total",
        "counter",
        "Errors in responses: one for each topic or partition of a request that failed.",
        labels=("api", "error"),
    )
    waiting = Family(
        "barnabas_fetches_waiting", "gauge", "Fetches in a long poll, waiting for more bytes or their timeout."
    )
    sessions = Family("barnabas_fetch_sessions", "gauge", "Fetch sessions of clients in the cache (KIP-227).")
    session_partitions = Family(
        "barnabas_fetch_session_partitions", "gauge", "Partitions in all fetch sessions of the cache."
    )
    session_evictions = Family(
        "barnabas_fetch_session_evictions_total",
        "counter",
        "Fetch sessions that were removed from the full cache for another one.",
    )
    families: ClassVar = (duration, errors, waiting, sessions, session_partitions, session_evictions)

    def __init__(self, probes: BrokerProbes) -> None:
        self._probes = probes

    def collect(self) -> Iterator[Metric]:
        """All families, from the counters as they are now."""
        apis = sorted(self._probes.apis.copy().items())
        yield self.duration.render_histograms(((api,), probe) for api, probe in apis)
        yield self.errors.render(
            ((api, error), count) for api, probe in apis for error, count in sorted(probe.errors.copy().items())
        )
        yield self.waiting.render([((), self._probes.fetches_waiting)])
        sessions = self._probes.fetch_sessions
        yield self.sessions.render([((), sessions.sessions)])
        yield self.session_partitions.render([((), sessions.partitions)])
        yield self.session_evictions.render([((), sessions.evictions)])


class TopicCollector:
    """Traffic of each topic with clients."""

    received_bytes = Family(
        "barnabas_topic_received_bytes_total",
        "counter",
        "Bytes of record batches that clients produced and that were appended.",
        labels=("topic",),
    )
    received_records = Family(
        "barnabas_topic_received_records_total",
        "counter",
        "Records that clients produced and that were appended.",
        labels=("topic",),
    )
    sent_bytes = Family(
        "barnabas_topic_sent_bytes_total",
        "counter",
        "Bytes of record batches that were sent to fetching clients.",
        labels=("topic",),
    )
    sent_records = Family(
        "barnabas_topic_sent_records_total",
        "counter",
        "Records that clients fetched, counted by offset when a client fetches the offset after them.",
        labels=("topic",),
    )
    families: ClassVar = (received_bytes, received_records, sent_bytes, sent_records)

    def __init__(self, probes: BrokerProbes) -> None:
        self._probes = probes

    def collect(self) -> Iterator[Metric]:
        """All families, from the counters as they are now."""
        topics = sorted(self._probes.topics.copy().items())

        def rows(value: Callable[[TopicProbe], int]) -> Iterator[Row]:
            return (((topic,), value(probe)) for topic, probe in topics)

        yield self.received_bytes.render(rows(lambda probe: probe.bytes_in))
        yield self.received_records.render(rows(lambda probe: probe.records_in))
        yield self.sent_bytes.render(rows(lambda probe: probe.bytes_out))
        yield self.sent_records.render(rows(lambda probe: probe.records_out))


class ConnectionCollector:
    """Connections of clients, and the bytes on them."""

    open = Family("barnabas_connections_open", "gauge", "Connections of clients that are open now.")
    accepted = Family("barnabas_connections_accepted_total", "counter", "Connections that were accepted.")
    refused = Family(
        "barnabas_connections_refused_total",
        "counter",
        "Connections that were refused, by reason (max_connections, max_connections_per_ip, connection_rate_per_ip, "
        "draining).",
        labels=("error",),
    )
    closed = Family(
        "barnabas_connections_closed_total",
        "counter",
        "Accepted connections that have ended, by reason; `client`: the client disconnected, which is not a fault.",
        labels=("error",),
    )
    received = Family(
        "barnabas_network_received_bytes_total", "counter", "Bytes received from clients, framing included."
    )
    sent = Family("barnabas_network_sent_bytes_total", "counter", "Bytes sent to clients, framing included.")
    receive_memory = Family(
        "barnabas_network_receive_memory_bytes",
        "gauge",
        "Memory of receive buffers beyond the first 256 KiB of each connection.",
    )
    receive_memory_limit = Family(
        "barnabas_network_receive_memory_limit_bytes",
        "gauge",
        "Bound of that memory (queued.max.request.bytes); one request may exceed it.",
    )
    waiting_for_memory = Family(
        "barnabas_network_connections_waiting_for_memory",
        "gauge",
        "Connections whose requests are not read further until other requests have released memory.",
    )
    families: ClassVar = (
        open,
        accepted,
        refused,
        closed,
        received,
        sent,
        receive_memory,
        receive_memory_limit,
        waiting_for_memory,
    )

    def __init__(self, probes: BrokerProbes) -> None:
        self._probe = probes.connections

    def collect(self) -> Iterator[Metric]:
        """All families, from the counters as they are now."""
        probe = self._probe
        yield self.open.render([((), probe.open)])
        yield self.accepted.render([((), probe.accepted)])
        yield self.refused.render(_by_error(probe.refused))
        yield self.closed.render(_by_error(probe.closed))
        yield self.received.render([((), probe.received_bytes)])
        yield self.sent.render([((), probe.sent_bytes)])
        yield self.receive_memory.render([((), probe.receive_memory)])
        yield self.receive_memory_limit.render([((), probe.receive_memory_limit)])
        yield self.waiting_for_memory.render([((), probe.waiting_for_memory)])


class EventLoopCollector:
    """Lag and stalls of the event loop."""

    lag = Family(
        "barnabas_event_loop_lag_seconds",
        "histogram",
        "Delay of a timer that fires twice a second: the time that a request waits before its own work begins.",
        bounds=LOOP_LAG_BOUNDS_SECONDS,
    )
    stalls = Family(
        "barnabas_event_loop_stalls_total",
        "counter",
        "Delays of 5 ms and more of a timer that fires every 20 to 100 ms, by cause: gc (garbage "
        "collection), running (the loop's thread ran), processor (it was ready, but others had the processors), "
        "blocked (it waited for a disk or a lock).",
        labels=("cause",),
    )
    stalled_seconds = Family(
        "barnabas_event_loop_stalled_seconds_total", "counter", "Sum of those delays, by cause.", labels=("cause",)
    )
    longest = Family(
        "barnabas_event_loop_longest_stall_seconds", "gauge", "Longest of those delays since the broker's start."
    )
    families: ClassVar = (lag, stalls, stalled_seconds, longest)

    def __init__(self, probes: BrokerProbes) -> None:
        self._lag = probes.loop_lag
        self._stalls = probes.loop_stalls

    def collect(self) -> Iterator[Metric]:
        """All families."""
        yield self.lag.render_histograms([((), self._lag)])
        stalls = self._stalls
        yield self.stalls.render(((cause,), count) for cause, count in sorted(stalls.counts.copy().items()))
        yield self.stalled_seconds.render(((cause,), value) for cause, value in sorted(stalls.seconds.copy().items()))
        yield self.longest.render([((), stalls.longest_seconds)])


class BrokerCollector:
    """The broker as a whole."""

    ready = Family("barnabas_ready", "gauge", "1 while the broker serves clients, else 0, like /healthz.")
    without_log = Family(
        "barnabas_partitions_without_log",
        "gauge",
        "Partitions that are not served: their logs could not be created, which is tried again every 2 s, or their log"
        " directory was offline at the start.",
    )
    build = Family(
        "barnabas_build_info",
        "gauge",
        "Always 1. Labels: the version, and the record kernel (compiled or python).",
        labels=("version", "kernel"),
    )
    families: ClassVar = (ready, without_log, build)

    def __init__(self, state: BrokerState, version: str, kernel: str) -> None:
        self._state = state
        self._build_labels = (version, kernel)

    def collect(self) -> Iterator[Metric]:
        """All families."""
        yield self.ready.render([((), int(self._state.ready))])
        yield self.without_log.render([((), self._state.partitions_without_log)])
        yield self.build.render([(self._build_labels, 1)])


def _by_error(counts: dict[str, int]) -> Iterator[Row]:
    return (((error,), count) for error, count in sorted(counts.copy().items()))
