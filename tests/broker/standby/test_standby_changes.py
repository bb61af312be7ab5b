"""A standby follows changed topics, metadata that was trimmed, and everything about users; refusals and freezes."""

from __future__ import annotations

import asyncio
import itertools
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas import Admin, AdminConfig, Producer, ProducerConfig
from barnabas.protocol.messages.cluster.standby import PartitionEnd, StandbyAction, StandbyRequest, StandbyResponse
from tests.broker.partitions.test_fetch_old_formats import LOG_NAME, OLD, serve_old_log
from tests.support.authorization.describe_world import JAAS, call, log_in, prepare
from tests.support.daemon import Daemon, start_daemon
from tests.support.eventually import eventually
from tests.support.kafka.kafka_wire import KafkaWire
from tests.support.mirrors.copies import MIRROR, admin_of, has_copied, until
from tests.support.small_disk import small_disk_or_skip, use_up_files
from tests.support.standby import Standby
from tests.support.storage.records import plain
from tests.support.wire import WireClient

NOT_LEADER, NOT_CONTROLLER, INVALID_REQUEST = 6, 41, 42


@pytest.fixture
def active(tmp_path: Path) -> Iterator[Daemon]:
    with start_daemon(
        tmp_path / "active",
        "metadata.log.max.record.bytes.between.snapshots=1000",
        "metadata.max.retention.bytes=0",
    ) as daemon:
        yield daemon


def segments(daemon: Daemon) -> dict[str, bytes]:
    """Return the stored batches of all partitions but the metadata log, whose segments begin where each side rolls."""
    return {
        f"{path.parent.name}/{path.name}": path.read_bytes().rstrip(b"\0")
        for path in sorted(daemon.data_directory.glob("*-[0-9]/*.log"))
        if not path.parent.name.startswith("__cluster_metadata")
    }


def until_equal(standby: Standby, active: Daemon) -> None:
    eventually(lambda: True if segments(standby) == segments(active) else None, what="equal segments", timeout_s=30)


async def produce(daemon: Daemon, topic: str, partition: int, count: int) -> None:
    async with Producer(ProducerConfig(bootstrap=daemon.bootstrap)) as producer:
        for number in range(count):
            await producer.send_and_wait(topic, b"%d" % number, partition=partition)


async def trim_metadata(active: Daemon, prefix: str) -> None:
    """Change the metadata until its log is trimmed."""
    log = active.data_directory / "__cluster_metadata-0"
    first = min(log.glob("*.log"))
    async with Admin(AdminConfig(bootstrap=active.bootstrap)) as admin:
        async with asyncio.timeout(60):
            for number in itertools.count():
                await admin.create_topic(f"{prefix}{number}", partitions=1)
                if min(log.glob("*.log")) != first:
                    return


def test_segments_of_old_message_formats_are_copied_as_they_are_stored(tmp_path: Path) -> None:
    with serve_old_log(tmp_path / "active") as active:
        with Standby(tmp_path / "standby", active.bootstrap) as standby:
            standby.until()
            until_equal(standby, active)
            assert segments(standby)[f"old-0/{LOG_NAME}"].startswith(OLD)


async def test_topics_that_change_while_the_standby_is_away_and_trimmed_metadata_are_followed(
    active: Daemon, tmp_path: Path
) -> None:
    for name in ("deleted", "again", "grown"):
        active.create_topic(name, partitions=1)
        await produce(active, name, 0, 20)
    await trim_metadata(active, "early")
    with Standby(tmp_path / "standby", active.bootstrap) as standby:
        copied = standby.until()["metadata"]["offset"]
        until_equal(standby, active)
        standby.stop()
        async with Admin(AdminConfig(bootstrap=active.bootstrap)) as admin:
            await admin.delete_topic("deleted")
            await admin.delete_topic("again")
            await admin.create_topic("again", partitions=1, configs={"retention.ms": "1234567890"})
            await admin.create_partitions("grown", 2)
            await produce(active, "again", 0, 3)
            await produce(active, "grown", 1, 5)
        await trim_metadata(active, "late")
        standby.start()
        standby.until()
        until_equal(standby, active)
        first = min((standby.data_directory / "__cluster_metadata-0").glob("*.log"))
        assert int(first.stem) > copied, "the copy did not begin again with a snapshot"
        async with Admin(AdminConfig(bootstrap=active.bootstrap)) as admin:
            await admin.delete_topic("again")
            await admin.create_topic("again", partitions=2)
            await produce(active, "again", 1, 4)
            names = sorted(each.name for each in await admin.list_topics())
        standby.until()
        until_equal(standby, active)
        standby.promote(planned=True)
        async with Admin(AdminConfig(bootstrap=standby.bootstrap)) as admin:
            assert sorted(each.name for each in await admin.list_topics()) == names
        await produce(standby, "grown", 1, 1)
        assert active.stop() == 0


def test_a_frozen_broker_refuses_writes_until_it_thaws_and_hands_over_only_when_frozen(active: Daemon) -> None:
    active.create_topic("t", partitions=1)
    with KafkaWire(active.host, active.port) as kafka, WireClient(active.host, active.port) as wire:

        def ask(action: StandbyAction, number: int, time_ms: int = 0) -> StandbyResponse:
            found: StandbyResponse = wire.call(StandbyRequest(action=action, max_wait_ms=time_ms, number=number))
            return found

        def is_created(name: str) -> int:
            topic = {"name": name, "num_partitions": 1, "replication_factor": -1, "assignments": [], "configs": []}
            answer = call(kafka, "create_topics", 5, {"topics": [topic], "timeout": 5000, "validate_only": False})[1]
            code: int = answer.topics[0].error_code
            return code

        kafka.topic_id("t")
        assert kafka.produce(9, "t", bytes(plain(3))).error_code == 0
        assert ask(StandbyAction.RETIRE, 1).error == INVALID_REQUEST
        assert ask(StandbyAction.FREEZE, 2, 60_000).error == INVALID_REQUEST
        frozen = ask(StandbyAction.FREEZE, 1, 60_000)
        assert [each for each in frozen.ends if each.topic == "t"] == [PartitionEnd("t", 0, 3)]
        assert kafka.produce(9, "t", bytes(plain(3))).error_code == NOT_LEADER
        assert is_created("u") == NOT_CONTROLLER
        assert ask(StandbyAction.FREEZE, 1, 60_000).error == INVALID_REQUEST
        ask(StandbyAction.UNFREEZE, 1)
        assert ask(StandbyAction.RETIRE, 1).error == INVALID_REQUEST
        assert kafka.produce(9, "t", bytes(plain(3))).error_code == 0
        assert is_created("u") == 0
        ask(StandbyAction.FREEZE, 1, 100)
        eventually(
            lambda: True if kafka.produce(9, "t", bytes(plain(1))).error_code == 0 else None,
            what="the end of the freeze",
            timeout_s=20,
        )
        ask(StandbyAction.FREEZE, 1, 60_000)
        assert ask(StandbyAction.RETIRE, 1).error == 0
    eventually(lambda: None if active.running else True, what="the stop", timeout_s=30)
    assert active.stop() == 0


SECURITY = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
    "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
        f"org.apache.kafka.common.security.plain.PlainLoginModule required {JAAS};"
    ),
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
    "delegation.token.secret.key": "canary-token",
    "connection.failed.authentication.delay.ms": "0",
}
DESCRIBES: list[tuple[str, int, dict[str, Any]]] = [
    ("describe_user_scram_credentials", 0, {"users": None}),
    ("describe_client_quotas", 1, {"components": [], "strict": False}),
    (
        "describe_acls",
        2,
        {
            "resource_type_filter": 1,
            "resource_name_filter": None,
            "pattern_type_filter": 1,
            "principal_filter": None,
            "host_filter": None,
            "operation": 1,
            "permission_type": 1,
        },
    ),
    ("offset_fetch", 7, {"group_id": "hidden-group", "topics": None, "require_stable": False}),
    ("list_transactions", 0, {"state_filters": [], "producer_id_filters": []}),
    ("describe_delegation_token", 3, {"owners": None}),
]


def described(daemon: Daemon) -> list[bytes]:
    with log_in(daemon, "admin") as wire:
        return [call(wire, *each)[0][4:] for each in DESCRIBES]


def login_of(directory: Path, user: str) -> list[str]:
    path = directory / f"{user}.properties"
    path.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.username={user}\nsasl.password=canary-{user}\n"
    )
    return ["--command-config", str(path)]


def test_users_acls_quotas_tokens_offsets_and_transactions_follow_and_rights_are_needed(tmp_path: Path) -> None:
    settings = [f"{name}={value}" for name, value in SECURITY.items()]
    with start_daemon(tmp_path / "active", *settings) as active:
        prepare(active, tmp_path / "mirror.properties")
        refused = Standby(tmp_path / "refused", active.bootstrap, *login_of(tmp_path, "watcher"), settings=SECURITY)
        refused.start()
        eventually(lambda: None if refused.running else True, what="the end of the refused standby", timeout_s=30)
        assert refused.stop() == 1
        assert "a standby needs CLUSTER_ACTION and ALTER on the cluster of its active broker" in refused.log
        with log_in(active, "admin") as wire:
            rights = [
                {
                    "resource_type": 4,
                    "resource_name": "kafka-cluster",
                    "resource_pattern_type": 3,
                    "principal": "User:viewer",
                    "host": "*",
                    "operation": operation,
                    "permission_type": 3,
                }
                for operation in (7, 9)  # ALTER, CLUSTER_ACTION
            ]
            answer = call(wire, "create_acls", 2, {"creations": rights})[1]
            assert {each.error_code.value for each in answer.results} == {0}
        before = described(active)
        with Standby(
            tmp_path / "standby",
            active.bootstrap,
            *login_of(tmp_path, "viewer"),
            settings=SECURITY,
        ) as standby:
            standby.until()
            standby.promote(planned=True)
            deadline = time.monotonic() + 20
            while (after := described(standby)) != before and time.monotonic() < deadline:
                time.sleep(0.05)  # the coordinators may be loading
            assert after == before
        assert active.stop() == 0


async def test_a_planned_switch_stops_the_mirrors_of_the_active_broker_and_the_next_one_goes_on(
    tmp_path: Path, active: Daemon
) -> None:
    """What a mirror appends after the ends were told would be missing at the standby, or never equal there."""
    with start_daemon(tmp_path / "source") as source, Standby(tmp_path / "standby", active.bootstrap) as standby:
        source.create_topic("t", partitions=1)
        async with admin_of(active) as admin:
            await admin.mirrors.create(MIRROR, bootstrap=[source.bootstrap], topics=["t"])
        await produce(source, "t", 0, 3)
        await until(active, has_copied(3))
        with WireClient(active.host, active.port) as wire:
            frozen = wire.call(StandbyRequest(action=StandbyAction.FREEZE, max_wait_ms=60_000, number=1))
            assert [each for each in frozen.ends if each.topic == "t"] == [PartitionEnd("t", 0, 3)]
            await produce(source, "t", 0, 4)
            found = await until(active, lambda _: True)
            assert [(each.state, each.offset) for each in found.partitions] == [("waiting", 3)]
            wire.call(StandbyRequest(action=StandbyAction.UNFREEZE))
        await until(active, has_copied(7))
        standby.until()
        await asyncio.to_thread(standby.promote, planned=True)
        await produce(source, "t", 0, 2)
        await until(standby, has_copied(9))
    assert active.stop() == 0


async def produce_one(bootstrap: str, topic: str) -> None:
    async with Producer(ProducerConfig(bootstrap=bootstrap)) as producer:
        await producer.send_and_wait(topic, b"v", partition=0)


def test_a_log_for_which_the_standby_had_no_room_is_copied_once_it_has(tmp_path: Path) -> None:
    with (
        small_disk_or_skip(tmp_path / "standby", "64m", files=200) as disk,
        start_daemon(tmp_path / "active") as active,
        Standby(disk, active.bootstrap) as standby,
    ):
        active.create_topic("before", partitions=1)
        eventually(lambda: (standby.data_directory / "before-0").exists(), what="the standby copies")
        use_up_files(disk / "filler")
        active.create_topic("t", partitions=1)
        asyncio.run(produce_one(active.bootstrap, "t"))
        refused = "the log of t-0 cannot be created, so it is not copied yet"
        eventually(lambda: refused in (disk / "daemon.log").read_text(), what="the standby has no room")
        shutil.rmtree(disk / "filler")
        until_equal(standby, active)
        assert (disk / "daemon.log").read_text().count(refused) == 1
