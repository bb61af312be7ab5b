"""Changes of configs of topics, brokers, groups and client metrics: functions from an image to answers and records.

Kafka's key 44 is incremental: an operation sets or deletes a property, or adds to or removes from a list. Kafka's key
33 replaces the whole set of a resource (`replace`); the native dialect's AlterConfigs (33) is incremental. The
operations of one resource apply together or not at all, and their result must be valid as a whole: topic and group
configs by their tables, broker configs as a dynamic layer over the configuration. An unchanged value creates no
record. Errors as in Kafka's ConfigurationControlManager and ConfigAdminManager: a bad value is INVALID_CONFIG for a
topic's property and INVALID_REQUEST for a broker's, still so in 4.3.0 (KAFKA-13609); an unknown topic is
UNKNOWN_TOPIC_OR_PARTITION. In a directory whose eligible leader replicas (ELR) Kafka has enabled, min.insync.replicas
is a property of the cluster that cannot be removed, and no property of a broker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from barnabas.broker.client_metrics.configs import validate_subscription
from barnabas.broker.metadata.config_resources import (
    ensure_group_named,
    ensure_subscription_named,
    ensure_texts_fit,
    ensure_topic,
    unknown_resource_type,
)
from barnabas.broker.metadata.image import (
    ALL_BROKERS,
    ConfigScope,
    MetadataImage,
    broker_scope,
    client_metrics_scope,
    group_scope,
)
from barnabas.broker.metadata.mirrors.configs import is_mirror_config, plan_mirror_configs
from barnabas.broker.metadata.mirrors.refusals import ensure_configs_alterable
from barnabas.broker.metadata.plan import Plan, PlanningImage
from barnabas.config import (
    BROKER_PROPERTIES,
    TOPIC_PROPERTIES,
    BrokerConfig,
    ConfigError,
    Property,
    PropertyType,
    complaints,
    ensure_reconfigurable,
    validate_topic_configs,
)
from barnabas.config.client_metrics_configs import CLIENT_METRICS_CONFIGS
from barnabas.config.group_configs import GROUP_CONFIGS, validate_group_configs
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.cluster.configs import (
    OP_APPEND,
    OP_DELETE,
    OP_SET,
    OP_SUBTRACT,
    AlterConfigsResult,
    ChangedResource,
    ConfigChange,
    ConfigResource,
)
from barnabas.protocol.metadata.records import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    TOPIC_RESOURCE,
    ConfigRecord,
    MetadataRecord,
)
from barnabas.protocol.topic_name import validate_topic_name

_TABLES = {
    TOPIC_RESOURCE: TOPIC_PROPERTIES,
    BROKER_RESOURCE: BROKER_PROPERTIES,
    CLIENT_METRICS_RESOURCE: CLIENT_METRICS_CONFIGS,
    GROUP_RESOURCE: GROUP_CONFIGS,
}

_ELR: Final = "eligible.leader.replicas.version"
_MIN_INSYNC: Final = "min.insync.replicas"

EnsureApplicable = Callable[[BrokerConfig, BrokerConfig], None]


def plan_alter_configs(
    image: MetadataImage,
    resources: Sequence[ChangedResource],
    *,
    config: BrokerConfig,
    node_id: int,
    replace: bool = False,
    ensure_applicable: EnsureApplicable = ensure_reconfigurable,
) -> Plan[AlterConfigsResult]:
    """Plan changes of configs. `config` is the configuration without its dynamic layers.

    With `replace`, properties that no operation sets are deleted. `ensure_applicable` gets the broker's configuration
    before and after a change, and raises ConfigError if a running broker cannot apply it. A result's message may be a
    warning.
    """
    planning = PlanningImage(image)
    results = []
    times_named = Counter(asked.resource for asked in resources)
    for asked in resources:
        resource = asked.resource
        try:
            if times_named[resource] > 1:
                raise BrokerError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
            scope = _scope_of(resource, node_id)
            records, warnings = _plan_resource(
                planning, scope, asked.operations, config, node_id, replace, ensure_applicable
            )
            if scope[0] == BROKER_RESOURCE and image.features.get(_ELR, 0) > 0:
                _ensure_min_insync_kept(planning.configs(scope), scope, asked.operations, replace)
            planning.add(records)
            results.append(
                AlterConfigsResult(type=resource.type, name=resource.name, warning=" ".join(warnings) or None)
            )
        except BrokerError as error:
            results.append(
                AlterConfigsResult(type=resource.type, name=resource.name, error=error.code, message=error.message)
            )
    return Plan(results, planning.records)


def _plan_resource(
    planning: PlanningImage,
    scope: ConfigScope,
    operations: Sequence[ConfigChange],
    config: BrokerConfig,
    node_id: int,
    replace: bool,
    ensure_applicable: EnsureApplicable,
) -> tuple[list[MetadataRecord], list[str]]:
    mirrors: list[MetadataRecord] = []
    if scope == ALL_BROKERS:
        # `replace` deletes no mirror that it does not name: the clients that send it do not know of mirrors.
        mirrors = plan_mirror_configs(planning.image, [each for each in operations if is_mirror_config(each.name)])
        operations = [each for each in operations if not is_mirror_config(each.name)]
    before = planning.configs(scope)
    after = _apply({} if replace else before, operations, _TABLES[scope[0]])
    changed = {name: after.get(name) for name in sorted({*before, *after}) if before.get(name) != after.get(name)}
    try:
        if scope[0] == TOPIC_RESOURCE:
            if scope[1] not in planning.image.topics:
                validate_topic_name(scope[1])
            ensure_configs_alterable(planning.image, scope[1], changed)
            warnings = _check_topic(after, changed, config)
            ensure_topic(planning.image, scope[1])  # as in Kafka, the last check
        elif scope[0] == GROUP_RESOURCE:
            defaults, ours = planning.configs(ALL_BROKERS), planning.configs(broker_scope(node_id))
            current = config.with_dynamic(defaults, ours, stored=True)
            warnings = []
            validate_group_configs(after, changed, current)
        elif scope[0] == CLIENT_METRICS_RESOURCE:
            warnings = []
            validate_subscription(after)
        else:
            warnings = []
            _check_broker(planning, scope, after, changed, config, node_id, ensure_applicable)
    except ConfigError as error:
        code = ErrorCode.INVALID_REQUEST if scope[0] == BROKER_RESOURCE else ErrorCode.INVALID_CONFIG
        raise BrokerError(code, str(error)) from error
    return [*mirrors, *(ConfigRecord(*scope, name, value) for name, value in changed.items())], warnings


def _check_topic(after: Mapping[str, str], changed: Mapping[str, str | None], config: BrokerConfig) -> list[str]:
    """Return warnings. Illegal values that Kafka stored earlier do not block other changes."""
    considered = {name: value for name, value in after.items() if name in changed or not complaints({name: value})}
    return validate_topic_configs(considered, config, changed)


def _check_broker(
    planning: PlanningImage,
    scope: ConfigScope,
    after: Mapping[str, str],
    changed: Mapping[str, str | None],
    config: BrokerConfig,
    node_id: int,
    ensure_applicable: EnsureApplicable,
) -> None:
    """Raise ConfigError for a wrong changed property, or if the properties contradict each other."""
    is_default = scope == ALL_BROKERS
    new = {name: value for name, value in changed.items() if value is not None}
    config.with_dynamic(new if is_default else {}, {} if is_default else new)
    defaults, ours = planning.configs(ALL_BROKERS), planning.configs(broker_scope(node_id))
    before = config.with_dynamic(defaults, ours, stored=True)
    if is_default:
        defaults = after
    else:
        ours = after
    ensure_applicable(before, config.with_dynamic(defaults, ours, stored=True, changed=changed))


def _ensure_min_insync_kept(
    before: Mapping[str, str], scope: ConfigScope, operations: Sequence[ConfigChange], replace: bool
) -> None:
    """Raise BrokerError INVALID_CONFIG for a change of min.insync.replicas that Kafka refuses while ELR is enabled."""
    named = [operation.operation for operation in operations if operation.name == _MIN_INSYNC]
    is_dropped = replace and not named and _MIN_INSYNC in before
    if scope == ALL_BROKERS:
        if OP_DELETE in named or is_dropped:
            message = f"Cluster-level {_MIN_INSYNC} cannot be removed while ELR is enabled."
            raise BrokerError(ErrorCode.INVALID_CONFIG, message)
    elif named or is_dropped:
        raise BrokerError(
            ErrorCode.INVALID_CONFIG, f"Broker-level {_MIN_INSYNC} cannot be altered while ELR is enabled."
        )


def _scope_of(resource: ConfigResource, node_id: int) -> ConfigScope:
    if resource.type == TOPIC_RESOURCE:
        if not resource.name:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
        return (TOPIC_RESOURCE, resource.name)
    if resource.type == BROKER_RESOURCE:
        if resource.name not in ("", str(node_id)):
            message = f"Unexpected broker id, expected {node_id}, but received {resource.name}"
            raise BrokerError(ErrorCode.INVALID_REQUEST, message)
        return (BROKER_RESOURCE, resource.name)
    if resource.type == GROUP_RESOURCE:
        ensure_group_named(resource.name)
        return group_scope(resource.name)
    if resource.type == CLIENT_METRICS_RESOURCE:
        ensure_subscription_named(resource.name)
        return client_metrics_scope(resource.name)
    raise unknown_resource_type(resource.type)


def _apply(
    before: Mapping[str, str], operations: Sequence[ConfigChange], table: Mapping[str, Property]
) -> dict[str, str]:
    """Return the configs after `operations`. Raises BrokerError for an invalid operation."""
    twice = [name for name, times in Counter(operation.name for operation in operations).items() if times > 1]
    if twice:
        raise BrokerError(ErrorCode.INVALID_REQUEST, f"Error due to duplicate config keys: {', '.join(twice)}")
    after = dict(before)
    for operation in operations:
        kind, name, value = operation.operation, operation.name, operation.value
        if kind == OP_DELETE:
            after.pop(name, None)
            continue
        if kind not in (OP_SET, OP_APPEND, OP_SUBTRACT):
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"Unknown operations type {kind} for {name}")
        if value is None:
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"Null value not supported for : {name}")
        after[name] = value if kind == OP_SET else _changed_list(after.get(name), operation, value, table)
        ensure_texts_fit(name, after[name])
    return after


def _changed_list(current: str | None, operation: ConfigChange, value: str, table: Mapping[str, Property]) -> str:
    """Return the list with new entries added, or entries removed. An unset list starts from its default.

    As in Kafka, entries are compared as they are written: " a" is not a, and the list is stored with both.
    """
    known = table.get(operation.name) or _unserved(table).get(operation.name)
    # Kafka has no schema of subscriptions where it looks the type up.
    if known is None or table is CLIENT_METRICS_CONFIGS or known.type is not PropertyType.LIST:
        what = "APPEND" if operation.operation == OP_APPEND else "SUBTRACT"
        message = f"Can't {what} to key {operation.name} because its type is not LIST."
        raise BrokerError(ErrorCode.INVALID_CONFIG, message)
    text = (known.show(known.default) or "") if current is None else current
    entries = [entry for entry in text.split(",") if entry]
    for entry in _split(value):
        if operation.operation == OP_SUBTRACT:
            if entry in entries:
                entries.remove(entry)
        elif entry not in entries:
            entries.append(entry)
    return ",".join(entries)


def _unserved(table: Mapping[str, Property]) -> Mapping[str, Property]:
    """Return the properties of the same scope without effect here."""
    from barnabas.config.tables.kafka_properties import unserved_broker_properties, unserved_topic_properties

    if table is BROKER_PROPERTIES:
        return unserved_broker_properties()
    return unserved_topic_properties() if table is TOPIC_PROPERTIES else {}


def _split(value: str) -> list[str]:
    """Split at commas as Java's String.split does: empty entries at the end do not count, unless there is nothing."""
    entries = value.split(",")
    while len(entries) > 1 and not entries[-1]:
        entries.pop()
    return entries if value.strip(",") or not value else []
