"""DescribeConfigs (32), AlterConfigs (33), IncrementalAlterConfigs (44): configs of topics, groups, brokers, loggers.

DESCRIBE_CONFIGS and ALTER_CONFIGS of a topic or a group are decided on it, all others on the cluster:
TOPIC_AUTHORIZATION_FAILED, GROUP_AUTHORIZATION_FAILED, CLUSTER_AUTHORIZATION_FAILED for the resource, before its
existence is looked at.

Broker configs are those of this broker, or the default of all brokers (the empty name). AlterConfigs (33) is
incremental in the native dialect and replaces a resource's whole set in Kafka's; Kafka's incremental API is 44. One
handler serves all three, by `replaces` of the request.

Changes are stored in the metadata log and applied immediately to dynamic properties. A read-only or unknown property
and an invalid value are refused: INVALID_CONFIG for a topic, INVALID_REQUEST for a broker. All operations on a resource
apply together or not at all. UNKNOWN_TOPIC_OR_PARTITION for an unknown topic, INVALID_TOPIC_EXCEPTION for an illegal
name, INVALID_REQUEST for another broker's id and for a resource that is listed twice. Barnabas' own clients are told of
a topic that Apache Kafka 4.x would refuse to open by the message of a success; others expect none.

Levels of loggers (BROKER_LOGGER) change incrementally only, until the process ends: broker/loggers.py.

A group's configs may be set before the group exists, and outlive it; groups have no common default.

As in Kafka, describing the default of all brokers lists only what was set there, and secrets have no value. Mirrors'
definitions are among them, as barnabas.mirror.definition.NAME. Every property that Kafka 4.3 describes is listed, with
its type and default; the documentation of those without effect here says so. internal.segment.bytes, Kafka's way around
its own limits, is listed only if set.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from barnabas.broker.config_entries import (
    broker_entries,
    client_metrics_entries,
    group_entries,
    logger_entries,
    mirror_entries,
    topic_entries,
    unserved_broker_entries,
)
from barnabas.broker.handlers.authorization import denial, ensure_allowed, is_allowed
from barnabas.broker.handlers.turns import Turns, in_turns
from barnabas.broker.loggers import alter_levels, ensure_this_node, logger_levels
from barnabas.broker.metadata.config_resources import ensure_group_named, ensure_topic, unknown_resource_type
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.cluster.configs import (
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
    LOGGER_RESOURCE,
    OP_DELETE,
    TOPIC_RESOURCE,
    AlterConfigsRequest,
    AlterConfigsResponse,
    AlterConfigsResult,
    ChangedResource,
    ConfigEntry,
    ConfigResource,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from barnabas.protocol.messages.security.resources import CLUSTER_NAME, Operation, ResourceType
from barnabas.protocol.mirrors.fields import DEFINITION_PREFIX

if TYPE_CHECKING:
    from collections.abc import Coroutine, Hashable, Mapping, Sequence

    from barnabas.broker.live_config import LiveConfig
    from barnabas.broker.metadata.view import MetadataView
    from barnabas.broker.metadata_changes import MetadataChanges
    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import ApiProbe

AnyRequest = AlterConfigsRequest | IncrementalAlterConfigsRequest


class DescribeConfigsHandler:
    """Serves DescribeConfigs."""

    def __init__(self, store: MetadataView, config: LiveConfig, probe: ApiProbe) -> None:
        self._store = store
        self._config = config
        self._probe = probe

    def __call__(
        self, session: Session, request: DescribeConfigsRequest
    ) -> DescribeConfigsResponse | Coroutine[Any, Any, DescribeConfigsResponse]:
        """Answer one DescribeConfigs request as the module docstring specifies; many resources in several turns."""
        return in_turns(self._describe(session, request))

    async def _describe(self, session: Session, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
        turns = Turns()
        results = []
        times_named = Counter(entry.resource for entry in request.resources)
        same: dict[Hashable, list[ConfigEntry]] = {}
        for entry in request.resources:
            if turns.is_over:
                await turns.next()
            try:
                if times_named[entry.resource] > 1:
                    # Each would be described in full: a small request with a very large response.
                    raise BrokerError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
                operation = Operation.DESCRIBE_CONFIGS
                ensure_allowed(session, operation, *_authorized(entry.resource), ApiKey.DESCRIBE_CONFIGS)
                entries = self._entries(entry, request, same)
            except BrokerError as error:
                self._probe.count_error(error.code.name.lower())
                results.append(
                    DescribeConfigsResult(type=entry.type, name=entry.name, error=error.code, message=error.message)
                )
                continue
            results.append(DescribeConfigsResult(type=entry.type, name=entry.name, entries=entries))
        return DescribeConfigsResponse(results=results)

    def _entries(
        self, asked: DescribeConfigsResource, request: DescribeConfigsRequest, same: dict[Hashable, list[ConfigEntry]]
    ) -> list[ConfigEntry]:
        """Return a resource's entries. Topics with equal configs share one list, which is then encoded once.

        Most topics have no configs of their own; a thousand described one by one held the event loop for a second.
        """
        names = frozenset(asked.names) if asked.names else None
        if asked.type == GROUP_RESOURCE:
            return _named(self._describe_group(asked.name, request), names)
        if asked.type != TOPIC_RESOURCE:
            return _named(self._describe_other(asked.resource, request), names)
        image = self._store.image
        topic = asked.name
        ensure_topic(image, topic)
        overrides = image.topic_configs(topic)
        key = (names, *overrides.items())
        entries = same.get(key)
        if entries is None:
            described = topic_entries(
                self._config.broker,
                overrides,
                with_synonyms=request.include_synonyms,
                with_docs=request.include_documentation,
            )
            entries = same[key] = _named(described, names)
        return entries

    def _describe_group(self, group_id: str, request: DescribeConfigsRequest) -> list[ConfigEntry]:
        ensure_group_named(group_id)
        return group_entries(
            self._config.broker,
            self._store.image.group_configs(group_id),
            with_synonyms=request.include_synonyms,
            with_docs=request.include_documentation,
        )

    def _describe_other(self, resource: ConfigResource, request: DescribeConfigsRequest) -> list[ConfigEntry]:
        if resource.type == BROKER_RESOURCE:
            return self._describe_broker(resource, request)
        if resource.type == LOGGER_RESOURCE:
            return self._describe_loggers(resource.name)
        if resource.type == CLIENT_METRICS_RESOURCE:
            return self._describe_client_metrics(resource.name, request)
        raise unknown_resource_type(resource.type)

    def _describe_client_metrics(self, name: str, request: DescribeConfigsRequest) -> list[ConfigEntry]:
        if not name:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "Client metrics subscription name must not be empty")
        overrides = self._store.image.client_metrics_configs(name)
        return client_metrics_entries(
            overrides, with_synonyms=request.include_synonyms, with_docs=request.include_documentation
        )

    def _describe_broker(self, resource: ConfigResource, request: DescribeConfigsRequest) -> list[ConfigEntry]:
        if resource.name == "":
            default = self._store.image.default_broker_configs()
            config = self._config.static.with_dynamic(default, {}, stored=True)
            described = [each for each in config.describe() if each[0].name in default]
        elif resource.name == str(self._store.node_id):
            config = self._config.broker
            described = config.describe()
        else:
            message = (
                f"Unexpected broker id, expected {self._store.node_id} or empty string, but received {resource.name}"
            )
            raise BrokerError(ErrorCode.INVALID_REQUEST, message)
        entries = broker_entries(
            config, described, with_synonyms=request.include_synonyms, with_docs=request.include_documentation
        )
        unserved = unserved_broker_entries(
            config, with_synonyms=request.include_synonyms, with_docs=request.include_documentation
        )
        if resource.name == "":
            entries += [each for each in unserved if each.name in default]
            for entry in entries:
                if entry.value is not None and not entry.sensitive:
                    entry.value = default[entry.name]  # as it was set, other than that of one broker
                entry.synonyms = [each for each in entry.synonyms if each.source_code == entry.source_code]
            stored = self._store.image.mirrors.texts.items()
            definitions = {name: text for name, text in stored if name.startswith(DEFINITION_PREFIX)}
            entries += mirror_entries(definitions, with_synonyms=request.include_synonyms)
        else:
            entries += unserved
        return entries

    def _describe_loggers(self, name: str) -> list[ConfigEntry]:
        if not name:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "Broker id must not be empty")
        ensure_this_node(name, self._store.node_id)
        return logger_entries(logger_levels())


def _named(entries: list[ConfigEntry], names: frozenset[str] | None) -> list[ConfigEntry]:
    return entries if names is None else [each for each in entries if each.name in names]


class AlterConfigsHandler:
    """Serves AlterConfigs."""

    _api = ApiKey.ALTER_CONFIGS

    def __init__(self, changes: MetadataChanges, node_id: int, probe: ApiProbe) -> None:
        self._changes = changes
        self._node_id = node_id
        self._probe = probe

    async def __call__(
        self, session: Session, request: AnyRequest
    ) -> AlterConfigsResponse | IncrementalAlterConfigsResponse:
        """Answer one AlterConfigs request as the module docstring specifies."""
        turns = Turns()
        denied: dict[int, BrokerError] = {}
        resources: Sequence[ChangedResource] = request.resources
        for position, asked in enumerate(resources):
            if turns.is_over:
                await turns.next()
            kind, name = _authorized(asked.resource)
            if not is_allowed(session, Operation.ALTER_CONFIGS, kind, name, self._api):
                denied[position] = denial(kind)
        results = await (self._without(request, denied) if denied else self._alter(request, request.resources))
        for result in results:
            if result.warning is not None and session.is_own:
                result.message = result.warning
            if result.error is not ErrorCode.NONE:
                self._probe.count_error(result.error.name.lower())
        return request.answer(results)

    async def _alter(self, request: AnyRequest, resources: Sequence[ChangedResource]) -> list[AlterConfigsResult]:
        """Alter all resources: loggers here, all others in the metadata log."""
        is_of_logger = [asked.type == LOGGER_RESOURCE and not request.replaces for asked in resources]
        others = [asked for asked, is_here in zip(resources, is_of_logger, strict=True) if not is_here]
        stored = iter(
            await self._changes.alter_configs(others, replace=request.replaces, validate_only=request.validate_only)
        )
        names = Counter(asked.name for asked in resources if asked.type == LOGGER_RESOURCE)
        return [
            self._alter_loggers(asked, request, is_repeated=names[asked.name] > 1) if is_here else next(stored)
            for asked, is_here in zip(resources, is_of_logger, strict=True)
        ]

    def _alter_loggers(self, asked: ChangedResource, request: AnyRequest, *, is_repeated: bool) -> AlterConfigsResult:
        fault = _form_fault(asked, is_repeated=is_repeated)
        if fault is not None:
            return AlterConfigsResult(type=asked.type, name=asked.name, error=ErrorCode.INVALID_REQUEST, message=fault)
        try:
            ensure_this_node(asked.name, self._node_id)
            alter_levels(asked.operations, validate_only=request.validate_only)
        except BrokerError as error:
            return AlterConfigsResult(type=asked.type, name=asked.name, error=error.code, message=error.message)
        return AlterConfigsResult(type=asked.type, name=asked.name)

    async def _without(self, request: AnyRequest, denied: Mapping[int, BrokerError]) -> list[AlterConfigsResult]:
        """Alter the resources but those at the positions of `denied`, whose form Kafka checks nevertheless."""
        resources: Sequence[ChangedResource] = request.resources
        allowed = [asked for position, asked in enumerate(resources) if position not in denied]
        # A broker's values are checked before the ACLs. What a topic or group has must not show: its form alone. Nor
        # must what files contain, or the environment: no file is opened, and no reference resolved, for these clients.
        brokers = [asked for asked in (resources[each] for each in denied) if _is_checked(asked)]
        tried = iter(
            await self._changes.alter_configs(brokers, replace=request.replaces, validate_only=True, is_trusted=False)
        )
        changed = iter(await self._alter(request, allowed))
        times_named = Counter(asked.resource for asked in resources)
        results = []
        turns = Turns()
        for position, asked in enumerate(resources):
            if turns.is_over:
                await turns.next()
            if position not in denied:
                results.append(next(changed))
                continue
            error = denied[position]
            result = AlterConfigsResult(type=asked.type, name=asked.name, error=error.code, message=error.message)
            if _is_checked(asked):
                broker = next(tried)
                result = result if broker.error is ErrorCode.NONE else broker
            fault = _form_fault(asked, is_repeated=times_named[asked.resource] > 1)
            if fault is not None:
                result.error, result.message = ErrorCode.INVALID_REQUEST, fault
            results.append(result)
        return results


class IncrementalAlterConfigsHandler(AlterConfigsHandler):
    """Serves IncrementalAlterConfigs."""

    _api = ApiKey.INCREMENTAL_ALTER_CONFIGS


def _is_checked(asked: ChangedResource) -> bool:
    """Return whether the values of a change are checked for a client that may not make it: a broker's, plain ones."""
    return asked.type == BROKER_RESOURCE and not any("${" in (each.value or "") for each in asked.operations)


def _form_fault(asked: ChangedResource, *, is_repeated: bool) -> str | None:
    """Return Kafka's sentence about a change that is wrong whatever it is about."""
    if is_repeated:
        return "Each resource must appear at most once."
    if len({operation.name for operation in asked.operations}) < len(asked.operations):
        return "Error due to duplicate config keys"
    nulls = [each.name for each in asked.operations if each.operation != OP_DELETE and each.value is None]
    return f"Null value not supported for : {', '.join(nulls)}" if nulls else None


def _authorized(resource: ConfigResource) -> tuple[ResourceType, str]:
    """Return the resource whose ACLs decide about a config resource."""
    if resource.type == TOPIC_RESOURCE:
        return ResourceType.TOPIC, resource.name
    if resource.type == GROUP_RESOURCE:
        return ResourceType.GROUP, resource.name
    return ResourceType.CLUSTER, CLUSTER_NAME
