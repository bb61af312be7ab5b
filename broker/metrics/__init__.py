"""The broker's metrics: Prometheus collectors, and the port that serves them. The counters are in `broker.probes`.

    state         the state that collectors read: the broker's phase, its log manager, its flusher
    server        the metrics port: /metrics and /healthz from one daemon thread

Only this package imports prometheus_client, and only when the first request for /metrics or /healthz arrives: a broker
that is never scraped pays neither the time nor the memory.
"""
