"""Producer, Consumer, Admin and the commands of this project at a cluster of three nodes of Apache Kafka 4.3.

The tests share the cluster, and the last one kills a node: run the module as a whole.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

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
from barnabas.clients.group_offsets import CommittedOffset
from barnabas.commands.main import main
from tests.support.kafka.three_nodes import ThreeNodes, three_nodes

PARTITIONS = 6
BOUND_S = 90.0


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreeNodes]:
    with three_nodes(
        tmp_path_factory.mktemp("nodes"),
        authorizer_class_name="org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        super_users="User:ANONYMOUS",
    ) as running:
        yield running


def admin_of(nodes: ThreeNodes) -> Admin:
    return Admin(AdminConfig(bootstrap=nodes.bootstrap))


async def create(nodes: ThreeNodes, topic: str) -> list[TopicPartition]:
    async with admin_of(nodes) as admin:
        await admin.create_topic(topic, partitions=PARTITIONS)
    return [TopicPartition(topic, number) for number in range(PARTITIONS)]


async def read(nodes: ThreeNodes, topic: str, isolation: str = "read_committed") -> list[bytes | None]:
    """Return the values of all partitions up to their ends, sorted."""
    config = ConsumerConfig(bootstrap=nodes.bootstrap, offset_reset="earliest", isolation=isolation)
    values: list[bytes | None] = []
    async with asyncio.timeout(BOUND_S), Consumer(config) as consumer:
        partitions = await consumer.partitions_for(topic)
        await consumer.assign(partitions)
        ends = await consumer.end_offsets(partitions)
        while any([await consumer.position(each) < ends[each] for each in partitions]):
            values += [record.value for record in await consumer.poll(timeout_ms=200)]
    return sorted(values, key=lambda value: value or b"")


async def send(producer: Producer, topic: str, name: str) -> list[bytes]:
    """Send a record to each partition, wait for them, and return their values."""
    values = [b"%s-%d" % (name.encode(), number) for number in range(PARTITIONS)]
    futures = [await producer.send(topic, value, partition=number) for number, value in enumerate(values)]
    await asyncio.gather(*futures)
    return values


async def test_records_of_plain_idempotent_and_transactional_producers_are_read_from_all_leaders(
    nodes: ThreeNodes,
) -> None:
    await create(nodes, "produced")
    expected: list[bytes] = []
    for settings in ({"acks": 1}, {"enable_idempotence": True, "compression": "zstd"}):
        async with Producer(ProducerConfig(bootstrap=nodes.bootstrap, **settings)) as producer:
            expected += await send(producer, "produced", next(iter(settings)))
    async with Producer(ProducerConfig(bootstrap=nodes.bootstrap, transactional_id="t")) as producer:
        for number in range(3):
            async with producer.transaction():
                expected += await send(producer, "produced", f"committed{number}")
        await producer.begin_transaction()
        await send(producer, "produced", "aborted")
        await producer.abort_transaction()
    async with admin_of(nodes) as admin:
        described = await admin.describe_topic("produced")
    assert {each.leader for each in described.partitions} == {1, 2, 3}
    assert await read(nodes, "produced") == sorted(expected)


async def test_offsets_are_committed_in_a_transaction_and_seen_by_the_group(nodes: ThreeNodes) -> None:
    source = await create(nodes, "transformed")
    async with Producer(ProducerConfig(bootstrap=nodes.bootstrap, transactional_id="transform")) as producer:
        async with producer.transaction():
            await send(producer, "transformed", "in")
        config = ConsumerConfig(bootstrap=nodes.bootstrap, group="g-in", auto_commit=False, offset_reset="earliest")
        async with asyncio.timeout(BOUND_S), Consumer(config) as consumer:
            await consumer.assign(source)
            taken = 0
            while taken < PARTITIONS:
                taken += len(await consumer.poll(timeout_ms=200))
            async with producer.transaction():
                await send(producer, "transformed", "out")
                sent = await producer.send_offsets_to_transaction(consumer)
    async with admin_of(nodes) as admin:
        committed = await admin.group_offsets("g-in", source, require_stable=True)
    assert {place: each.offset for place, each in committed.items()} == sent


async def test_two_members_share_a_topic_and_seek_and_find_offsets_by_time(nodes: ThreeNodes) -> None:
    places = await create(nodes, "shared")
    async with Producer(ProducerConfig(bootstrap=nodes.bootstrap)) as producer:
        for number in range(10):
            for place in places:
                await producer.send("shared", b"%d" % number, partition=place.partition, timestamp_ms=1_000 + number)
    config = ConsumerConfig(
        bootstrap=nodes.bootstrap,
        group="shared-group",
        offset_reset="earliest",
        auto_commit=False,
        session_timeout_ms=10_000,
        heartbeat_interval_ms=300,
    )
    async with asyncio.timeout(BOUND_S), Consumer(config) as one, Consumer(config) as other:
        await one.subscribe(["shared"])
        await other.subscribe(["shared"])
        while not (len(one.assignment) == len(other.assignment) == PARTITIONS // 2):
            await asyncio.gather(one.poll(timeout_ms=100), other.poll(timeout_ms=100))
        assert set(one.assignment) | set(other.assignment) == set(places)
        mine = sorted(one.assignment)
        for place in mine:
            one.seek(place, 4)
        seen: dict[TopicPartition, list[int]] = {}
        while sum(map(len, seen.values())) < 6 * len(mine):
            for record in await one.poll(timeout_ms=200):
                seen.setdefault(TopicPartition(record.topic, record.partition), []).append(record.offset)
        assert seen == {place: list(range(4, 10)) for place in mine}
        await one.commit()
        assert await one.committed(mine) == dict.fromkeys(mine, 10)
        found = await one.offsets_for_times(dict.fromkeys(places, 1007))
        assert {each.offset for each in found.values() if each is not None} == {7}
    async with admin_of(nodes) as admin:
        described = await admin.describe_group("shared-group")
        assert described.state == "Empty"


async def test_every_method_of_the_admin_is_answered(nodes: ThreeNodes) -> None:
    places = await create(nodes, "managed")
    async with Producer(ProducerConfig(bootstrap=nodes.bootstrap)) as producer:
        for _ in range(3):
            await send(producer, "managed", "v")
    async with admin_of(nodes) as admin:
        assert [each.node_id for each in (await admin.describe_cluster()).brokers] == [1, 2, 3]
        assert "managed" in [each.name for each in await admin.list_topics()]
        await admin.create_partitions("managed", PARTITIONS + 1)
        await admin.alter_configs(topic="managed", set_to={"retention.ms": "123456789"})
        (entry,) = await admin.describe_configs(topic="managed", names=["retention.ms"])
        assert entry.value == "123456789"
        for node_id in nodes.node_ids:
            await admin.alter_configs(broker=node_id, set_to={"log.cleaner.threads": "1"})
            (entry,) = await admin.describe_configs(broker=node_id, names=["node.id"])
            assert entry.value == str(node_id)
        listed = await admin.list_offsets(dict.fromkeys(places, -1))
        assert {each.offset for each in listed.values()} == {3}
        assert await admin.delete_records({**dict.fromkeys(places, 2), places[0]: -1}) == {
            **dict.fromkeys(places, 2),
            places[0]: 3,
        }
        for number in range(5):
            await admin.set_group_offsets(f"group-{number}", {places[0]: CommittedOffset(number)})
        groups = [each.group_id for each in await admin.list_groups()]
        assert {f"group-{number}" for number in range(5)} <= set(groups)
        assert (await admin.describe_group("group-3")).state == "Empty"
        await admin.delete_group("group-3")
        with pytest.raises(RefusedError, match="there is no group 'group-3'"):
            await admin.describe_group("group-3")
        directories = await admin.describe_log_dirs(places)
        assert [each.broker for each in directories] == [1, 2, 3]
        assert all(len(each.replicas) == PARTITIONS for each in directories)
        (path,) = (each.path for each in directories if each.broker == 2)
        assert await admin.alter_replica_log_dirs({places[0]: path}, broker=2) == {places[0]: None}
        with pytest.raises(
            RefusedError, match=r"explain_start needs a Barnabas broker; 127\.0\.0\.1:\d+ is Apache Kafka"
        ):
            await admin.explain_start()
        with pytest.raises(RefusedError, match="mirrors needs a Barnabas broker"):
            await admin.mirrors.describe("east")
        await admin.delete_topic("managed")


async def test_open_transactions_of_all_partitions_are_found_listed_and_aborted(nodes: ThreeNodes) -> None:
    places = await create(nodes, "opened")
    ids = [f"open-{number}" for number in range(4)]
    producers = [Producer(ProducerConfig(bootstrap=nodes.bootstrap, transactional_id=each)) for each in ids]
    try:
        for producer in producers:
            await producer.start()
            await producer.begin_transaction()
            await send(producer, "opened", "open")
        async with admin_of(nodes) as admin:
            listed = await admin.list_transactions(states=["Ongoing"], pattern="open-.*")
            assert [each.transactional_id for each in listed] == ids
            described = await admin.describe_transactions(ids)
            assert [getattr(each, "state", each) for each in described.values()] == ["Ongoing"] * 4
            found = await admin.open_transactions(places)
            assert len(found) == len(places) * len(ids)
            assert await admin.find_hanging_transactions(places, longer_than_ms=0) == []
            for each in ids:
                await admin.abort_transaction(each)
            async with asyncio.timeout(BOUND_S):
                while await admin.open_transactions(places):
                    await asyncio.sleep(0.1)
    finally:
        for producer in producers:
            await producer.close()


def run(nodes: ThreeNodes, *arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(main, [*arguments, "--bootstrap", nodes.bootstrap])
    assert result.exit_code == code, (arguments, result.output, result.exception)
    return result.output


def in_process(nodes: ThreeNodes, *arguments: str, stdin: bytes = b"") -> bytes:
    """Run a command that needs a real standard input or output."""
    command = [sys.executable, "-m", "barnabas", *arguments, "--bootstrap", nodes.bootstrap]
    return subprocess.run(command, input=stdin, check=True, timeout=BOUND_S, stdout=subprocess.PIPE).stdout


def as_json(nodes: ThreeNodes, *arguments: str) -> Any:
    return json.loads(run(nodes, *arguments, "--json"))


def test_the_commands_work(nodes: ThreeNodes, tmp_path: Path) -> None:
    password = tmp_path / "password"
    password.write_text("of alice")
    run(nodes, "topic", "create", "c", "--partitions", "3", "--config", "retention.ms=-1")
    run(nodes, "topic", "alter", "c", "--config", "segment.ms=1000000")
    run(nodes, "topic", "alter", "c", "--partitions", "4")
    assert "c" in [each["topic"] for each in as_json(nodes, "topic", "list")]
    run(nodes, "topic", "describe", "c")
    in_process(nodes, "produce", "c", stdin=b"a\nb\nc\n")
    read_all = ("consume", "c", "--from-beginning", "--max-messages", "3")
    assert sorted(in_process(nodes, *read_all).split()) == [b"a", b"b", b"c"]
    run(nodes, "offsets", "c")
    in_process(nodes, *read_all, "--group", "cg")
    run(nodes, "group", "list")
    run(nodes, "group", "describe", "cg")
    run(nodes, "group", "reset-offsets", "cg", "--topic", "c", "--to-latest", "--execute")
    run(nodes, "group", "delete", "cg")
    run(nodes, "config", "describe", "--topic", "c")
    run(nodes, "config", "alter", "--topic", "c", "--config", "retention.ms=5000000")
    run(nodes, "transaction", "list")
    run(nodes, "transaction", "find-hanging", "--longer-than", "1h")
    run(nodes, "acl", "add", "--principal", "User:alice", "--topic", "c", "--producer")
    assert "alice" in run(nodes, "acl", "list")
    run(nodes, "quota", "set", "--user", "alice", "producer_byte_rate=1000000")
    assert "alice" in run(nodes, "quota", "list")
    run(nodes, "user", "add", "alice", "--password-file", str(password))
    assert "alice" in run(nodes, "user", "list")
    run(nodes, "user", "delete", "alice")
    assert "needs a Barnabas broker" in run(nodes, "explain", "start", code=1)
    run(nodes, "topic", "delete-records", "c", "0", "0")
    run(nodes, "topic", "delete", "c")


async def test_a_killed_leader_and_coordinator_loses_nothing_and_repeats_nothing(nodes: ThreeNodes) -> None:
    """Last: the killed node does not come back."""
    places = await create(nodes, "moved")
    async with admin_of(nodes) as admin:
        leaders = [each.leader for each in (await admin.describe_topic("moved")).partitions]
    sent: list[bytes] = []
    seen: list[bytes | None] = []
    is_over = asyncio.Event()

    async def produce() -> None:
        config = ProducerConfig(bootstrap=nodes.bootstrap, transactional_id="moving")
        async with Producer(config) as producer:
            number = 0
            while not is_over.is_set():
                async with producer.transaction():
                    for place in places:
                        await producer.send("moved", b"%d-%d" % (number, place.partition), partition=place.partition)
                sent.extend(b"%d-%d" % (number, place.partition) for place in places)
                number += 1

    async def consume() -> None:
        config = ConsumerConfig(
            bootstrap=nodes.bootstrap, group="moving", offset_reset="earliest", isolation="read_committed"
        )
        async with Consumer(config) as consumer:
            await consumer.subscribe(["moved"])
            while not (is_over.is_set() and producing.done() and len(seen) >= len(sent)):
                seen.extend(record.value for record in await consumer.poll(timeout_ms=200))

    async with asyncio.timeout(2 * BOUND_S):
        producing = asyncio.create_task(produce())
        consuming = asyncio.create_task(consume())
        try:
            while len(seen) < 10 * PARTITIONS:
                await asyncio.wait([producing, consuming], timeout=0.1)
                assert not producing.done(), producing.result()
                assert not consuming.done(), consuming.result()
            await asyncio.to_thread(nodes.kill, leaders[0])
            before = len(sent)
            while len(sent) < before + 10 * PARTITIONS:
                await asyncio.wait([producing, consuming], timeout=0.1)
                assert not producing.done(), producing.result()
                assert not consuming.done(), consuming.result()
            is_over.set()
            await producing
            await consuming
        finally:
            for task in (producing, consuming):
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
    assert sorted(seen, key=str) == sorted(sent, key=str)
    assert await read(nodes, "moved") == sorted(sent)
