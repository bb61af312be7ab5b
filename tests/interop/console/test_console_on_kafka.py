"""The console on Apache Kafka: every page has what Kafka's protocol tells, and says what only Barnabas does."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from tests.interop.clients.target import Target, running_kafka
from tests.support.console import ConsoleClient, running_console


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """Kafka with 20 records in `orders`, a transaction, and a group that has read 20 of its 21 offsets."""
    with running_kafka("4.3.0", tmp_path_factory.mktemp("kafka")) as target:
        target.create_topic("orders", 1, {"retention.ms": "86400000"})
        producer = Producer({"bootstrap.servers": target.bootstrap, "transactional.id": "mover"})
        producer.init_transactions(30)
        producer.begin_transaction()
        for number in range(20):
            producer.produce("orders", b'{"order": %d}' % number, b"k%d" % number, headers=[("h", b"v")])
        producer.commit_transaction(30)
        settings = {
            "bootstrap.servers": target.bootstrap,
            "group.id": "readers",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,  # it would commit the marker's offset too, if the consumer has passed it
        }
        consumer = Consumer(settings)
        consumer.subscribe(["orders"])
        records = consumer.consume(20, 30)
        assert len(records) == 20
        consumer.commit(message=records[-1], asynchronous=False)
        consumer.close()
        yield target


@pytest.fixture(scope="module")
def console(kafka: Target, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConsoleClient]:
    """A console of that Kafka."""
    log: Path = tmp_path_factory.mktemp("console") / "stderr"
    with running_console(kafka.bootstrap, log=log) as client:
        yield client


def test_the_overview_has_the_cluster_and_its_disks(console: ConsoleClient, kafka: Target) -> None:
    page = console.get("/").text
    assert re.search(r"<dt>Brokers</dt><dd>1</dd>", page)
    assert "online" in page


def test_topics_have_sizes_and_a_topic_says_what_is_missing(console: ConsoleClient) -> None:
    row = re.search(r'href="/topics/orders".*?</tr>', console.get("/topics").text, re.DOTALL)
    assert row is not None
    assert re.findall(r'class="number">([^<]+)<', row[0])[:2] == ["1", "21"]
    page = console.get("/topics/orders")
    assert page.status == 200
    assert "Segments, and what explains them, are told by Barnabas brokers only." in page.text


def test_records_are_read_with_their_transaction(console: ConsoleClient) -> None:
    page = console.get("/topics/orders/records").text
    assert page.count("&#34;order&#34;") == 20
    assert "transaction committed" in page
    record = console.get("/topics/orders/records/0/3").text
    assert '"row">h<' in record
    assert "In a transaction</dt><dd>yes" in record


def test_groups_transactions_and_settings_are_shown(console: ConsoleClient) -> None:
    group = console.get("/groups/readers")
    assert group.status == 200
    assert re.findall(r'class="number">(\d+)</td>', group.text) == ["0", "20", "21", "1"]
    assert "are told by Barnabas brokers only" in group.text
    assert "/groups/readers" in console.get("/topics/orders/groups").text
    assert "CompleteCommit" in console.get("/transactions").text
    settings = console.get("/topics/orders/settings").text
    assert "86400000" in settings


def test_topics_and_settings_are_changed(kafka: Target, tmp_path: Path) -> None:
    with running_console(kafka.bootstrap, "--allow-changes", log=tmp_path / "stderr") as console:
        assert console.get("/new-topic").status == 200
        form = {"name": "made", "partitions": "2", "settings": "retention.ms=60000"}
        assert console.post("/new-topic", form).status == 303
        console.get_until("/topics", lambda text: 'href="/topics/made"' in text)
        assert "already exists" in console.post("/new-topic", form).text
        told = "What it would delete is told by Barnabas brokers only."
        page = console.get_until("/topics/made/settings/retention.ms?to=1", lambda text: told in text)
        assert "controls the maximum time" in page  # Kafka's documentation of the property
        assert console.get("/topics/made/settings/retention.ms?to=soon").status == 409
        assert console.post("/topics/made/settings/retention.ms", {"action": "set", "to": "70000"}).status == 303
        console.get_until("/topics/made/settings/retention.ms", lambda text: "<dd>70000</dd>" in text)
        assert "has 3 partitions" in console.post("/topics/made/changes", {"action": "partitions", "total": "3"}).text
        records = {"action": "records", "partition": "0", "offset": "0", "confirm": "0"}
        assert "starts at offset 0" in console.post("/topics/made/changes", records).text
        assert console.post("/topics/made/changes", {"action": "delete", "confirm": "made"}).status == 303


def test_offsets_are_reset_and_a_transaction_is_aborted(kafka: Target, tmp_path: Path) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": "stuck"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("orders", b"open")
    producer.flush(30)
    with running_console(kafka.bootstrap, "--allow-changes", log=tmp_path / "stderr") as console:
        page = console.get("/reset-group/readers?target=earliest").text
        offsets = re.search(r'name="offsets" value="([^"]+)"', page)
        assert offsets is not None
        assert console.post("/reset-group/readers", {"offsets": html.unescape(offsets[1])}).status == 303
        assert 'class="number">0</td>' in console.get("/groups/readers").text
        assert "Abort the transaction of stuck" in console.get("/transactions").text
        assert console.post("/abort-transaction", {"id": "stuck"}).status == 303
        console.get_until("/transactions", lambda text: "Abort the transaction of" not in text)
        assert console.post("/delete-group/readers", {"confirm": "readers"}).status == 303
        assert "readers" not in console.get("/groups").text


def test_users_and_quotas_are_changed(kafka: Target, tmp_path: Path) -> None:
    with running_console(kafka.bootstrap, "--allow-changes", log=tmp_path / "stderr") as console:
        console.get("/users")
        form = {"user": "alice", "password": "secret", "mechanism": "SCRAM-SHA-256"}
        assert console.post("/users", form).status == 303
        console.get_until("/users", lambda text: '<th scope="row">alice</th>' in text)
        assert console.post("/quotas", {"user": "alice", "key": "producer_byte_rate", "value": "2048"}).status == 303
        console.get_until("/quotas", lambda text: "2,048" in text)
        assert "set authorizer.class.name=" in console.get("/acls").text
