"""Hypothetical settings of topics for `whatif`: what is in force by the metadata log, with the changes of --set."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from barnabas.broker.metadata.errors import MetadataError
from barnabas.broker.metadata.log.log_replay import METADATA_DIRECTORY, replay_metadata_directory
from barnabas.commands.exit_codes import ExitCode
from barnabas.commands.failures import CommandFailure
from barnabas.commands.stopped_broker import Directories, stored_broker_config
from barnabas.config.broker_config import BrokerConfig
from barnabas.config.errors import ConfigError
from barnabas.config.topic_config import complaints, validate_topic_configs
from barnabas.pipeline.jobs.whatif import TopicPolicy


def policies_of(
    topics: Iterable[str], changes: Mapping[str, str], metadata_log_dir: Path, note: Callable[[str], None]
) -> list[TopicPolicy]:
    """Return the policy of each topic, by name. `note` is called with remarks for the user.

    Raises CommandFailure for an invalid change, and if the metadata log cannot be replayed.
    """
    try:
        replayed = replay_metadata_directory(metadata_log_dir / METADATA_DIRECTORY)
    except MetadataError as error:
        raise CommandFailure(str(error)) from error
    if not replayed.exists:
        note(f"{metadata_log_dir} has no metadata log, so default configs are assumed (see --metadata-log-dir)")
    broker_config = BrokerConfig.of()
    if replayed.exists:
        broker_config = stored_broker_config(Directories((metadata_log_dir,), None), replayed.image)
    policies = []
    for topic in sorted(topics):
        own = dict(replayed.image.topic_configs(topic)) if replayed.exists else {}
        wanted = {**own, **changes}
        try:
            legal = {name: text for name, text in wanted.items() if name in changes or not complaints({name: text})}
            validate_topic_configs(legal, broker_config, changes)
        except ConfigError as error:
            raise CommandFailure(f"topic {topic} cannot have these settings: {error}", ExitCode.USAGE) from error
        policies.append(TopicPolicy.of(topic, broker_config.log_config.with_overrides(wanted)))
    return policies
