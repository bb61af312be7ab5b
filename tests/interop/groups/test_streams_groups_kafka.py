"""Apache Kafka's answers and records in the life of a streams group, and the recorded ones that `make test` uses.

BARNABAS_TEST_RECORD_STREAMS=1 make interop ARGS="-k streams_groups_kafka"    records them again
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from barnabas.protocol.topic_name import OFFSETS_TOPIC
from tests.support.daemon import start_daemon
from tests.support.eventually import eventually
from tests.support.groups.streams_requests import SETTINGS, Member, create_topic, describe, live, records_of, settled
from tests.support.kafka.apache_kafka import Kafka
from tests.support.kafka.kafka_wire import KafkaWire

VERSION = "4.3.0"
RECORDED = Path(__file__).parents[2] / "broker" / "groups" / "data" / f"streams-kafka-{VERSION}.json"
FEATURES = "initial.features=transaction.version=2,streams.version=1"


def kafka_of(directory: Path, data: Path) -> Kafka:
    settings: dict[str, Any] = {name.replace(".", "_"): value for name, value in SETTINGS.items()}
    return Kafka(VERSION, data, directory / "scratch", **settings)


def test_the_recorded_answers_and_records_are_those_of_kafka(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    kafka = kafka_of(tmp_path, data)
    kafka.format()
    with kafka.running() as broker, KafkaWire("127.0.0.1", broker.port) as wire:
        answers = live(wire)
    found = {"answers": answers, "records": records_of(data / f"{OFFSETS_TOPIC}-0")}
    if os.environ.get("BARNABAS_TEST_RECORD_STREAMS"):
        RECORDED.write_text(json.dumps(found, indent=1) + "\n")
    assert found == json.loads(RECORDED.read_text())


def test_kafka_and_barnabas_take_a_directory_with_a_streams_group_in_turn(tmp_path: Path) -> None:
    settings = [f"{name}={value}" for name, value in SETTINGS.items()]
    with start_daemon(tmp_path, FEATURES, "node.id=1", *settings) as daemon:
        with KafkaWire(daemon.host, daemon.port) as wire:
            create_topic(wire, "in", 3)
            member = Member(wire, "app", "one")
            assert member.join().error_code == 0
            settled(member, lambda answer: not answer.status)
            member.report()
            (ours,) = describe(wire, "app")
        assert daemon.stop() == 0
    kafka = kafka_of(tmp_path / "kafka", tmp_path / "data")
    with kafka.running() as broker, KafkaWire("127.0.0.1", broker.port) as wire:
        (theirs,) = eventually(lambda: _loaded(wire), what="the group in Kafka")
        assert (theirs.group_state, theirs.group_epoch, theirs.members) == (
            ours.group_state,
            ours.group_epoch,
            ours.members,
        )
        member = Member(wire, "app", "one")
        member.epoch = ours.members[0].member_epoch
        answer = member.send()
        assert (answer.error_code, answer.status, answer.member_epoch) == (0, (), ours.members[0].member_epoch)
        second = Member(wire, "app", "two")
        assert second.join().error_code == 0
        (theirs,) = describe(wire, "app")
    with start_daemon(tmp_path, "node.id=1", *settings) as daemon:
        with KafkaWire(daemon.host, daemon.port) as wire:
            (again,) = eventually(lambda: _loaded(wire), what="the group in Barnabas")
            assert (again.group_epoch, again.assignment_epoch) == (theirs.group_epoch, theirs.assignment_epoch)
            assert {each.member_id: each for each in again.members} == {each.member_id: each for each in theirs.members}


def _loaded(wire: KafkaWire) -> Any:
    """Return the description once the group's log is loaded."""
    found = describe(wire, "app")
    return found if found[0].error_code == 0 else None
