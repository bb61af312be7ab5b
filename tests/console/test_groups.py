"""Groups: the list, a group's members, offsets and lag, and the groups of a topic."""

from __future__ import annotations

import asyncio
import contextlib
import html
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.clients.admin.admin import Admin
from barnabas.clients.config import AdminConfig, ConsumerConfig, ProducerConfig
from barnabas.clients.consumer.consumer import Consumer
from barnabas.clients.errors import ClientError
from barnabas.clients.group_offsets import CommittedOffset
from barnabas.clients.producer.producer import Producer
from barnabas.console.cluster.history import SAMPLES_MAX, STEP_S, History
from barnabas.protocol.topic_partition import TopicPartition
from tests.support.console import ConsoleClient, running_console
from tests.support.daemon import Daemon

GROUP = "billing/eu <1>"
PATH = "/groups/billing%2Feu%20%3C1%3E"


@pytest.fixture(scope="module")
def topics(broker: Daemon) -> None:
    """`bills` with 5 records in each of 2 partitions, and `moves`, which is empty."""

    async def fill() -> None:
        async with Admin(AdminConfig(bootstrap=broker.bootstrap)) as admin:
            await admin.create_topic("bills", partitions=2)
            await admin.create_topic("moves")
            async with Producer(ProducerConfig(bootstrap=broker.bootstrap)) as producer:
                for number in range(10):
                    await producer.send_and_wait("bills", b"x", partition=number % 2)

    asyncio.run(fill())
    commit(broker)  # before a console observes the cluster


def commit(broker: Daemon) -> None:
    """Let GROUP have read 3 of the 10 records."""

    async def ask() -> None:
        async with Admin(AdminConfig(bootstrap=broker.bootstrap)) as admin:
            await admin.set_group_offsets(
                GROUP, {TopicPartition("bills", 0): CommittedOffset(1), TopicPartition("bills", 1): CommittedOffset(2)}
            )

    asyncio.run(ask())


@pytest.fixture(autouse=True)
def groups(topics: None, broker: Daemon) -> None:
    """A group without members that is 7 records behind, whatever an earlier test did to it."""

    commit(broker)


@pytest.fixture
def console(groups: None, broker: Daemon, tmp_path: Path) -> Iterator[ConsoleClient]:
    """A console that has not observed the group before its offsets were committed: what it shows may be seconds old."""
    with running_console(broker.bootstrap, log=tmp_path / "stderr") as client:
        yield client


@pytest.fixture
def member(broker: Daemon) -> Iterator[None]:
    """A member of the classic group `live`, until the test ends."""
    loop = asyncio.new_event_loop()

    async def join() -> Consumer:
        consumer = Consumer(ConsumerConfig(bootstrap=broker.bootstrap, group="live", offset_reset="earliest"))
        await consumer.start()
        await consumer.subscribe(["bills"])
        async with asyncio.timeout(20):
            await anext(aiter(consumer))
        return consumer

    consumer = loop.run_until_complete(join())
    try:
        yield
    finally:
        loop.run_until_complete(consumer.close())
        loop.close()


def test_groups_are_listed_with_their_lag(console: ConsoleClient) -> None:
    page = console.get("/groups?search=BILLING").text
    assert re.search(r'href="(/groups/[^"]+)"', page)[1] == PATH  # type: ignore[index]
    assert "billing/eu &lt;1&gt;" in page
    assert re.findall(r'class="number">([^<]+)</td>', page) == ["2", "7"]


def test_a_group_has_its_offsets_and_what_the_broker_explains(console: ConsoleClient) -> None:
    page = console.get(PATH)
    assert page.status == 200
    cells = re.findall(r'class="number">(\d+)</td>', page.text)
    assert cells == ["0", "1", "5", "4", "1", "2", "5", "3"]
    assert "The group has no members." in page.text
    assert "What the broker says" in page.text


def test_a_group_of_many_partitions_has_pages_and_a_warning_of_those_on_other_pages(
    broker: Daemon, tmp_path: Path
) -> None:
    async def fill() -> None:
        async with Admin(AdminConfig(bootstrap=broker.bootstrap)) as admin:
            await admin.create_topic("many", partitions=101)
            async with Producer(ProducerConfig(bootstrap=broker.bootstrap)) as producer:
                for _ in range(3):
                    await producer.send_and_wait("many", b"x", partition=100)
            await admin.set_group_offsets(
                "wide", {TopicPartition("many", number): CommittedOffset(0) for number in range(101)}
            )
            await admin.delete_records({TopicPartition("many", 100): 2})

    asyncio.run(fill())
    with running_console(broker.bootstrap, log=tmp_path / "stderr") as console:
        first, second, by_lag = (console.get(f"/groups/wide?{query}").text for query in ("", "page=2", "sort=lag"))
        none = console.get("/groups/wide?search=other").text
    rows = r'<th scope="row"><a href="/topics/many">'
    assert [len(re.findall(rows, page)) for page in (first, second, by_lag, none)] == [100, 1, 100, 0]
    lost = "2 records from 0 to 1 are deleted unread"
    assert f"<p>group wide, many-100: retention has overtaken the group: {lost}" in first
    assert (lost in second, "group wide, many-100: " in second) == (True, False)
    assert "Page 1 of 2" in first
    assert "No topic matches." in none
    assert "it has no committed offsets" not in none


def test_a_member_is_shown_with_its_partitions(
    member: None, broker: Daemon, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with running_console(broker.bootstrap, log=tmp_path_factory.mktemp("live") / "stderr") as console:
        page = console.get("/groups/live").text
    assert "bills: 0, 1" in page
    assert "<dd>Stable</dd>" in page


def test_the_groups_of_a_topic_are_shown_with_their_lag(console: ConsoleClient) -> None:
    page = console.get("/topics/bills/groups").text
    assert PATH in page
    assert '<td class="number">2 of 2</td><td class="number">7</td>' in page


def test_the_lag_of_a_group_is_kept_over_time(console: ConsoleClient) -> None:
    page = console.get(PATH).text
    address = re.search(r'data-chart="([^"]+)"', page)
    assert address is not None
    times, values = json.loads(console.get(html.unescape(address[1])).text)
    assert len(times) == len(values) > 0
    assert values[0] == 7
    assert json.loads(console.get("/series/lag?name=nobody").text) == [[], []]


def test_an_hour_of_samples_is_kept_with_the_gaps_between_them() -> None:
    history = History()
    for number in range(SAMPLES_MAX + 10):
        history.add(number * STEP_S, {"always": number} if number % 2 else {"always": number, "sometimes": 1.5})
    times, values = history.series("always")
    assert (times[0], times[-1], len(times)) == (10 * STEP_S, (SAMPLES_MAX + 9) * STEP_S, SAMPLES_MAX)
    assert (values[0], values[-1]) == (10, SAMPLES_MAX + 9)
    assert history.series("sometimes").values[-4:] == [1.5, None, 1.5, None]
    history.add((SAMPLES_MAX + 9) * STEP_S + 1, {"always": 0})  # too soon for another sample
    assert history.series("always").values[-1] == SAMPLES_MAX + 9
    for number in range(SAMPLES_MAX):
        history.add((2 * SAMPLES_MAX + number) * STEP_S, {"always": 1})
    assert history.series("sometimes") == ((), ()), "a name that is gone for an hour is forgotten"


def test_a_group_that_does_not_exist_is_named(console: ConsoleClient) -> None:
    page = console.get("/groups/nobody")
    assert page.status == 409
    assert "nobody" in page.text


RESET = PATH.replace("/groups/", "/reset-group/")


def offsets_of(page: str) -> str:
    found = re.search(r'name="offsets" value="([^"]+)"', page)
    assert found is not None, page
    return html.unescape(found[1])


def test_offsets_are_reset_after_a_dry_run(broker: Daemon, changing_console: ConsoleClient) -> None:
    def committed() -> list[int]:
        async def ask() -> list[int]:
            async with Admin(AdminConfig(bootstrap=broker.bootstrap)) as admin:
                found = await admin.group_offsets(GROUP)
                return [offset.offset for _, offset in sorted(found.items())]

        return asyncio.run(ask())

    page = changing_console.get(f"{RESET}?target=shift&number=-1").text
    assert re.findall(r'class="number">([^<]+)</td>', page) == ["0", "1", "0", "-1", "1", "2", "1", "-1"]
    assert committed() == [1, 2]
    page = changing_console.get(f"{RESET}?target=latest&topic=bills").text
    assert json.loads(offsets_of(page)) == [["bills", 0, 5], ["bills", 1, 5]]
    assert changing_console.get(f"{RESET}?target=offset&number=99").text.count('<td class="number">5</td>') == 2
    early = changing_console.get(f"{RESET}?target=time&number=2001-01-01T00:00").text
    assert json.loads(offsets_of(early)) == [["bills", 0, 0], ["bills", 1, 0]]
    for wrong in ("target=time&number=soon", "target=offset&number=-3", "target=moon", "target=latest&topic=none"):
        assert changing_console.get(f"{RESET}?{wrong}").status == 409
    assert changing_console.post(RESET, {"offsets": offsets_of(page)}).status == 303
    assert committed() == [5, 5]
    for wrong in ("[1]", '[["bills", 0, 1e999]]', '[["bills", 0, 9223372036854775808]]', '[["bills", -1, 0]]'):
        assert changing_console.post(RESET, {"offsets": wrong}).status == 400


@pytest.mark.usefixtures("member")
def test_a_group_with_members_keeps_its_offsets(changing_console: ConsoleClient) -> None:
    page = changing_console.get("/reset-group/live?target=latest&topic=bills").text
    assert "The group has 1 members" in page
    answer = changing_console.post("/reset-group/live", {"offsets": offsets_of(page)})
    assert (answer.status, "stop them first" in answer.text) == (409, True)
    assert changing_console.post("/delete-group/live", {"confirm": "live"}).status == 409


def test_a_group_is_deleted_when_its_name_is_typed(changing_console: ConsoleClient) -> None:
    changing_console.get(RESET)
    path = PATH.replace("/groups/", "/delete-group/")
    assert changing_console.post(path, {"confirm": "billing"}).status == 409
    assert changing_console.post(path, {"confirm": GROUP}).status == 303
    assert changing_console.get(RESET).status == 409


def test_an_open_transaction_is_aborted(broker: Daemon, changing_console: ConsoleClient) -> None:
    async def begin() -> None:
        async with Producer(ProducerConfig(bootstrap=broker.bootstrap, transactional_id="mover")) as producer:
            with contextlib.suppress(ClientError):  # the producer is fenced
                async with producer.transaction():
                    await producer.send_and_wait("moves", b"x")
                    page = await asyncio.to_thread(changing_console.get, "/transactions")
                    assert "Abort the transaction of mover" in page.text
                    answer = await asyncio.to_thread(changing_console.post, "/abort-transaction", {"id": "mover"})
                    assert answer.status == 303

    asyncio.run(begin())
    assert "Abort the transaction of" not in changing_console.get("/transactions").text
    assert changing_console.post("/abort-transaction", {"id": "unknown"}).status == 409
