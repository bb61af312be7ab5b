"""DescribeConfigs, AlterConfigs and IncrementalAlterConfigs in Kafka's protocol, every version both ways."""

from __future__ import annotations

import pytest

from barnabas.config import ConfigSource, PropertyType
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.kafka.cluster import describe_configs
from barnabas.protocol.kafka.cluster.config_codes import source_code, type_code
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.cluster.configs import (
    AlterConfigOp,
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResponse,
    AlterConfigsResult,
    ConfigEntry,
    ConfigResource,
    ConfigSynonym,
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from tests.protocol.kafka.codecs import decoded, encoded, refused, row, subset, versions_of

DESCRIBE, REPLACE, ALTER = ApiKey.DESCRIBE_CONFIGS, ApiKey.ALTER_CONFIGS, ApiKey.INCREMENTAL_ALTER_CONFIGS


def test_sources_and_types_have_kafkas_numbers() -> None:
    assert [source_code(source.name) for source in ConfigSource] == [source.value for source in ConfigSource]
    # org.apache.kafka.common.requests.DescribeConfigsResponse.ConfigType
    numbers = {"boolean": 1, "string": 2, "int": 3, "short": 4, "long": 5, "double": 6, "list": 7, "class": 8}
    numbers["password"] = 9
    assert {kind.value: type_code(kind.value) for kind in PropertyType} == numbers


@pytest.mark.parametrize(("api", "version"), versions_of(DESCRIBE))
def test_requested_configs_are_decoded(api: ApiKey, version: int) -> None:
    resources = tuple(
        row(api, version, "DescribeConfigsResource", resource_type=2, resource_name=name, configuration_keys=keys)
        for name, keys in (("a", None), ("b", ()), ("c", ("x", "y")))
    )
    request = decoded(api, version, resources=resources, include_synonyms=True, include_documentation=True)
    assert request == DescribeConfigsRequest(
        [
            DescribeConfigsResource(ConfigResource(2, "a"), None),
            DescribeConfigsResource(ConfigResource(2, "b"), None),
            DescribeConfigsResource(ConfigResource(2, "c"), ["x", "y"]),
        ],
        include_synonyms=True,
        include_documentation=version >= 3,
    )


@pytest.mark.parametrize(("api", "version"), versions_of(DESCRIBE))
def test_entries_that_resources_share_are_encoded_once_and_in_every_row(
    api: ApiKey, version: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources: list[str] = []

    def noted(source: str) -> int:
        sources.append(source)
        return source_code(source)

    monkeypatch.setattr(describe_configs, "source_code", noted)
    shared, own = (
        [ConfigEntry("a", "1", "STATIC_BROKER_CONFIG", "int", "")],
        [ConfigEntry("a", "2", "DYNAMIC_TOPIC_CONFIG", "int", "")],
    )
    asked = [("x", 2, shared), ("y", 2, own), ("z", -3, shared)]
    results = [DescribeConfigsResult(ConfigResource(kind, name), entries=entries) for name, kind, entries in asked]
    found = encoded(api, version, DescribeConfigsResponse(results))["results"]
    assert [(each["resource_name"], each["resource_type"], each["configs"][0]["value"]) for each in found] == [
        ("x", 2, "1"),
        ("y", 2, "2"),
        ("z", -3, "1"),
    ]
    assert sources == ["STATIC_BROKER_CONFIG", "DYNAMIC_TOPIC_CONFIG"]


@pytest.mark.parametrize(("api", "version"), versions_of(DESCRIBE))
def test_described_configs_have_sources_synonyms_types_and_documentation(api: ApiKey, version: int) -> None:
    entry = ConfigEntry(
        "retention.ms",
        "5",
        "DYNAMIC_TOPIC_CONFIG",
        "long",
        "How long",
        read_only=True,
        synonyms=[ConfigSynonym("log.retention.ms", None, "STATIC_BROKER_CONFIG")],
    )
    results = [
        DescribeConfigsResult(ConfigResource(2, "a"), entries=[entry]),
        DescribeConfigsResult(ConfigResource(4, "9"), ErrorCode.INVALID_REQUEST, "who"),
    ]
    good, bad = encoded(api, version, DescribeConfigsResponse(results))["results"]
    (config,) = good["configs"]
    expected = {
        "name": "retention.ms",
        "value": "5",
        "read_only": True,
        "config_source": 1,
        "is_sensitive": False,
        "synonyms": [{"name": "log.retention.ms", "value": None, "source": 4}],
        "config_type": 5,
        "documentation": "How long",
    }
    assert config == subset(expected, config)
    assert ("config_type" in config) == (version >= 3)
    assert (good["error_code"], good["resource_type"], good["resource_name"]) == (0, 2, "a")
    assert (bad["error_code"], bad["error_message"], bad["configs"]) == (42, "who", [])


@pytest.mark.parametrize(("api", "version"), versions_of(REPLACE))
def test_alter_configs_replaces_the_whole_set(api: ApiKey, version: int) -> None:
    configs = (
        row(api, version, "AlterableConfig", name="a", value="1"),
        row(api, version, "AlterableConfig", name="b", value=None),
    )
    resource = row(api, version, "AlterConfigsResource", resource_type=4, resource_name="", configs=configs)
    assert decoded(api, version, resources=(resource,), validate_only=True) == AlterConfigsRequest(
        [AlterConfigsResource(ConfigResource(4, ""), [AlterConfigOp("a", 0, "1"), AlterConfigOp("b", 0, None)])],
        validate_only=True,
        replace=True,
    )


@pytest.mark.parametrize(("api", "version"), versions_of(ALTER))
def test_the_incremental_api_has_four_operations(api: ApiKey, version: int) -> None:
    configs = tuple(
        row(api, version, "AlterableConfig", name="a", config_operation=operation, value="1") for operation in range(4)
    )
    resource = row(api, version, "AlterConfigsResource", resource_type=2, resource_name="t", configs=configs)
    operations = [AlterConfigOp("a", operation, "1") for operation in range(4)]
    assert decoded(api, version, resources=(resource,), validate_only=False) == AlterConfigsRequest(
        [AlterConfigsResource(ConfigResource(2, "t"), operations)]
    )


@pytest.mark.parametrize(("api", "version"), versions_of(REPLACE, ALTER))
def test_results_of_altered_configs(api: ApiKey, version: int) -> None:
    results = [
        AlterConfigsResult(ConfigResource(2, "a"), message="a warning"),
        AlterConfigsResult(ConfigResource(4, "1"), ErrorCode.INVALID_CONFIG, "no"),
    ]
    assert encoded(api, version, AlterConfigsResponse(results))["responses"] == [
        {"error_code": 0, "error_message": None, "resource_type": 2, "resource_name": "a"},
        {"error_code": 40, "error_message": "no", "resource_type": 4, "resource_name": "1"},
    ]


@pytest.mark.parametrize(("api", "version"), versions_of(DESCRIBE, REPLACE, ALTER))
def test_a_request_refused_as_a_whole_is_refused_for_every_resource(api: ApiKey, version: int) -> None:
    resource = ConfigResource(2, "a")
    request = (
        DescribeConfigsRequest([DescribeConfigsResource(resource)])
        if api is DESCRIBE
        else AlterConfigsRequest([AlterConfigsResource(resource, [])])
    )
    answer = refused(api, version, request, ErrorCode.KAFKA_STORAGE_ERROR, "disk")
    (refusal,) = answer.get("results") or answer["responses"]
    assert (refusal["resource_name"], refusal["error_code"], refusal["error_message"]) == ("a", 56, "disk")
