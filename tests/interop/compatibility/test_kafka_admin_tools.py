"""kafka-topics, kafka-configs and kafka-cluster print the same for Barnabas and for Kafka.

Unavoidable differences are removed first: ports, ids, and the min.insync.replicas that Kafka 4.x sets for all brokers
when it formats a directory.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.daemon import start_daemon
from tests.support.kafka.apache_kafka import Kafka, KafkaError
from tests.support.kafka.combinations import NEWEST, OLDEST, combinations

TOPICS = "org.apache.kafka.tools.TopicCommand"
CONFIGS = "kafka.admin.ConfigCommand"
CLUSTER = "org.apache.kafka.tools.ClusterTool"
QUORUM = "org.apache.kafka.tools.MetadataQuorumCommand"
REASSIGN = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
TRANSACTIONS = "org.apache.kafka.tools.TransactionsCommand"

_STAMP = re.compile(r"^\d{4}-\d\d-\d\dT[\d:.]+Z ", re.MULTILINE)
_PORT = re.compile(r"127\.0\.0\.1[ :]\d+")
_ID = re.compile(r"(TopicId: |Cluster ID: )\S+")
_MIN_INSYNC = re.compile(r"min\.insync\.replicas=1,|^ *min\.insync\.replicas=1 .*\n", re.MULTILINE)
_FIGURE = re.compile(r"((?:ClusterId|LeaderEpoch|HighWatermark): +)\S+")

_SENTENCE = re.compile(r"(?:Error while executing topic command : |^Caused by: \S+: )(.*)$", re.MULTILINE)

_LOG_DIRS = re.compile(r',"log_dirs":\[[^]]*\]')
_REFUSAL = re.compile(r"^(?:Error: |.*Exception: )(.*broker.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Pair:
    """The tools of one Kafka version, and the addresses of Barnabas and of Kafka."""

    kafka: Kafka
    ours: str
    theirs: str

    def both(self, tool: str, *arguments: str) -> tuple[str, str]:
        """Return the tool's output for Barnabas and for Kafka."""
        return self.on(self.ours, tool, *arguments), self.on(self.theirs, tool, *arguments)

    def on(self, bootstrap: str, tool: str, *arguments: str) -> str:
        """Return standard output, and standard error too if the tool fails."""
        command = arguments[: tool == CLUSTER]  # kafka-cluster requires its command before its options
        try:
            said = self.kafka.tool(tool, *command, "--bootstrap-server", bootstrap, *arguments[len(command) :])
        except KafkaError as error:
            said = str(error)
        return _MIN_INSYNC.sub("", _ID.sub(r"\1X", _PORT.sub("H:P", _STAMP.sub("", said))))


@pytest.fixture(scope="module", params=combinations([NEWEST, OLDEST], [NEWEST]))
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    directory = tmp_path_factory.mktemp("tools")
    kafka = Kafka(request.param, directory / "kafka", directory / "scratch")
    kafka.format()
    with kafka.running() as theirs, start_daemon(directory / "ours") as ours:
        yield Pair(kafka, ours.bootstrap, theirs.bootstrap)


def sentences(said: str) -> list[str]:
    """Return the sentences with which the tool explains a failure."""
    return _SENTENCE.findall(said)


def test_topics_are_created_described_grown_and_deleted(pair: Pair) -> None:
    topic = ("--topic", "grown")
    for arguments in (
        ("--create", *topic, "--partitions", "2", "--config", "retention.ms=5000", "--config", "flush.ms=9"),
        ("--create", "--topic", "assigned", "--replica-assignment", "1,1,1"),
        ("--list",),
        ("--alter", *topic, "--partitions", "4"),
        ("--describe", *topic),
        ("--describe",),
        ("--delete", *topic),
        ("--delete", "--topic", "assigned"),
        ("--list",),
    ):
        ours, theirs = pair.both(TOPICS, *arguments)
        assert ours == theirs, arguments
        assert "Exception" not in ours


def test_what_cannot_be_done_with_topics_is_told_in_kafkas_words(pair: Pair) -> None:
    pair.both(TOPICS, "--create", "--topic", "there", "--partitions", "3")
    for arguments in (
        ("--create", "--topic", "there"),
        ("--create", "--topic", "replicated", "--partitions", "1", "--replication-factor", "3"),
        ("--create", "--topic", "elsewhere", "--replica-assignment", "7"),
        ("--alter", "--topic", "there", "--partitions", "2"),
        ("--describe", "--topic", "missing"),
        ("--delete", "--topic", "missing"),
    ):
        (ours,), (theirs, *_) = (sentences(said) for said in pair.both(TOPICS, *arguments))
        common = min(len(ours), len(theirs), 90)  # either may continue with details of its own
        assert ours[:common] == theirs[:common], arguments
        assert common > 20


def test_configs_of_topics_are_described_and_altered(pair: Pair) -> None:
    pair.both(TOPICS, "--create", "--topic", "configured", "--config", "retention.ms=5000")
    topic = ("--entity-type", "topics", "--entity-name", "configured")
    for arguments in (
        ("--describe", *topic),
        (
            "--alter",
            *topic,
            "--add-config",
            "cleanup.policy=[compact,delete],flush.ms=9",
            "--delete-config",
            "retention.ms",
        ),
        ("--describe", *topic),
    ):
        ours, theirs = pair.both(CONFIGS, *arguments)
        assert ours == theirs, arguments
    ours, theirs = pair.both(CONFIGS, "--describe", "--all", *topic)
    newer_default = (
        "message.timestamp.after.max.ms" if pair.kafka.version.startswith("3.") else "none"
    )  # Kafka 4.0 changed the default
    mine = {line for line in ours.splitlines() if newer_default not in line and "flush.acks.all" not in line}
    assert mine <= set(theirs.splitlines())
    assert len(mine) > 20


def test_configs_of_brokers_are_described_and_altered(pair: Pair) -> None:
    everyone = ("--entity-type", "brokers", "--entity-default")
    broker = ("--entity-type", "brokers", "--entity-name", "1")
    for arguments in (
        ("--describe", *everyone),
        ("--alter", *everyone, "--add-config", "log.retention.ms=100000"),
        ("--alter", *broker, "--add-config", "log.cleaner.threads=2,log.retention.bytes=70000"),
        ("--describe", *everyone),
        ("--describe", *broker),
        ("--alter", *broker, "--delete-config", "log.cleaner.threads,log.retention.bytes"),
        ("--alter", *everyone, "--delete-config", "log.retention.ms"),
        ("--describe", *broker),
    ):
        ours, theirs = pair.both(CONFIGS, *arguments)
        assert sorted(ours.splitlines()) == sorted(theirs.splitlines()), arguments
        assert "Exception" not in ours


def test_configs_of_groups_are_described_altered_and_refused(pair: Pair) -> None:
    if pair.kafka.version.startswith("3."):
        pytest.skip("Kafka 3.x has no configs of groups")
    group = ("--entity-type", "groups", "--entity-name", "configured")
    settings = "consumer.session.timeout.ms=50000,consumer.heartbeat.interval.ms=6000"
    for arguments in (("--alter", *group, "--add-config", settings), ("--describe", "--entity-type", "groups")):
        ours, theirs = pair.both(CONFIGS, *arguments)
        assert ours == theirs, arguments
        assert "configured" in ours
    said = pair.on(pair.ours, CONFIGS, "--alter", *group, "--add-config", "consumer.session.timeout.ms=70000")
    assert any("group.consumer.max.session.timeout.ms" in sentence for sentence in sentences(said)), said


@pytest.mark.parametrize(
    ("resource", "setting", "named"),
    [
        (("topics", "refused"), "retention.ms=soon", "retention.ms"),
        (("topics", "refused"), "no.such.config=1", "no.such.config"),
        (("brokers", "1"), "log.retention.ms=soon", "log.retention.ms"),
        (("brokers", "1"), "log.dirs=/elsewhere", "log.dirs"),
    ],
)
def test_a_refused_config_is_named(pair: Pair, resource: tuple[str, str], setting: str, named: str) -> None:
    if resource[0] == "topics":
        pair.on(pair.ours, TOPICS, "--create", "--topic", "refused", "--if-not-exists")
    entity = ("--entity-type", resource[0], "--entity-name", resource[1])
    said = pair.on(pair.ours, CONFIGS, "--alter", *entity, "--add-config", setting)
    assert any(named in sentence for sentence in sentences(said)), said


@pytest.mark.parametrize("entity", ["users", "clients", "ips"])
def test_who_has_no_quotas_and_no_password_is_described_as_by_kafka(pair: Pair, entity: str) -> None:
    ours, theirs = pair.both(CONFIGS, "--describe", "--entity-type", entity)
    assert ours == theirs
    assert "Exception" not in ours


def test_the_cluster_and_the_producers_are_described(pair: Pair) -> None:
    ours, theirs = pair.both(CLUSTER, "cluster-id")
    assert ours == theirs
    pair.both(TOPICS, "--create", "--topic", "produced", "--partitions", "1")
    ours, theirs = pair.both(TRANSACTIONS, "describe-producers", "--topic", "produced", "--partition", "0")
    assert ours == theirs
    assert ours.startswith("ProducerId")


def test_the_metadata_quorum_is_one_voter(pair: Pair) -> None:
    ours, theirs = (_FIGURE.sub(r"\1X", said) for said in pair.both(QUORUM, "describe", "--status"))
    assert ours == theirs.replace("CONTROLLER://", "PLAINTEXT://")
    assert "CurrentVoters" in ours
    ours, theirs = pair.both(QUORUM, "describe", "--replication")
    node_and_status = slice(None, None, 6)
    assert [row.split("\t")[node_and_status] for row in ours.splitlines()] == [
        row.split("\t")[node_and_status] for row in theirs.splitlines()
    ]


def test_a_reassignment_to_the_same_node_ends_well_and_to_another_one_fails_alike(pair: Pair, tmp_path: Path) -> None:
    pair.both(TOPICS, "--create", "--topic", "moved", "--partitions", "1")
    plan = tmp_path / "plan.json"

    def run(node: int, *arguments: str) -> list[str]:
        partition = {"topic": "moved", "partition": 0, "replicas": [node]}
        plan.write_text(json.dumps({"version": 1, "partitions": [partition]}))
        said = pair.both(REASSIGN, "--reassignment-json-file", str(plan), *arguments)
        return [_LOG_DIRS.sub("", each) for each in said]

    ours, theirs = run(1, "--execute")
    assert ours == theirs
    assert "Successfully started partition reassignment for moved-0" in ours
    ours, theirs = run(1, "--verify")
    assert ours == theirs
    assert "Reassignment of partition moved-0 is completed." in ours
    ours, theirs = run(7, "--execute")
    assert _REFUSAL.findall(ours) == _REFUSAL.findall(theirs) != []


def test_reassignments_and_elections_say_the_same(pair: Pair) -> None:
    for said in (
        pair.both(REASSIGN, "--list"),
        pair.both(
            "org.apache.kafka.tools.LeaderElectionCommand", "--election-type", "preferred", "--all-topic-partitions"
        ),
    ):
        assert said[0] == said[1]
        assert "Exception" not in said[0]
