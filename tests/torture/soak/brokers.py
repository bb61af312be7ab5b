"""Settings of a soak's brokers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import trustme

from tests.support.tls import inline_properties
from tests.torture.soak.load.share_members import SETTINGS

_SETTINGS = {
    "log.retention.check.interval.ms": 1000,
    "log.cleaner.backoff.ms": 500,
    "log.segment.delete.delay.ms": 1000,
    "log.cleaner.dedupe.buffer.size": 8 << 20,
    "offsets.topic.num.partitions": 2,
    "offsets.topic.segment.bytes": 65536,
    "transaction.state.log.num.partitions": 2,
    "transaction.state.log.segment.bytes": 65536,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 300,
    "group.consumer.heartbeat.interval.ms": 500,
    "group.consumer.min.heartbeat.interval.ms": 100,
    "metadata.log.max.record.bytes.between.snapshots": 65536,
    "metadata.max.retention.bytes": 262144,
    **SETTINGS,
}


def words(own: Mapping[str, object]) -> list[str]:
    """Return the settings of a broker, with `own` ones, as `name=value`."""
    return [f"{name}={value}" for name, value in {**_SETTINGS, **own}.items()]


def listeners(ports: Sequence[int], torn: str) -> dict[str, str]:
    """Return the properties of the listeners: plain, TLS, and one that clients reach at the address `torn`."""
    certificate = trustme.CA().issue_cert("127.0.0.1")
    clients, tls, behind_torn = (f"127.0.0.1:{port}" for port in ports)
    return {
        "listeners": f"PLAINTEXT://{clients},SSL://{tls},TORN://{behind_torn}",
        "advertised.listeners": f"PLAINTEXT://{clients},SSL://{tls},TORN://{torn}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SSL:SSL,TORN:PLAINTEXT",
        **inline_properties(certificate),
    }
