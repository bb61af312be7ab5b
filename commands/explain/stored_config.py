"""A value of a topic's property, explained from the directories of a stopped broker."""

from __future__ import annotations

from barnabas.broker.storage.explanation.topic_explanation import setting_layers
from barnabas.commands.failures import CommandFailure
from barnabas.commands.stopped_broker import Directories, stored_broker_config, stored_image
from barnabas.protocol.messages.topics.explain_topic import ExplainTopicResponse


def explain_stored_config(directories: Directories, topic: str, name: str) -> ExplainTopicResponse:
    """Return the value of a topic's property and where it comes from. Raises CommandFailure, OSError."""
    image = stored_image(directories)
    if topic not in image.topics:
        raise CommandFailure(f"the metadata log has no topic {topic}")
    config = stored_broker_config(directories, image)
    found = setting_layers(config, image.topic_configs(topic), name)
    if found is None:
        raise CommandFailure(f"topics have no property {name}: barnabas config list --scope topic has all")
    return ExplainTopicResponse(settings=found[0], layers=found[1])
