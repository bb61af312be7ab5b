"""Values are described as Kafka writes them, whatever text was set, and a broker's layers with that text."""

from __future__ import annotations

from barnabas.broker.config_entries import (
    broker_entries,
    client_metrics_entries,
    group_entries,
    topic_entries,
    unserved_broker_entries,
)
from barnabas.config import load
from barnabas.protocol.messages.cluster.configs import ConfigEntry


def described(entries: list[ConfigEntry], name: str) -> tuple[str | None, list[str | None]]:
    """Return the value of a property and those of its synonyms."""
    (entry,) = [each for each in entries if each.name == name]
    return entry.value, [each.value for each in entry.synonyms]


def test_a_topics_own_value() -> None:
    overrides = {
        "min.cleanable.dirty.ratio": "1",
        "preallocate": "TRUE",
        "cleanup.policy": "compact, delete",
        "retention.ms": " 0100 ",
        "compression.type": " gzip",
        "local.retention.ms": "+007",  # without effect here
    }

    entries = topic_entries(load(), overrides, with_synonyms=True)

    found = {name: described(entries, name) for name in overrides}
    assert {name: value for name, (value, _) in found.items()} == {
        "min.cleanable.dirty.ratio": "1.0",
        "preallocate": "true",
        "cleanup.policy": "compact,delete",
        "retention.ms": "100",
        "compression.type": "gzip",
        "local.retention.ms": "7",
    }
    assert all(synonyms[0] == value for value, synonyms in found.values())


def test_stored_configs_of_an_unknown_name_are_left_out() -> None:
    """Also those that Kafka 4 has removed; tests/interop/directories/test_stored_configs_kafka.py asks Kafka itself."""
    overrides = {"message.format.version": "3.0", "made.up": "x"}
    assert topic_entries(load(), overrides) == topic_entries(load(), {})
    assert group_entries(load(), {"consumer.new": "7"}) == group_entries(load(), {})


def test_a_groups_own_value_and_one_that_it_inherits() -> None:
    config = load(overrides=["group.share.delivery.count.limit=07"])
    overrides = {"consumer.session.timeout.ms": " +050000 ", "share.renew.acknowledge.enable": "FALSE"}

    entries = group_entries(config, overrides, with_synonyms=True)

    assert described(entries, "consumer.session.timeout.ms") == ("50000", ["50000", "45000"])
    assert described(entries, "share.renew.acknowledge.enable") == ("false", ["false", "true"])
    assert described(entries, "share.delivery.count.limit") == ("7", ["07", "5"])


def test_a_groups_value_beyond_todays_bounds_and_an_illegal_one() -> None:
    overrides = {"consumer.session.timeout.ms": "70000", "consumer.heartbeat.interval.ms": "rubbish"}

    entries = group_entries(load(), overrides, with_synonyms=True)

    assert described(entries, "consumer.session.timeout.ms") == ("70000", ["70000", "45000"])
    assert described(entries, "consumer.heartbeat.interval.ms") == ("5000", ["5000"])


def test_a_subscription_of_client_metrics() -> None:
    entries = client_metrics_entries({"metrics": " a , b", "interval.ms": "+0100"}, with_synonyms=True)

    assert described(entries, "metrics") == ("a,b", ["a,b"])
    assert described(entries, "interval.ms") == ("100", ["100"])


def test_a_broker_value_of_which_the_layers_keep_their_text() -> None:
    config = load(overrides=["log.cleaner.enable=TRUE", "num.network.threads=+3"])

    served = broker_entries(config, config.describe(), with_synonyms=True)
    unserved = unserved_broker_entries(config, with_synonyms=True)

    assert described(served, "log.cleaner.enable") == ("true", ["TRUE", "true"])
    assert described(unserved, "num.network.threads") == ("3", ["+3", "3"])
