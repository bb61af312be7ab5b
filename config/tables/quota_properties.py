"""The properties of quotas and of limits on connections.

Source: Apache Kafka 4.3's QuotaConfig and SocketServerConfigs. The quotas themselves are not properties: they belong to
users, client ids and addresses, and kafka-configs or `barnabas quota` sets them.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.config.property import INT_MAX, Property, PropertyType, UpdateMode
from barnabas.config.validators import AtLeast, NumbersByHost

STRING, INT = PropertyType.STRING, PropertyType.INT
CLUSTER_WIDE = UpdateMode.CLUSTER_WIDE

QUOTAS = "Quotas and limits"

QUOTA_PROPERTIES: Sequence[Property] = (
    Property(
        "max.connections",
        INT,
        INT_MAX,
        "Most client connections on all listeners together, or with a listener's prefix on that listener; further ones "
        "are closed immediately.",
        AtLeast(0),
        CLUSTER_WIDE,
        group=QUOTAS,
        per_listener=True,
    ),
    Property(
        "max.connections.per.ip",
        INT,
        INT_MAX,
        "Most connections from one address; further ones are closed immediately.",
        AtLeast(0),
        CLUSTER_WIDE,
        group=QUOTAS,
    ),
    Property(
        "max.connections.per.ip.overrides",
        STRING,
        "",
        "max.connections.per.ip of single addresses or host names: host:number, comma-separated.",
        NumbersByHost(),
        CLUSTER_WIDE,
        group=QUOTAS,
    ),
    Property(
        "max.connection.creation.rate",
        INT,
        INT_MAX,
        "Most new connections per second on all listeners together, or with a listener's prefix on that listener; "
        "further ones wait.",
        AtLeast(0),
        CLUSTER_WIDE,
        group=QUOTAS,
        per_listener=True,
    ),
    Property(
        "quota.window.num",
        INT,
        11,
        "Samples that the rates of client quotas are computed from.",
        AtLeast(1),
        group=QUOTAS,
    ),
    Property(
        "quota.window.size.seconds",
        INT,
        1,
        "Length of a sample of client quotas.",
        AtLeast(1),
        group=QUOTAS,
    ),
    Property(
        "controller.quota.window.num",
        INT,
        11,
        "Samples of the quota on changes of topics and partitions: their number times their length is the burst.",
        AtLeast(1),
        group=QUOTAS,
    ),
    Property(
        "controller.quota.window.size.seconds",
        INT,
        1,
        "Length of a sample of the quota on changes of topics and partitions.",
        AtLeast(1),
        group=QUOTAS,
    ),
)
