"""Our tables against Kafka's own: data/kafka-configs.tsv is what KafkaConfigs.java printed for seven versions of Kafka.

A difference is legal only where config/document.py tells people about it, and nothing may stand there that is none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from barnabas.config import BROKER_PROPERTIES, TOPIC_PROPERTIES, Property
from barnabas.config.document import DIFFERENCES, TOPIC_DIFFERENCES
from barnabas.config.property import show
from barnabas.config.tables import unserved
from barnabas.config.tables.kafka_properties import unserved_broker_properties, unserved_topic_properties

DATA = Path(unserved.__file__).parent
TABLE = Path(__file__).parent / "data" / "kafka-configs.tsv"
OURS_ALONE = {
    "adopt.topics",
    "audit.log.grants",
    "audit.log.max.bytes",
    "audit.log.max.lines.per.second",
    "audit.log.path",
    "client.metrics.enable",
    "console.command.config",
    "console.listener",
    "ignore.security",
    "initial.features",
    "log.flush.acks.all",
    "metrics.group.lag.enable",
    "metrics.listener",
    "read.only",
    "standby.arbiter.after.ms",
    "standby.arbiter.command",
    "standby.bootstrap.servers",
    "standby.command.config",
    "sasl.authentication.timeout.ms",
    "ssl.handshake.timeout.ms",
    "standby.min.acks",
}
# What Kafka reads without defining it: its authorizer's, and the dynamic quotas.
UNDEFINED_IN_KAFKA = {
    "allow.everyone.if.no.acl.found",
    "follower.replication.throttled.rate",
    "leader.replication.throttled.rate",
    "replica.alter.log.dirs.io.max.bytes.per.second",
    "super.users",
}
INTERNAL = (
    "controller.performance.",
    "group.consumer.regex.refresh.interval.ms",
    "group.share.initialize.retry.interval.ms",
    "group.share.persister.class.name",
    "internal.",
    "remote.log.index.file.cache.ttl.ms",
    "remote.log.manager.task.retry.",
    "server.max.startup.time.ms",
    "share.coordinator.cold.partition.snapshot.interval.ms",
    "share.coordinator.state.topic.prune.interval.ms",
    "unclean.leader.election.interval.ms",
    "unstable.",
)
TABLES: dict[str, Mapping[str, Property]] = {"broker": BROKER_PROPERTIES, "topic": TOPIC_PROPERTIES}
UNSERVED = {"broker": unserved.UNSERVED_PROPERTIES, "topic": unserved.UNSERVED_TOPIC_PROPERTIES}


class KafkaConfig(NamedTuple):
    first_version: str
    last_version: str
    type: str
    default: str
    rule: str
    update_mode: str


def kafka_configs(scope: str) -> dict[str, KafkaConfig]:
    rows = [line.split("\t") for line in TABLE.read_text().splitlines() if not line.startswith("#")]
    return {name: KafkaConfig(*rest) for row_scope, name, *rest in rows if row_scope == scope}


def our_rule_of(rule: str) -> str:
    """Kafka's words for a rule in ours."""
    if found := re.fullmatch(r"\[(-?\d+),\.\.\.\]", rule):
        return f"at least {found[1]}"
    if found := re.fullmatch(r"\[(-?\d+),\.\.\.,(-?\d+)\](?: or (-?\d+))?", rule):
        return f"{found[1]} to {found[2]}" + (f", or {found[3]}" if found[3] else "")
    if found := re.fullmatch(r"\[(.+)\]", rule):
        return "any of " + found[1]
    if found := re.fullmatch(r"\(case insensitive\) \[(.+)\]", rule):
        return f"any of {', '.join(sorted(found[1].lower().split(', ')))} (in any case)"
    return ""


def comparable_rule(known: Property) -> str:
    """Ours, without whether a list may be empty: Kafka does not print that."""
    rule = re.sub(r"(, )?(may be empty|at least one)", "", known.rule).replace("one of ", "any of ")
    if found := re.fullmatch(r"any of (.+)( \(in any case\))", rule):  # Kafka's are a set
        return f"any of {', '.join(sorted(found[1].split(', ')))}{found[2]}"
    return rule


def differs(scope: str, known: Property, kafka: KafkaConfig) -> list[str]:
    default = {"null": None}.get(kafka.default, kafka.default.removeprefix("class "))
    if known.type.value == "list" and default is not None:
        default = default.removeprefix("[").removesuffix("]").replace(", ", ",")
    found = []
    if known.type.value.upper() != kafka.type:
        found.append("type")
    if show(known.default) != default:
        found.append(f"default {show(known.default)} != {default}")
    if comparable_rule(known) != our_rule_of(kafka.rule):
        found.append(f"rule {comparable_rule(known)!r} != {our_rule_of(kafka.rule)!r}")
    # Kafka has no update modes for topics; the two that its broker shares by name are printed all the same.
    if scope == "broker" and known.update_mode.value != kafka.update_mode:
        found.append(f"mode {known.update_mode.value} != {kafka.update_mode}")
    return found


@pytest.mark.parametrize("scope", ["broker", "topic"])
def test_every_name_of_kafka_is_served_or_listed_as_unserved(scope: str) -> None:
    kafka = set(kafka_configs(scope))
    extra = UNDEFINED_IN_KAFKA if scope == "broker" else set()

    assert set(UNSERVED[scope]) == (kafka | extra) - set(TABLES[scope])
    assert set(TABLES[scope]) - kafka - extra == (OURS_ALONE if scope == "broker" else {"flush.acks.all"})


@pytest.mark.parametrize("scope", ["broker", "topic"])
def test_the_versions_of_unserved_names_are_kafkas(scope: str) -> None:
    kafka = kafka_configs(scope)
    # AbstractConfig reads config.providers in every version; only the definition is new.
    compared = set(UNSERVED[scope]) - UNDEFINED_IN_KAFKA - {"config.providers"}
    for name in compared:
        first, last = kafka[name].first_version, kafka[name].last_version
        assert UNSERVED[scope][name] == (first if first == last else f"{first} to {last}"), name


@pytest.mark.parametrize(("scope", "documented"), [("broker", DIFFERENCES), ("topic", TOPIC_DIFFERENCES)])
def test_types_defaults_rules_and_update_modes_are_kafkas_except_for_documented_differences(
    scope: str, documented: Mapping[str, str]
) -> None:
    kafka = kafka_configs(scope)
    different = {
        name: found
        for name, known in TABLES[scope].items()
        if name in kafka and (found := differs(scope, known, kafka[name]))
    }

    assert {name: found for name, found in different.items() if name not in documented} == {}
    assert set(documented) - set(different) == set()


def test_topic_properties_and_their_broker_properties_name_each_other() -> None:
    for known in TOPIC_PROPERTIES.values():
        for synonym in known.synonyms:
            assert BROKER_PROPERTIES[synonym.name].topic_name == known.name
    for known in BROKER_PROPERTIES.values():
        if known.topic_name is not None:
            assert known.name in [synonym.name for synonym in TOPIC_PROPERTIES[known.topic_name].synonyms]


def test_the_defaults_of_a_topic_are_those_of_a_broker_that_sets_nothing() -> None:
    for known in TOPIC_PROPERTIES.values():
        set_synonyms = [each for each in known.synonyms if BROKER_PROPERTIES[each.name].default is not None]
        if not set_synonyms:
            continue
        default = BROKER_PROPERTIES[set_synonyms[0].name].default
        factor = set_synonyms[0].factor
        assert known.default == (default * factor if isinstance(default, int) and factor != 1 else default), known.name


def test_every_default_satisfies_its_own_rule() -> None:
    for table in TABLES.values():
        for known in table.values():
            text = show(known.default)
            if text is not None:
                assert known.parse(text) == known.default, known.name


def test_no_name_is_both_served_and_unserved() -> None:
    for scope, table in TABLES.items():
        assert not set(table) & set(UNSERVED[scope])
        assert not [name for name in table if name.startswith(unserved.UNSERVED_PREFIXES)]


@pytest.mark.parametrize("scope", ["broker", "topic"])
def test_the_data_file_describes_each_unserved_property_of_kafka_4_3_and_no_served_one(scope: str) -> None:
    file = DATA / f"kafka_{scope}.json"
    names = set(json.loads(file.read_text()))
    kafka = {name for name, known in kafka_configs(scope).items() if known.last_version == "4.3"}

    assert not names & set(TABLES[scope]), (
        f"a property that has an effect is described by its table: remove from {file}"
    )
    assert names - set(UNSERVED[scope]) == set()
    # What is left out is internal: Kafka does not describe it either.
    left_out = (kafka & set(UNSERVED[scope])) - names
    assert all(name.startswith(INTERNAL) for name in left_out), left_out


@pytest.mark.parametrize("scope", ["broker", "topic"])
def test_the_types_defaults_and_update_modes_of_unserved_properties_are_kafkas(scope: str) -> None:
    kafka = kafka_configs(scope)
    described = unserved_broker_properties() if scope == "broker" else unserved_topic_properties()
    differences = {
        name: differs(scope, known._replace(validator=None), kafka[name]) for name, known in described.items()
    }

    assert {name: [each for each in found if not each.startswith("rule")] for name, found in differences.items()} == {
        name: [] for name in described
    }
