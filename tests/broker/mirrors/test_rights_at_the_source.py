"""The rights that a mirror needs at its source: one that has no others, and what each missing right does."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.protocol.messages.cluster.mirrors import MirrorDescription
from barnabas.protocol.messages.security.resources import Operation, ResourceType
from tests.support.authorization.describe_world import JAAS, call, log_in
from tests.support.daemon import Daemon, start_daemon
from tests.support.kafka.kafka_wire import KafkaWire
from tests.support.mirrors.copies import MIRROR, admin_of, problems_of, until
from tests.support.storage.records import plain

USER = "viewer"
TOPICS = ("whole", "no-configs", "no-read", "hidden")
GROUPS = ("shown", "secret")
_LITERAL, _ALLOW, _ANY = 3, 3, 1
GRANTS = (
    (ResourceType.TOPIC, "whole", Operation.READ),
    (ResourceType.TOPIC, "whole", Operation.DESCRIBE_CONFIGS),
    (ResourceType.TOPIC, "no-configs", Operation.READ),
    (ResourceType.TOPIC, "no-read", Operation.DESCRIBE),
    (ResourceType.TOPIC, "no-read", Operation.DESCRIBE_CONFIGS),
    (ResourceType.GROUP, "shown", Operation.DESCRIBE),
)


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Daemon]:
    with start_daemon(
        tmp_path / "source",
        "listeners=SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms=PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config="
        f"org.apache.kafka.common.security.plain.PlainLoginModule required {JAAS};",
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users=User:admin",
    ) as daemon:
        prepare(daemon)
        yield daemon


@pytest.fixture
def login(tmp_path: Path) -> Path:
    file = tmp_path / "source.properties"
    file.touch(mode=0o600)
    file.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.username={USER}\nsasl.password=canary-{USER}\n"
    )
    return file


def grant(wire: KafkaWire, *rights: tuple[ResourceType, str, Operation]) -> None:
    creations = [
        {
            "resource_type": int(kind),
            "resource_name": name,
            "resource_pattern_type": _LITERAL,
            "principal": f"User:{USER}",
            "host": "*",
            "operation": int(operation),
            "permission_type": _ALLOW,
        }
        for kind, name, operation in rights
    ]
    answer = call(wire, "create_acls", 2, {"creations": creations})[1]
    assert {each.error_code.value for each in answer.results} == {0}


def revoke_topic(wire: KafkaWire, topic: str) -> None:
    of_topic = {
        "resource_type_filter": int(ResourceType.TOPIC),
        "resource_name_filter": topic,
        "pattern_type_filter": _LITERAL,
        "principal_filter": None,
        "host_filter": None,
        "operation": _ANY,
        "permission_type": _ANY,
    }
    (result,) = call(wire, "delete_acls", 2, {"filters": [of_topic]})[1].filter_results
    assert result.matching_acls


def prepare(source: Daemon) -> None:
    """Create topics with records and a config, and groups with offsets, and grant the rights."""
    config = {"name": "max.message.bytes", "value": "777777"}
    topics = [
        {"name": name, "num_partitions": 1, "replication_factor": 1, "assignments": [], "configs": [config]}
        for name in TOPICS
    ]
    commit = {"partition_index": 0, "committed_offset": 2, "committed_metadata": ""}
    with log_in(source, "admin") as wire:
        values = {"topics": topics, "timeout": 30_000, "validate_only": False}
        assert {each.error_code for each in call(wire, "create_topics", 7, values)[1].topics} == {0}
        for name in TOPICS:
            assert wire.produce(9, name, bytes(plain(3))).error_code == 0
        for group in GROUPS:
            entries = [{"name": name, "partitions": [commit]} for name in ("whole", "hidden")]
            call(wire, "offset_commit", 8, {"group_id": group, "member_id": "", "topics": entries})
        grant(wire, *GRANTS)


def has_settled(found: MirrorDescription) -> bool:
    states = {each.topic: (str(each.state), each.offset) for each in found.partitions}
    return (
        states.get("whole") == states.get("no-configs") == ("caught_up", 3)
        and states.get("no-read", ("", 0))[0] == "failed"
    )


@pytest.mark.parametrize("by_name", [True, False])
async def test_each_missing_right_is_an_error_of_its_topic_only(
    source: Daemon, tmp_path: Path, login: Path, by_name: bool
) -> None:
    with start_daemon(tmp_path / "copy") as copy:
        async with admin_of(copy) as admin:
            await admin.mirrors.create(
                MIRROR,
                bootstrap=[source.bootstrap],
                topics=list(TOPICS) if by_name else ["[wnh].*"],
                groups=[".*"],
                command_config=str(login),
            )
            found = await until(copy, has_settled)
            problems = problems_of(found)
            expected = {"no-configs", "hidden"} if by_name else {"no-configs"}
            assert set(problems) == expected
            assert "DESCRIBE_CONFIGS" in problems["no-configs"]
            assert "TOPIC_AUTHORIZATION_FAILED" in problems.get("hidden", "TOPIC_AUTHORIZATION_FAILED")
            assert {each.topic: each.error for each in found.partitions} == {
                "whole": None,
                "no-configs": None,
                "no-read": "the source refuses READ on the topic (TOPIC_AUTHORIZATION_FAILED)",
            }
            assert found.error is None
            for topic, value in (("whole", "777777"), ("no-configs", "1048588")):
                configs = {each.name: each.value for each in await admin.describe_configs(topic=topic)}
                assert configs["max.message.bytes"] == value
            async with asyncio.timeout(30):
                # An offset that was copied before the topic's records is 0 until the next copy of the group.
                while not (offsets := await admin.group_offsets("shown")) or not all(
                    each.offset for each in offsets.values()
                ):
                    await asyncio.sleep(0.1)
            assert {(key.topic, each.offset) for key, each in offsets.items()} == {("whole", 2)}
            assert not await admin.group_offsets("secret")


@pytest.mark.parametrize("by_name", [True, False])
async def test_a_topic_deleted_here_stays_so_while_the_source_only_hides_its_topic(
    source: Daemon, tmp_path: Path, login: Path, by_name: bool
) -> None:
    with start_daemon(tmp_path / "copy") as copy:
        async with admin_of(copy) as admin:
            topics = ["whole", "hidden"] if by_name else ["[wh].*"]
            await admin.mirrors.create(
                MIRROR, bootstrap=[source.bootstrap], topics=topics, command_config=str(login), follow_configs=False
            )
            await until(copy, lambda found: [each.topic for each in found.topics] == ["whole"])
            await admin.delete_topic("whole")
        with log_in(source, "admin") as wire:
            revoke_topic(wire, "whole")
            grant(wire, (ResourceType.TOPIC, "hidden", Operation.READ))

        found = await until(copy, lambda found: len(found.topics) == 2 or "whole" not in str(found.topics))

        # It has looked since, and seen the other topic.
        states = {each.topic: each.state for each in found.topics}
        assert states == {"hidden": "mirrored", "whole": "deleted_here"}
