"""What the broker tells about itself: plain counters, Prometheus collectors, and the port that serves them.

    probes        plain-integer counters that the daemon's hot paths increment; knows no Prometheus
    state         what the collectors may look at: the phase of the broker and its log manager
    server        the metrics port: /metrics and /healthz from one daemon thread

Only this package imports prometheus_client, and only when the first request for /metrics or /healthz arrives: a broker
that nobody scrapes pays neither the time nor the memory.
"""
