"""Configs of a group, set over Kafka's protocol."""

from __future__ import annotations

from collections.abc import Mapping

from tests.support.daemon import Daemon
from tests.support.kafka.kafka_wire import KafkaWire, schema

_GROUP = 32
_SET, _DELETE = 0, 1


def set_group_configs(daemon: Daemon, group: str, configs: Mapping[str, str | None]) -> None:
    """Set configs of a group, or remove those that are None, as `kafka-configs.sh --group` does."""
    kio = schema("incremental_alter_configs", 1, "request")
    entries = tuple(
        kio.AlterableConfig(name=name, config_operation=_DELETE if value is None else _SET, value=value)
        for name, value in configs.items()
    )
    resource = kio.AlterConfigsResource(resource_type=_GROUP, resource_name=group, configs=entries)
    with KafkaWire(daemon.host, daemon.port) as wire:
        answer = wire.call("incremental_alter_configs", 1, resources=(resource,), validate_only=False)
    assert [each.error_code for each in answer.responses] == [0], answer
