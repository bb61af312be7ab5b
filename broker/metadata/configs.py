"""Altering configs of topics and brokers: functions from an image and a request to answers and records.

Incremental, as Kafka's key 44: each operation sets a property or takes it away; the operations of one resource apply
together or not at all. What results must be valid as a whole: topic configs by the topic table, broker configs as a
dynamic layer over the configuration. A value that is already there makes no record. Errors as in Kafka's
ConfigurationControlManager: INVALID_CONFIG, INVALID_REQUEST, UNKNOWN_TOPIC_OR_PARTITION.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from barnabas.broker.metadata.image import ALL_BROKERS, ConfigScope, MetadataImage
from barnabas.broker.metadata.plan import Plan, PlanningImage
from barnabas.config import BrokerConfig, ConfigError, complaints, ensure_reconfigurable, validate_topic_configs
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.configs import (
    OP_DELETE,
    OP_SET,
    AlterConfigOp,
    AlterConfigsResource,
    AlterConfigsResult,
    ConfigResource,
)
from barnabas.protocol.metadata.records import BROKER_RESOURCE, TOPIC_RESOURCE, ConfigRecord, MetadataRecord


def plan_alter_configs(
    image: MetadataImage, resources: Sequence[AlterConfigsResource], *, config: BrokerConfig, node_id: int
) -> Plan[AlterConfigsResult]:
    """Answers and records for `resources`. `config` is the configuration without its dynamic layers.

    A result's message may be a warning.
    """
    planning = PlanningImage(image)
    results = []
    times_named = Counter((asked.resource.type, asked.resource.name) for asked in resources)
    for asked in resources:
        resource = asked.resource
        try:
            if times_named[(resource.type, resource.name)] > 1:
                raise BrokerError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            records, warnings = _plan_resource(planning.image, asked, config, node_id)
            planning.add(records)
            results.append(AlterConfigsResult(resource, message=" ".join(warnings) or None))
        except BrokerError as error:
            results.append(AlterConfigsResult(resource, error.code, error.message))
    return Plan(results, planning.records)


def _plan_resource(
    image: MetadataImage, asked: AlterConfigsResource, config: BrokerConfig, node_id: int
) -> tuple[list[MetadataRecord], list[str]]:
    scope = _scope_of(image, asked.resource, node_id)
    before = image.configs.get(scope, {})
    after = _apply(before, asked.operations)
    changed = {name: after.get(name) for name in sorted({*before, *after}) if before.get(name) != after.get(name)}
    try:
        if scope[0] == TOPIC_RESOURCE:
            warnings = _check_topic(after, changed, config)
        else:
            warnings = []
            _check_broker(image, scope, after, changed, config, node_id)
    except ConfigError as error:
        raise BrokerError(ErrorCode.INVALID_CONFIG, str(error)) from error
    return [ConfigRecord(*scope, name, value) for name, value in changed.items()], warnings


def _check_topic(after: Mapping[str, str], changed: Mapping[str, str | None], config: BrokerConfig) -> list[str]:
    """Warnings. What Kafka once stored and we would refuse does not stand in the way of other changes."""
    considered = {name: value for name, value in after.items() if name in changed or not complaints({name: value})}
    return validate_topic_configs(considered, config)


def _check_broker(
    image: MetadataImage,
    scope: ConfigScope,
    after: Mapping[str, str],
    changed: Mapping[str, str | None],
    config: BrokerConfig,
    node_id: int,
) -> None:
    """Raises ConfigError for a changed property that is wrong, or for what all of them would make together."""
    is_default = scope == ALL_BROKERS
    new = {name: value for name, value in changed.items() if value is not None}
    config.with_dynamic(new if is_default else {}, {} if is_default else new)
    defaults, ours = image.default_broker_configs(), image.broker_configs(node_id)
    before = config.with_dynamic(defaults, ours, stored=True)
    ensure_reconfigurable(
        before, config.with_dynamic(after if is_default else defaults, ours if is_default else after, stored=True)
    )


def _scope_of(image: MetadataImage, resource: ConfigResource, node_id: int) -> ConfigScope:
    if resource.type == TOPIC_RESOURCE:
        if resource.name not in image.topics:
            raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic '{resource.name}' does not exist")
        return (TOPIC_RESOURCE, resource.name)
    if resource.type == BROKER_RESOURCE:
        if resource.name not in ("", str(node_id)):
            message = f"Unexpected broker id, expected {node_id} or an empty name, but received '{resource.name}'"
            raise BrokerError(ErrorCode.INVALID_REQUEST, message)
        return (BROKER_RESOURCE, resource.name)
    raise BrokerError(ErrorCode.INVALID_REQUEST, f"Unsupported config resource type {resource.type}.")


def _apply(before: Mapping[str, str], operations: Sequence[AlterConfigOp]) -> dict[str, str]:
    """The configs after `operations`. Raises BrokerError for an operation that is none."""
    twice = [name for name, times in Counter(operation.name for operation in operations).items() if times > 1]
    if twice:
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"Error due to duplicate config keys: {', '.join(twice)}")
    after = dict(before)
    for operation in operations:
        if operation.operation == OP_DELETE:
            after.pop(operation.name, None)
        elif operation.operation != OP_SET:
            message = f"Unknown alter operation {operation.operation} for {operation.name}"
            raise BrokerError(ErrorCode.INVALID_REQUEST, message)
        elif operation.value is None:
            raise BrokerError(ErrorCode.INVALID_CONFIG, f"Null value not supported for : {operation.name}")
        else:
            after[operation.name] = operation.value
    return after
