"""DescribeConfigs, AlterConfigs and IncrementalAlterConfigs: what their messages mean."""

from __future__ import annotations

import pytest

from barnabas.config import ConfigSource, PropertyType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.cluster.configs import (
    CONFIG_SOURCES,
    CONFIG_TYPES,
    OP_SET,
    AlterConfigsRequest,
    AlterConfigsResource,
    ConfigEntry,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    IncrementalAlterConfigsRequest,
    ReplacedConfig,
    ReplacedConfigsResource,
)
from tests.protocol.kafka.codecs import refused, versions_of

DESCRIBE, REPLACE, ALTER = ApiKey.DESCRIBE_CONFIGS, ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS


def test_sources_and_types_have_kafkas_numbers() -> None:
    assert [CONFIG_SOURCES[source.name] for source in ConfigSource] == [source.value for source in ConfigSource]
    # org.apache.kafka.common.requests.DescribeConfigsResponse.ConfigType
    numbers = {"boolean": 1, "string": 2, "int": 3, "short": 4, "long": 5, "double": 6, "list": 7, "class": 8}
    numbers["password"] = 9
    assert {kind.value: CONFIG_TYPES[kind.value] for kind in PropertyType} == numbers


def test_an_entry_names_its_source_and_type_those_of_a_newer_broker_too() -> None:
    entry = ConfigEntry(name="retention.ms", value="5", source_code=5, type_code=5)
    assert (entry.source, entry.type, entry.is_default) == ("DEFAULT_CONFIG", "long", True)
    newer = entry.replaced(source_code=99, type_code=99)
    assert (newer.source, newer.type, newer.is_default) == ("UNKNOWN", "unknown", False)


def test_alter_configs_replaces_the_whole_set() -> None:
    config = ReplacedConfig(name="a", value="1")
    request = AlterConfigsRequest(resources=[ReplacedConfigsResource(type=4, name="", operations=[config])])
    assert (request.replaces, config.operation) == (True, OP_SET)


@pytest.mark.parametrize(("api", "version"), versions_of(DESCRIBE, REPLACE, ALTER))
def test_a_request_refused_as_a_whole_is_refused_for_every_resource(api: ApiKey, version: int) -> None:
    request = {
        DESCRIBE: DescribeConfigsRequest(resources=[DescribeConfigsResource(type=2, name="a")]),
        REPLACE: AlterConfigsRequest(resources=[ReplacedConfigsResource(type=2, name="a", operations=[])]),
        ALTER: IncrementalAlterConfigsRequest(resources=[AlterConfigsResource(type=2, name="a", operations=[])]),
    }[api]
    answer = refused(api, version, request, ErrorCode.KAFKA_STORAGE_ERROR, "disk")
    (refusal,) = answer.get("results") or answer["responses"]
    assert (refusal["resource_name"], refusal["error_code"], refusal["error_message"]) == ("a", 56, "disk")
