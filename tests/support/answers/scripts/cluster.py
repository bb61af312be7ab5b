"""Versions, configs, features, quotas to read, and clients' metrics."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from tests.support.answers.play import Play
from tests.support.answers.scripts.made import topic

TOPIC, BROKER = 2, 4


def api_versions(play: Play) -> None:
    play.each("api_versions", "success", {"client_software_name": "test", "client_software_version": "1"})
    play.each("api_versions", "an empty name", {"client_software_version": "1"})
    play.each("api_versions", "a name with a space", {"client_software_name": "a b", "client_software_version": "1"})


def describe_configs(play: Play) -> None:
    topic(play, "configured", retention_ms="7")

    def asked(kind: int, name: str, *keys: str, **fields: Any) -> dict[str, Any]:
        resource = {"resource_type": kind, "resource_name": name, "configuration_keys": keys or None}
        return {"resources": [resource], **fields}

    several = ("retention.ms", "cleanup.policy")
    told = {"include_synonyms": True, "include_documentation": True}
    play.each("describe_configs", "success", asked(TOPIC, "configured", *several, **told))
    play.each("describe_configs", "success, of the broker", asked(BROKER, "1", "log.retention.ms", "node.id", **told))
    play.each("describe_configs", "success, of all brokers", asked(BROKER, "", "log.retention.ms"))
    play.each("describe_configs", "success, all of a topic", asked(TOPIC, "configured"))
    play.each("describe_configs", "success, of a group", asked(32, "group"))
    play.each("describe_configs", "success, of client metrics", asked(16, "metrics"))
    play.each("describe_configs", "success, of loggers", asked(8, "1", "root"))
    play.each("describe_configs", "no such topic", asked(TOPIC, "nowhere"))
    play.each("describe_configs", "a name with a slash", asked(TOPIC, "a/b"))
    play.each("describe_configs", "no such broker", asked(BROKER, "9"))
    play.each("describe_configs", "not a broker", asked(BROKER, "x"))
    play.each("describe_configs", "no such type", asked(77, "x"))


def alter_configs(play: Play) -> None:
    topic(play, "altered")

    def asked(kind: int, name: str, key: str, value: str | None, **fields: Any) -> dict[str, Any]:
        configs = [{"name": key, "value": value}]
        return {"resources": [{"resource_type": kind, "resource_name": name, "configs": configs}], **fields}

    play.each("alter_configs", "success", asked(TOPIC, "altered", "retention.ms", "7"))
    play.each(
        "alter_configs", "success, only validated", asked(TOPIC, "altered", "retention.ms", "8", validate_only=True)
    )
    play.each("alter_configs", "no such topic", asked(TOPIC, "nowhere", "retention.ms", "7"))
    play.each("alter_configs", "no such config", asked(TOPIC, "altered", "nothing", "7"))
    play.each("alter_configs", "a config's value", asked(TOPIC, "altered", "retention.ms", "x"))
    play.each("alter_configs", "no value", asked(TOPIC, "altered", "retention.ms", None))
    play.each("alter_configs", "no such broker", asked(BROKER, "9", "log.retention.ms", "7"))
    play.each("alter_configs", "no such type", asked(77, "x", "y", "z"))
    twice = asked(TOPIC, "altered", "retention.ms", "7")
    play.each("alter_configs", "a resource twice", {**twice, "resources": twice["resources"] * 2})


def incremental_alter_configs(play: Play) -> None:
    api = "incremental_alter_configs"
    topic(play, "stepped")

    def asked(kind: int, name: str, key: str, value: str | None, step: int = 0, **fields: Any) -> dict[str, Any]:
        configs = [{"name": key, "value": value, "config_operation": step}]
        return {"resources": [{"resource_type": kind, "resource_name": name, "configs": configs}], **fields}

    play.each(api, "success, set", asked(TOPIC, "stepped", "retention.ms", "7"))
    play.each(api, "success, deleted", asked(TOPIC, "stepped", "retention.ms", None, 1))
    play.each(api, "success, appended", asked(TOPIC, "stepped", "cleanup.policy", "compact", 2))
    play.each(api, "success, subtracted", asked(TOPIC, "stepped", "cleanup.policy", "compact", 3))
    play.each(api, "appended to what is no list", asked(TOPIC, "stepped", "retention.ms", "7", 2))
    play.each(api, "no such operation", asked(TOPIC, "stepped", "retention.ms", "7", 9))
    play.each(api, "success, only validated", asked(TOPIC, "stepped", "retention.ms", "8", validate_only=True))
    play.each(api, "no such topic", asked(TOPIC, "nowhere", "retention.ms", "7"))
    play.each(api, "no such config", asked(TOPIC, "stepped", "nothing", "7"))
    play.each(api, "a config's value", asked(TOPIC, "stepped", "retention.ms", "x"))
    play.each(api, "no value", asked(TOPIC, "stepped", "retention.ms", None))
    play.each(api, "success, of the broker", asked(BROKER, "1", "log.retention.ms", "-1"))
    play.each(api, "a config that is fixed at the start", asked(BROKER, "1", "node.id", "7"))
    play.each(api, "no such broker", asked(BROKER, "9", "log.retention.ms", "7"))
    play.each(api, "success, of a group", asked(32, "group", "consumer.session.timeout.ms", "46000"))
    play.each(api, "a group's value", asked(32, "group", "consumer.session.timeout.ms", "1"))
    play.each(api, "success, of client metrics", asked(16, "metrics", "interval.ms", "1000"))
    play.each(api, "no such type", asked(77, "x", "y", "z"))
    twice = asked(TOPIC, "stepped", "retention.ms", "7")
    play.each(api, "a resource twice", {**twice, "resources": twice["resources"] * 2})


def describe_client_quotas(play: Play) -> None:
    api = "describe_client_quotas"
    ops = [{"key": "producer_byte_rate", "value": 5e9}]
    play.quiet(
        "alter_client_quotas", {"entries": [{"entity": [{"entity_type": "user", "entity_name": "u"}], "ops": ops}]}
    )

    def asked(kind: str, match_type: int, match: str | None, **fields: Any) -> dict[str, Any]:
        return {"components": [{"entity_type": kind, "match_type": match_type, "match": match}], **fields}

    play.each(api, "success, all", {})
    play.each(api, "success, of a user", asked("user", 0, "u", strict=True))
    play.each(api, "success, of the default", asked("user", 1, None))
    play.each(api, "success, of any user", asked("user", 2, None))
    play.each(api, "no such match", asked("user", 9, None))
    play.each(api, "no name to match", asked("user", 0, None))
    play.each(api, "a name for the default", asked("user", 1, "u"))
    play.each(api, "no such entity", asked("nothing", 0, "u"))
    play.each(api, "an empty entity", asked("", 0, "u"))
    twice = asked("user", 0, "u")
    play.each(api, "an entity twice", {"components": twice["components"] * 2})


def describe_user_scram_credentials(play: Play) -> None:
    api = "describe_user_scram_credentials"
    upsertion = {"name": "u", "mechanism": 1, "iterations": 4096, "salt": b"salt", "salted_password": b"x" * 32}
    play.quiet("alter_user_scram_credentials", {"upsertions": [upsertion]})
    play.each(api, "success, all", {"users": None})
    play.each(api, "success", {"users": [{"name": "u"}]})
    play.each(api, "no such user", {"users": [{"name": "nobody"}]})
    play.each(api, "a user twice", {"users": [{"name": "u"}, {"name": "u"}]})


def describe_quorum(play: Play) -> None:
    def asked(name: str, partition: int = 0) -> dict[str, Any]:
        return {"topics": [{"topic_name": name, "partitions": [{"partition_index": partition}]}]}

    play.each("describe_quorum", "success", asked("__cluster_metadata"))
    play.each("describe_quorum", "another topic", asked("nowhere"))
    play.each("describe_quorum", "another partition", asked("__cluster_metadata", 7))
    play.each("describe_quorum", "no topics", {})


def update_features(play: Play) -> None:
    def asked(name: str, level: int, kind: int = 1, **fields: Any) -> dict[str, Any]:
        update = {"feature": name, "max_version_level": level, "upgrade_type": kind}
        return {"feature_updates": [{**update, "allow_downgrade": kind != 1}], "timeout": 1000, **fields}

    play.each("update_features", "success, as it is", asked("group.version", 1))
    play.each("update_features", "no such feature", asked("nothing", 1))
    play.each("update_features", "too high a level", asked("metadata.version", 999))
    play.each("update_features", "a negative level", asked("metadata.version", -1))
    play.each("update_features", "a downgrade as an upgrade", asked("metadata.version", 7))
    play.each("update_features", "no such type", asked("group.version", 1, 9))
    play.each("update_features", "an empty name", asked("", 1))
    play.each("update_features", "only validated", asked("group.version", 0, 2, validate_only=True))
    play.each("update_features", "no features", {})


def describe_cluster(play: Play) -> None:
    play.each("describe_cluster", "success", {"include_cluster_authorized_operations": True})
    play.each("describe_cluster", "of controllers", {"endpoint_type": 2})
    play.each("describe_cluster", "no such type", {"endpoint_type": 9})
    play.each("describe_cluster", "success, fenced brokers", {"include_fenced_brokers": True})


def get_telemetry_subscriptions(play: Play) -> None:
    play.each("get_telemetry_subscriptions", "success, new", {"client_instance_id": None})
    play.each("get_telemetry_subscriptions", "success, known", {"client_instance_id": UUID(int=7)})


def push_telemetry(play: Play) -> None:
    client = UUID(int=9)
    subscription = play.quiet("get_telemetry_subscriptions", {"client_instance_id": client}).subscription_id

    def asked(**fields: Any) -> dict[str, Any]:
        return {"client_instance_id": client, "subscription_id": subscription, **fields}

    play.each("push_telemetry", "another subscription", asked(subscription_id=subscription ^ 1))
    play.each("push_telemetry", "no such compression", asked(compression_type=9))
    play.each("push_telemetry", "no client", asked(client_instance_id=None))
    play.each("push_telemetry", "the last push", asked(terminating=True))
    play.each("push_telemetry", "after the last push", asked(terminating=True))


def list_config_resources(play: Play) -> None:
    play.quiet(
        "incremental_alter_configs",
        {
            "resources": [
                {"resource_type": 16, "resource_name": "m", "configs": [{"name": "interval.ms", "value": "1000"}]}
            ]
        },
    )
    play.each("list_config_resources", "success", {})
    play.each("list_config_resources", "success, of client metrics", {"resource_types": [16]})
    play.each("list_config_resources", "no such type", {"resource_types": [77]})
