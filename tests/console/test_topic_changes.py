"""Changes of topics: settings with their effect shown first, new topics, more partitions, deletions."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.clients.admin.admin import Admin
from barnabas.clients.config import AdminConfig, ProducerConfig
from barnabas.clients.producer.producer import Producer
from tests.support.console import ConsoleClient
from tests.support.daemon import Daemon


@pytest.fixture(scope="module", autouse=True)
def topics(broker: Daemon) -> None:
    """`orders` with several segments, none of which retention deletes yet, and `trimmed`."""

    async def create() -> None:
        async with Admin(AdminConfig(bootstrap=broker.bootstrap)) as admin:
            await admin.create_topic("orders", configs={"segment.bytes": "1024", "retention.ms": "86400000"})
            await admin.create_topic("trimmed")
        async with Producer(ProducerConfig(bootstrap=broker.bootstrap)) as producer:
            for _ in range(6):
                await producer.send_and_wait("orders", b"x" * 400)
                await producer.send_and_wait("trimmed", b"x")

    asyncio.run(create())


def config_of(broker: Daemon, name: str) -> str | None:
    async def ask() -> str | None:
        async with Admin(AdminConfig(bootstrap=broker.bootstrap)) as admin:
            (entry,) = [each for each in await admin.describe_configs(topic="orders") if each.name == name]
            return entry.value

    return asyncio.run(ask())


def test_a_setting_is_changed_after_its_effect_was_shown(broker: Daemon, changing_console: ConsoleClient) -> None:
    page = changing_console.get("/topics/orders/settings/retention.bytes?to=1500").text
    assert "retention.bytes of orders is -1, from the default" in page
    assert "with retention.bytes=1500, the next check deletes 1 further segment (" in page
    assert config_of(broker, "retention.bytes") == "-1"
    form = {"action": "set", "to": "1500000"}
    assert changing_console.post("/topics/orders/settings/retention.bytes", form).status == 303
    assert config_of(broker, "retention.bytes") == "1500000"
    page = changing_console.get("/topics/orders/settings/retention.bytes").text
    assert "1500000" in page
    assert "Remove the topic" in page
    assert changing_console.post("/topics/orders/settings/retention.bytes", {"action": "remove"}).status == 303
    assert config_of(broker, "retention.bytes") == "-1"


def test_a_value_that_the_broker_refuses_is_named(broker: Daemon, changing_console: ConsoleClient) -> None:
    page = changing_console.get("/topics/orders/settings/retention.ms?to=soon")
    assert page.status == 409
    assert "retention.ms=soon" in page.text
    assert changing_console.post("/topics/orders/settings/retention.ms", {"action": "set", "to": "soon"}).status == 409
    assert config_of(broker, "retention.ms") == "86400000"
    assert changing_console.get("/topics/orders/settings/no.such").status == 404


def test_a_topic_is_created_grows_and_is_deleted(changing_console: ConsoleClient) -> None:
    assert changing_console.get("/new-topic").status == 200
    form = {"name": "made", "partitions": "2", "settings": "retention.ms = 60000\n\ncleanup.policy=delete"}
    answer = changing_console.post("/new-topic", form)
    assert (answer.status, answer.headers["location"]) == (303, "/topics/made")
    assert "60000" in changing_console.get("/topics/made/settings").text
    assert "already exists" in changing_console.post("/new-topic", form).text
    assert "is not of the form" in changing_console.post("/new-topic", {"name": "m", "settings": "what"}).text
    for large in ({"name": "m", "partitions": "2147483648"}, {"name": "m", "replicas": "32768"}):
        assert "is not a number from 0 to" in changing_console.post("/new-topic", large).text
    grown = changing_console.post("/topics/made/changes", {"action": "partitions", "total": "3"})
    assert "The topic has 3 partitions" in grown.text
    assert changing_console.post("/topics/made/changes", {"action": "partitions", "total": "1"}).status == 409
    wrong = changing_console.post("/topics/made/changes", {"action": "delete", "confirm": "mad"})
    assert "type the topic" in wrong.text
    assert changing_console.post("/topics/made/changes", {"action": "delete", "confirm": "made"}).status == 303
    assert changing_console.get("/topics/made").status == 404


def test_records_are_deleted_up_to_an_offset(changing_console: ConsoleClient) -> None:
    changing_console.get("/topics/trimmed/changes")
    form = {"action": "records", "partition": "0", "offset": "2", "confirm": "3"}
    assert "type the offset, 2, a second time" in changing_console.post("/topics/trimmed/changes", form).text
    done = changing_console.post("/topics/trimmed/changes", {**form, "confirm": "2"})
    assert "Partition 0 now starts at offset 2" in done.text
    beyond = changing_console.post("/topics/trimmed/changes", {**form, "offset": "99", "confirm": "99"})
    assert beyond.status == 409


def test_a_console_that_only_shows_refuses_every_change(broker: Daemon, console: ConsoleClient) -> None:
    assert "Set retention" not in console.get("/topics/orders/settings/retention.bytes?to=5000000").text
    assert console.get("/new-topic").status == 403
    assert console.get("/topics/orders/changes").status == 403
    console.token = "guessed"
    for path, form in (
        ("/new-topic", {"name": "x"}),
        ("/topics/orders/changes", {"action": "delete", "confirm": "orders"}),
        ("/topics/orders/settings/retention.ms", {"action": "set", "to": "1"}),
    ):
        assert console.post(path, form).status == 403
    assert config_of(broker, "retention.ms") == "86400000"


def test_a_console_answers_for_its_name_in_any_case(changing_console: ConsoleClient) -> None:
    for host in ("console.example", "CONSOLE.example:8080"):
        assert changing_console.get("/topics", Host=host).status == 200


def test_a_change_needs_the_token_and_the_own_origin(broker: Daemon, changing_console: ConsoleClient) -> None:
    changing_console.get("/topics/orders/changes")
    path, form = "/topics/orders/settings/retention.ms", {"action": "set", "to": "1"}
    assert changing_console.post(path, {**form, "csrf_token": "other"}).status == 403
    assert changing_console.post(path, form, Origin="http://elsewhere.example").status == 403
    assert config_of(broker, "retention.ms") == "86400000"
