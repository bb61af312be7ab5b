"""The configuration with which a stopped broker would start: its file, the environment, and the metadata log."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from barnabas.broker.metadata.directories.meta_properties import read_meta_properties
from barnabas.broker.metadata.errors import MetadataError
from barnabas.broker.storage.explanation.topic_explanation import setting_layers
from barnabas.commands.failures import CommandFailure
from barnabas.commands.stopped_broker import Directories, stored_image
from barnabas.config.loader import ConfigError, load
from barnabas.protocol.messages.topics.explain_topic import ExplainTopicResponse

if TYPE_CHECKING:
    from barnabas.broker.metadata.image import MetadataImage
    from barnabas.config import BrokerConfig


def stored_broker_config(directories: Directories, image: MetadataImage) -> BrokerConfig:
    """Return the static and the dynamic layers of the broker's configuration. Raises CommandFailure."""
    overrides = ["ignore.security=true"]
    if directories.log_dirs:
        overrides.append(f"log.dirs={','.join(map(str, directories.log_dirs))}")
    try:
        static = load(config_file=directories.config_file, environ=os.environ, overrides=overrides)
        node_id = static.node_id
        if node_id is None:
            found = read_meta_properties(static.log_dirs[0])
            node_id = None if found is None else found.node_id
    except (ConfigError, MetadataError) as error:
        raise CommandFailure(str(error)) from error
    own = {} if node_id is None else image.broker_configs(node_id)
    return static.with_dynamic(image.default_broker_configs(), own, stored=True)


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
