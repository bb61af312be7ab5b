"""The Grafana dashboard's queries, run by a real Prometheus that scrapes a busy broker.

A query that Prometheus rejects, or that returns nothing here, would be an empty panel.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from barnabas import (
    Admin,
    AdminConfig,
    Consumer,
    ConsumerConfig,
    Producer,
    ProducerConfig,
    RefusedError,
    TopicPartition,
)
from tests.support.daemon import Daemon, start_daemon
from tests.support.dashboard import queries
from tests.support.interop import need_commands
from tests.support.prometheus import Prometheus

pytestmark = pytest.mark.timeout(300)

RECORDS = 50
SETTINGS = ("log.cleaner.backoff.ms=100", "metrics.group.lag.enable=true")


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    need_commands("prometheus")
    with start_daemon(tmp_path_factory.mktemp("daemon"), *SETTINGS) as running:
        yield running


@pytest.fixture(scope="module")
def prometheus(daemon: Daemon, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    with Prometheus(tmp_path_factory.mktemp("prometheus"), daemon.metrics_port) as running:
        running.until('up{job="barnabas"} == 1')
        yield running


async def some_of_everything(daemon: Daemon) -> None:
    """Cause samples of all kinds: traffic, commits of a flushed topic, compaction, lag, a refused request."""
    async with Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin:
        await admin.create_topic("orders", configs={"flush.messages": "1", "retention.ms": "604800000"})
        await admin.create_topic("prices", configs={"cleanup.policy": "compact"})
        with pytest.raises(RefusedError):
            await admin.create_topic("orders")
    await traffic(daemon)
    async with Consumer(ConsumerConfig(bootstrap=daemon.bootstrap, group="billing", offset_reset="earliest")) as reader:
        await reader.subscribe(["orders"])
        assert await reader.poll(RECORDS // 2, timeout_ms=60_000)


async def traffic(daemon: Daemon) -> None:
    async with Producer(ProducerConfig(bootstrap=daemon.bootstrap)) as producer:
        for number in range(RECORDS):
            await producer.send("orders", b"x" * 100)
            await producer.send("prices", b"x" * 100, key=b"%d" % (number % 5))


async def test_prometheus_answers_every_query_of_the_dashboard_with_series(
    daemon: Daemon, prometheus: Prometheus
) -> None:
    prometheus.until("barnabas_task_runs_total")
    await some_of_everything(daemon)
    prometheus.until('barnabas_cleaner_dirty_ratio{topic="prices"}')
    asked = list(queries())
    assert len(asked) > 40
    for query in asked:
        assert prometheus.until(query.expression), query.panel


async def test_a_groups_lag_in_prometheus_is_what_it_has_not_committed(daemon: Daemon, prometheus: Prometheus) -> None:
    async with Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin:
        await admin.create_topic("counted")
    async with Producer(ProducerConfig(bootstrap=daemon.bootstrap)) as producer:
        for _ in range(7):
            await producer.send("counted", b"x")
    async with Consumer(ConsumerConfig(bootstrap=daemon.bootstrap, group="counting")) as consumer:
        await consumer.commit({TopicPartition("counted", 0): 3})
    assert prometheus.until('sum by (group) (barnabas_group_lag_records{topic="counted"} == 4)')


def test_prometheus_refuses_what_is_no_query(prometheus: Prometheus) -> None:
    with pytest.raises(AssertionError, match="parse error"):
        prometheus.query("sum by (topic (barnabas_log_size_bytes)")
