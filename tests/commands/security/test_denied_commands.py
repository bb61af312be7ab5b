"""Commands of a client that ACLs do not allow everything."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from click.testing import CliRunner, Result

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
        done(run(running, *rule, "--cluster", "--deny"))
        yield running


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
        (("partition", "dirs"), "Cluster authorization failed: no ACL allows this on the cluster"),
    ],
)
def test_a_denial_names_the_next_step(daemon: Daemon, arguments: tuple[str, ...], explained: str) -> None:
    denied = run(daemon, *arguments)
    assert denied.exit_code == 1
    assert explained in denied.stderr
    assert denied.stderr.count("`barnabas acl explain") == 1
