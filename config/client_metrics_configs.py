"""Configs of a subscription of client metrics (resource type CLIENT_METRICS, KIP-714).

    metrics        prefixes of the names of the requested metrics; `*` is all of them, none is no metrics
    interval.ms    how often a client pushes them
    match          which clients do: NAME=EXPRESSION, and all of them must match; none is every client

Source: Kafka 4.3's ClientMetricsConfigs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.config.property import Property, PropertyType, by_name
from barnabas.config.validators import ListOf

METRICS: Final = "metrics"
INTERVAL_MS: Final = "interval.ms"
MATCH: Final = "match"

DEFAULT_INTERVAL_MS: Final = 5 * 60 * 1000
MIN_INTERVAL_MS: Final = 100
MAX_INTERVAL_MS: Final = 60 * 60 * 1000

MATCH_NAMES: Final = (
    "client_instance_id",
    "client_id",
    "client_software_name",
    "client_software_version",
    "client_source_address",
    "client_source_port",
)
"""What a client is matched by."""

CLIENT_METRICS_CONFIGS: Mapping[str, Property] = by_name(
    Property(INTERVAL_MS, PropertyType.INT, DEFAULT_INTERVAL_MS, "Metrics push interval in milliseconds"),
    Property(MATCH, PropertyType.LIST, (), "Client match criteria", ListOf()),
    Property(METRICS, PropertyType.LIST, (), "Telemetry metric name prefix list", ListOf()),
)
