"""One browser, broker and console for the tests of a file."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer as TransactionalProducer

from barnabas.clients.admin.admin import Admin
from barnabas.clients.config import AdminConfig, ProducerConfig
from barnabas.clients.group_offsets import CommittedOffset
from barnabas.clients.producer.producer import Producer
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.authorization.table import STANDARD_AUTHORIZER
from tests.support.browser.chromium import Browser, running_browser
from tests.support.console import ConsoleClient, running_console
from tests.support.daemon import Daemon, start_daemon
from tests.support.kafka.kafka_wire import KafkaWire
from tests.support.kafka.telemetry import ask, gauge, metrics_data, push, subscribe

HOSTILE = b"</code></pre><img src=x onerror=window.injected=1><script>window.injected=1</script>\n\nevent: end\rdata: x"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser with a new profile."""
    with running_browser(tmp_path_factory.mktemp("browser")) as running:
        yield running


@pytest.fixture(scope="module")
def broker(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A broker that has something for every page; asks for the browser first, so that without one nothing starts."""
    settings = (f"authorizer.class.name={STANDARD_AUTHORIZER}", "super.users=User:ANONYMOUS")
    daemon = start_daemon(tmp_path_factory.mktemp("broker"), *settings, "client.metrics.enable=true")
    try:
        asyncio.run(_fill(daemon.bootstrap))
        _push_metrics(daemon)
        producer = TransactionalProducer({"bootstrap.servers": daemon.bootstrap, "transactional.id": "stuck"})
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce("payments", b"open", b"k2")
        producer.flush(30)
        yield daemon
    finally:
        daemon.stop()


@pytest.fixture(scope="module")
def address(broker: Daemon, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a console that may change things: its pages have all that a page can have."""
    log = tmp_path_factory.mktemp("console") / "stderr"
    with running_console(broker.bootstrap, "--allow-changes", log=log) as client:
        _grant(client)
        yield f"http://{client.host}"


def _push_metrics(daemon: Daemon) -> None:
    """Push two values with a name that a page must not take for its own."""
    with KafkaWire(daemon.host, daemon.port) as client:
        client.call("api_versions", 3, client_software_name="pusher", client_software_version="1")
        subscribe(client, "all", metrics="*", interval_ms="60000")
        data = metrics_data(gauge(HOSTILE.decode(), 0.5, topic=HOSTILE.decode()), gauge("latency.avg", 2.0))
        assert push(client, ask(client), data) == 0


def _grant(console: ConsoleClient) -> None:
    """Add a user, a rule and a quota."""
    console.get("/users")
    user = {"user": "alice", "password": "alice-secret", "mechanism": "SCRAM-SHA-512"}
    rule = {"permission": "ALLOW", "operation": "READ", "resource_type": "TOPIC", "pattern": "PREFIXED"}
    rule |= {"principal": "User:alice", "resource_name": "orders"}
    quota = {"user": "alice", "key": "producer_byte_rate", "value": "1048576"}
    for path, form in (("/users", user), ("/acls", rule), ("/quotas", quota)):
        assert console.post(path, form).status == 303


async def _fill(bootstrap: str) -> None:
    """`orders` has segments, records with headers, and a group without members; `payments` is compacted."""
    async with Admin(AdminConfig(bootstrap=bootstrap)) as admin:
        configs = {"segment.bytes": "4096", "retention.ms": "86400000"}
        await admin.create_topic("orders", partitions=2, configs=configs)
        await admin.create_topic("payments", configs={"cleanup.policy": "compact"})
        await admin.create_topic("hostile")
        async with Producer(ProducerConfig(bootstrap=bootstrap)) as producer:
            for number in range(60):
                value = b'{"order": %d, "items": "%s"}' % (number, b"x" * 400)
                headers = [("content-type", b"application/json")]
                await producer.send_and_wait("orders", value, b"k%d" % number, partition=number % 2, headers=headers)
            await producer.send_and_wait("payments", b"paid", b"k1")
            await producer.send_and_wait("hostile", HOSTILE, HOSTILE, headers=[(HOSTILE.decode(), HOSTILE)])
        await admin.set_group_offsets("billing", {TopicPartition("orders", 0): CommittedOffset(10)})
