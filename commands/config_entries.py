"""Properties of topics and brokers in commands: the options that change them, and their JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from barnabas.commands.options import Command, as_dict, parse_key_value

if TYPE_CHECKING:
    from barnabas.protocol.messages.cluster.configs import ConfigEntry

_TOPICS_OWN = "DYNAMIC_TOPIC_CONFIG"
"""Kafka's name for the source of a value that was set for the topic itself."""


def config_options(command: Command) -> Command:
    """`--config K=V` and `--delete-config K`, both repeatable."""
    deleting = click.option(
        "--delete-config",
        "deleted",
        multiple=True,
        metavar="K",
        help="Unset a property, so that its next default applies. Repeatable.",
    )
    setting = click.option(
        "--config", "configs", type=parse_key_value, metavar="K=V", multiple=True, help="Set a property. Repeatable."
    )
    return setting(deleting(command))


def checked_changes(configs: tuple[tuple[str, str], ...], deleted: tuple[str, ...]) -> dict[str, str]:
    """The properties to set. Raises UsageError for a name that is both set and deleted."""
    set_to = as_dict(configs, "--config")
    for name in deleted:
        if name in set_to:
            raise click.UsageError(f"{name} is both set and deleted.")
    return set_to


def entry_json(entry: ConfigEntry) -> dict[str, Any]:
    """One property as JSON."""
    return {
        "name": entry.name,
        "value": entry.value,
        "source": entry.source,
        "type": entry.type,
        "is_default": entry.is_default,
        "read_only": entry.read_only,
        "sensitive": entry.sensitive,
    }


def is_topics_own(entry: ConfigEntry) -> bool:
    """Whether the value was set for the topic itself, not taken from the broker."""
    return entry.source == _TOPICS_OWN
