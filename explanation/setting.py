"""An explained property as JSON for programs, and as sentences for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from barnabas.config.log_config import KEPT
from barnabas.config.value import ConfigSource
from barnabas.explanation.change import Change, change_totals
from barnabas.explanation.wording import counted, time_text
from barnabas.protocol.messages.topics.explain_topic import ExplainTopicResponse, SettingValue

_LAYERS = {
    ConfigSource.DYNAMIC_TOPIC_CONFIG.name: "the topic's own config",
    ConfigSource.DYNAMIC_BROKER_CONFIG.name: "the dynamic config of this broker",
    ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG.name: "the dynamic default of all brokers",
    ConfigSource.STATIC_BROKER_CONFIG.name: "the broker's start",
    ConfigSource.DEFAULT_CONFIG.name: "the default",
}


def config_json(topic: str, explained: ExplainTopicResponse, change: Change | None) -> dict[str, Any]:
    """The document of `--json`; docs/explain.md has its fields."""
    setting = explained.settings[0]
    document: dict[str, Any] = {
        "topic": topic,
        "name": setting.name,
        **value_json(setting),
        "chain": [{"name": each.name, **value_json(each)} for each in explained.layers],
    }
    if change is not None:
        document["change"] = {
            "value": change.value,
            **change_totals(change),
            "next_ms": change.next_ms,
            "partitions": [each._asdict() for each in change.partitions],
        }
    return document


def value_json(setting: SettingValue) -> dict[str, Any]:
    """A value with its layer, its exact origin and why it is not understood."""
    return {
        "value": setting.value,
        "source": setting.source,
        "origin": setting.origin,
        "problem": setting.problem,
    }


def problem_sentence(setting: SettingValue) -> str:
    """What a stored value that is not understood means."""
    return f"{setting.name}={setting.value} from {_layer(setting)} is not understood, {setting.problem}: {KEPT}"


def config_sentences(topic: str, explained: ExplainTopicResponse, change: Change | None) -> Iterator[str]:
    """The value in force, then each layer that has one, what is not understood, then the effect of the change."""
    setting = explained.settings[0]
    value = setting.value or "empty"
    yield f"{setting.name} of {topic} is {value}, from {_layer(setting)}"
    for index, each in enumerate(explained.layers):
        effect = "overridden" if index else "in force" if each.problem is None else "not understood"
        yield f"  {each.name}={each.value} in {_layer(each)}: {effect}"

    yield from map(problem_sentence, (each for each in explained.settings if each.problem is not None))
    if change is not None:
        yield from change_sentences(change)


def change_sentences(change: Change) -> Iterator[str]:
    """What a change would delete, in total and by partition, and when the next segment goes."""
    totals = change_totals(change)
    what = f"with {change.name}={change.value}, the next check"
    if not change.partitions:
        yield f"{what} deletes nothing that it does not delete as things are"
    else:
        yield (
            f"{what} deletes {counted(totals['deleted_segments'], 'further segment')} "
            f"({totals['deleted_bytes']:,} bytes, {counted(totals['deleted_offsets'], 'offset')}) of "
            f"{counted(len(change.partitions), 'partition')}:"
        )
    for each in change.partitions:
        yield (
            f"  partition {each.partition}: {counted(each.segments, 'segment')}, {each.size_bytes:,} bytes; its log "
            f"then starts at offset {each.new_start_offset}"
        )
    if change.next_ms is not None:
        yield f"  the next segment after these goes at {time_text(change.next_ms)}"


def _layer(setting: SettingValue) -> str:
    layer = _LAYERS.get(setting.source, setting.source)
    return f"{layer} ({setting.origin})" if setting.source == ConfigSource.STATIC_BROKER_CONFIG.name else layer
