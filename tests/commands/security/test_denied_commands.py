"""Commands of a client that ACLs do not allow everything."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pytest
from click.testing import CliRunner, Result

from barnabas import Admin, AdminConfig, TopicPartition
from barnabas.clients.group_offsets import CommittedOffset
from barnabas.commands.main import main
from tests.support.daemon import Daemon, start_daemon


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A broker on which a topic with an ACL is restricted, and everything else is not."""
    with start_daemon(
        tmp_path_factory.mktemp("daemon"),
        "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found=true",
    ) as running:
        done(run(running, "topic", "create", "described", "--config", "cleanup.policy=compact"))
        done(run(running, "topic", "create", "compacted", "--config", "cleanup.policy=compact"))
        rule = ("acl", "add", "--principal", "User:ANONYMOUS", "--operation", "describe")
        done(run(running, *rule, "--topic", "described"))
        done(run(running, "topic", "create", "withdrawn"))
        asyncio.run(commit(running))
        done(run(running, *rule, "--topic", "withdrawn", "--deny"))
        done(run(running, *rule, "--group", "hidden", "--deny"))
        done(run(running, *rule, "--cluster", "--deny"))
        yield running


async def commit(daemon: Daemon) -> None:
    async with Admin(AdminConfig(bootstrap=daemon.bootstrap)) as admin:
        offsets = {TopicPartition(topic, 0): CommittedOffset(0) for topic in ("compacted", "withdrawn")}
        await admin.set_group_offsets("readers", offsets)


def run(daemon: Daemon, *arguments: str) -> Result:
    return CliRunner().invoke(main, [*arguments, "--bootstrap", daemon.bootstrap])


def done(result: Result) -> str:
    assert result.exit_code == 0, result.output
    return result.output


def test_a_topic_is_described_without_its_properties(daemon: Daemon) -> None:
    text = done(run(daemon, "topic", "describe", "described"))
    assert "partition" in text
    assert "properties are not shown: they need DESCRIBE_CONFIGS on the topic" in text
    (described,) = json.loads(done(run(daemon, "topic", "describe", "described", "--json")))
    assert (described["configs"], len(described["partitions"])) == (None, 1)


def test_a_compacted_topic_is_described_without_its_cleaning_state(daemon: Daemon) -> None:
    (described,) = json.loads(done(run(daemon, "topic", "describe", "compacted", "--json")))
    assert {each["name"]: each["value"] for each in described["configs"]} == {"cleanup.policy": "compact"}
    assert described["partitions"][0]["cleaning"] is None


@pytest.mark.parametrize(
    ("arguments", "explained"),
    [
        (("topic", "delete", "described"), "Topic authorization failed: no ACL allows this on the topic"),
        (("partition", "dirs"), "log directories cannot be described: no ACL allows this on the cluster"),
        (("explain", "start"), "Cluster authorization failed: no ACL allows this on the cluster"),
        (("explain", "group", "hidden"), "Group authorization failed: no ACL allows this on the group"),
    ],
)
def test_a_denial_names_the_next_step(daemon: Daemon, arguments: tuple[str, ...], explained: str) -> None:
    denied = run(daemon, *arguments)
    assert denied.exit_code == 1
    assert explained in denied.stderr
    assert denied.stderr.count("`barnabas acl explain") == 1


def test_a_group_is_explained_without_the_topics_that_may_not_be_described(daemon: Daemon) -> None:
    explained = json.loads(done(run(daemon, "explain", "group", "readers", "--json")))
    assert [each["topic"] for each in explained["partitions"]] == ["compacted"]


def test_a_partition_is_explained_without_its_transactions(daemon: Daemon) -> None:
    explained = json.loads(done(run(daemon, "explain", "partition", "described-0", "--json")))
    assert (len(explained["partitions"]), explained["transactions"]) == (1, None)
    text = done(run(daemon, "explain", "partition", "described-0"))
    assert text.endswith("open transactions are not shown: they need READ on the topic\n")
