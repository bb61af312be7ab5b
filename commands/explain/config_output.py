"""An explained property as JSON for programs, and as sentences for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from barnabas.commands.explain.stored_config import ExplainedConfig
from barnabas.config.value import ConfigSource, ConfigValue

_LAYERS = {
    ConfigSource.DYNAMIC_TOPIC_CONFIG: "the topic's own config",
    ConfigSource.DYNAMIC_BROKER_CONFIG: "the dynamic config of this broker",
    ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG: "the dynamic default of all brokers",
    ConfigSource.STATIC_BROKER_CONFIG: "the broker's start",
    ConfigSource.DEFAULT_CONFIG: "the default",
}


def config_json(explained: ExplainedConfig) -> dict[str, Any]:
    """The document of `--json`; docs/explain.md has its fields."""
    return {
        "topic": explained.topic,
        "name": explained.name,
        **value_json(explained.value),
        "chain": [{"name": each.name, **value_json(each.value)} for each in explained.chain],
    }


def value_json(value: ConfigValue) -> dict[str, Any]:
    """A value with its layer and its exact origin."""
    return {"value": value.text, "source": value.source.name, "origin": value.origin}


def config_sentences(explained: ExplainedConfig) -> Iterator[str]:
    """The value in force, then each layer that has one."""
    value = explained.value
    yield f"{explained.name} of {explained.topic} is {value.text}, from {_layer(value)}"
    for index, synonym in enumerate(explained.chain):
        effect = "in force" if index == 0 else "overridden"
        yield f"  {synonym.name}={synonym.value.text} in {_layer(synonym.value)}: {effect}"


def _layer(value: ConfigValue) -> str:
    layer = _LAYERS[value.source]
    return f"{layer} ({value.origin})" if value.source is ConfigSource.STATIC_BROKER_CONFIG else layer
