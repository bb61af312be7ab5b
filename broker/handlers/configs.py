"""DescribeConfigs (32) and AlterConfigs (33, incremental): topics, this broker, and the default of all brokers.

Changes are kept in the metadata log and applied at once where the property says dynamic; a property that is read-only
at run time is INVALID_CONFIG, as is an unknown one or a bad value. All operations on a resource apply together or not
at all. An unknown topic is UNKNOWN_TOPIC_OR_PARTITION; another broker's id, or a resource that is named twice,
INVALID_REQUEST.

Describing the default of all brokers (the empty name) lists what was set there, as Kafka does. Secrets have no value.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from barnabas.config import BROKER_PROPERTIES, ConfigSource, describe_topic
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.messages.configs import (
    BROKER_RESOURCE,
    TOPIC_RESOURCE,
    AlterConfigsRequest,
    AlterConfigsResponse,
    ConfigEntry,
    ConfigResource,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)

if TYPE_CHECKING:
    from barnabas.broker.live_config import LiveConfig
    from barnabas.broker.metadata.store import MetadataStore
    from barnabas.broker.metadata_changes import MetadataChanges
    from barnabas.broker.metrics.probes import ApiProbe
    from barnabas.broker.session import Session
    from barnabas.config import ConfigValue, Property


class DescribeConfigsHandler:
    """Serves DescribeConfigs."""

    def __init__(self, store: MetadataStore, config: LiveConfig, probe: ApiProbe) -> None:
        self._store = store
        self._config = config
        self._probe = probe

    def __call__(self, session: Session, request: DescribeConfigsRequest) -> DescribeConfigsResponse:
        """The answer to one request; the contract is at the top of the file."""
        results = []
        times_named = Counter((entry.resource.type, entry.resource.name) for entry in request.resources)
        for entry in request.resources:
            try:
                if times_named[(entry.resource.type, entry.resource.name)] > 1:
                    # Each would be told in full: a small request for a very large answer.
                    raise BrokerError(ErrorCode.INVALID_REQUEST, "Each resource must appear at most once.")
                described = self._describe(entry.resource)
            except BrokerError as error:
                self._probe.count_error(error.code.name.lower())
                results.append(DescribeConfigsResult(entry.resource, error.code, error.message))
                continue
            names = entry.names
            is_broker = entry.resource.type == BROKER_RESOURCE
            entries = [
                _entry(each, value, read_only=is_broker and not each.is_dynamic)
                for each, value in described
                if names is None or each.name in names
            ]
            results.append(DescribeConfigsResult(entry.resource, entries=entries))
        return DescribeConfigsResponse(results)

    def _describe(self, resource: ConfigResource) -> list[tuple[Property, ConfigValue]]:
        image = self._store.image
        if resource.type == TOPIC_RESOURCE:
            if resource.name not in image.topics:
                raise BrokerError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic '{resource.name}' does not exist")
            return describe_topic(self._config.broker, image.topic_configs(resource.name))
        if resource.type != BROKER_RESOURCE:
            raise BrokerError(ErrorCode.INVALID_REQUEST, f"resource type {resource.type} is neither topic nor broker")
        if resource.name == "":
            default = image.default_broker_configs()
            only_default = self._config.static.with_dynamic(default, {}, stored=True)
            return [
                (BROKER_PROPERTIES[name], only_default.value(name)) for name in default if name in BROKER_PROPERTIES
            ]
        if resource.name != str(self._store.node_id):
            raise BrokerError(
                ErrorCode.INVALID_REQUEST, f"broker '{resource.name}' is not this one, which is {self._store.node_id}"
            )
        return self._config.broker.describe()


class AlterConfigsHandler:
    """Serves AlterConfigs."""

    def __init__(self, changes: MetadataChanges, probe: ApiProbe) -> None:
        self._changes = changes
        self._probe = probe

    async def __call__(self, session: Session, request: AlterConfigsRequest) -> AlterConfigsResponse:
        """The answer to one request; the contract is at the top of the file."""
        response = await self._changes.alter_configs(request)
        for result in response.results:
            if result.error is not ErrorCode.NONE:
                self._probe.count_error(result.error.name.lower())
        return response


def _entry(known: Property, value: ConfigValue, *, read_only: bool) -> ConfigEntry:
    return ConfigEntry(
        name=known.name,
        value=value.text,
        source=value.source.name,
        type=known.type.value,
        doc=known.doc,
        read_only=read_only,
        is_default=value.source is ConfigSource.DEFAULT_CONFIG,
        sensitive=known.is_sensitive,
    )
