"""An explained property as JSON for programs, and as sentences for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from barnabas.config.value import ConfigSource
from barnabas.protocol.messages.topics.explain_topic import ExplainTopicResponse, SettingValue

_LAYERS = {
    ConfigSource.DYNAMIC_TOPIC_CONFIG.name: "the topic's own config",
    ConfigSource.DYNAMIC_BROKER_CONFIG.name: "the dynamic config of this broker",
    ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG.name: "the dynamic default of all brokers",
    ConfigSource.STATIC_BROKER_CONFIG.name: "the broker's start",
    ConfigSource.DEFAULT_CONFIG.name: "the default",
}


def config_json(topic: str, explained: ExplainTopicResponse) -> dict[str, Any]:
    """The document of `--json`; docs/explain.md has its fields."""
    (setting,) = explained.settings
    return {
        "topic": topic,
        "name": setting.name,
        **value_json(setting),
        "chain": [{"name": each.name, **value_json(each)} for each in explained.layers],
    }


def value_json(setting: SettingValue) -> dict[str, Any]:
    """A value with its layer and its exact origin."""
    return {"value": setting.value, "source": setting.source, "origin": setting.origin}


def config_sentences(topic: str, explained: ExplainTopicResponse) -> Iterator[str]:
    """The value in force, then each layer that has one."""
    (setting,) = explained.settings
    yield f"{setting.name} of {topic} is {setting.value}, from {_layer(setting)}"
    for index, each in enumerate(explained.layers):
        effect = "in force" if index == 0 else "overridden"
        yield f"  {each.name}={each.value} in {_layer(each)}: {effect}"


def _layer(setting: SettingValue) -> str:
    layer = _LAYERS.get(setting.source, setting.source)
    return f"{layer} ({setting.origin})" if setting.source == ConfigSource.STATIC_BROKER_CONFIG.name else layer
