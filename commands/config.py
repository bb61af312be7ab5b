"""`barnabas config ...`: list all properties; describe and alter those of a broker or topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from barnabas.commands.config_entries import checked_changes, config_options, entry_json
from barnabas.commands.failures import CommandFailure
from barnabas.commands.options import Command, bootstrap_option, json_option, timeout_option

if TYPE_CHECKING:
    from barnabas.clients.admin.admin import Admin
    from barnabas.config.property import Property
    from barnabas.protocol.messages.cluster.configs import ConfigEntry

ALL_BROKERS = ""
"""Name of the resource with the defaults of all brokers (Kafka's `--entity-default`)."""


@click.group()
def config() -> None:
    """List all properties; describe and alter a broker's or topic's."""


@config.command(name="list")
@click.argument("pattern", metavar="[TEXT]", required=False)
@click.option(
    "--scope",
    type=click.Choice(("all", "broker", "topic")),
    default="all",
    show_default=True,
    help="Properties of the broker (server.properties, --set) or of topics (topic create --config).",
)
@json_option
def list_properties(pattern: str | None, scope: str, as_json: bool) -> None:
    """List every property with its type, default and meaning, or only those whose name contains TEXT.

    Names, types and defaults are Apache Kafka's. No broker is needed.
    """
    from barnabas.commands.output import print_json, print_line, print_table
    from barnabas.config.tables.broker_properties import BROKER_PROPERTIES
    from barnabas.config.tables.topic_properties import TOPIC_PROPERTIES

    tables = {"broker": BROKER_PROPERTIES, "topic": TOPIC_PROPERTIES}
    found = {
        name: [entry for entry in table.values() if pattern is None or pattern.lower() in entry.name]
        for name, table in tables.items()
        if scope in ("all", name)
    }
    if pattern is not None and not any(found.values()):
        raise CommandFailure(f"no property's name contains {pattern!r}")
    if as_json:
        print_json([_property_json(name, entry) for name, entries in found.items() for entry in entries])
        return
    is_first = True
    for name, entries in found.items():
        if not entries:
            continue
        if not is_first:
            print_line("")
        is_first = False
        print_table(
            (f"{name} property", "type", "default", "may change", "meaning"),
            [(entry.name, entry.type.value, _default_text(entry), _update_text(entry), entry.doc) for entry in entries],
        )


def _resource_options(command: Command) -> Command:
    """`--topic T`, `--broker ID` or `--all-brokers`."""
    everyone = click.option("--all-brokers", is_flag=True, help="The defaults of all brokers.")
    broker = click.option("--broker", type=click.IntRange(min=0), metavar="ID", help="The broker with this node id.")
    topic = click.option("--topic", metavar="TOPIC", help="This topic.")
    return topic(broker(everyone(command)))


@config.command()
@_resource_options
@click.option("--all", "show_all", is_flag=True, help="Also show properties at their defaults.")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@json_option
@bootstrap_option
@timeout_option
def describe(
    topic: str | None,
    broker: int | None,
    all_brokers: bool,
    show_all: bool,
    names: tuple[str, ...],
    as_json: bool,
    bootstrap: str,
    timeout_s: float,
) -> None:
    """Show the properties of a topic or broker that are not at their defaults, or those given by NAME.

    With --all-brokers: the properties that were set for all brokers while they were running.
    """
    from barnabas.commands.output import print_json, print_line
    from barnabas.commands.session import with_admin

    resource = _resource(topic, broker, all_brokers)

    async def work(admin: Admin) -> list[ConfigEntry]:
        return await admin.describe_configs(**resource, names=names or None)

    entries = with_admin(bootstrap, timeout_s, work)
    missing = set(names) - {entry.name for entry in entries}
    if missing and not all_brokers:  # that resource has only properties that were set; others are not an error
        raise CommandFailure(f"unknown property: {', '.join(sorted(missing))}")
    shown = [entry for entry in entries if show_all or names or not entry.is_default]
    if as_json:
        print_json([entry_json(entry) for entry in shown])
    elif shown:
        _print_entries(shown, with_mode=topic is None)
    elif all_brokers:
        print_line("not set for all brokers" if names else "nothing is set for all brokers")
    else:
        print_line("all properties are at their defaults (--all shows them)")


@config.command()
@_resource_options
@config_options
@bootstrap_option
@timeout_option
def alter(
    topic: str | None,
    broker: int | None,
    all_brokers: bool,
    configs: tuple[tuple[str, str], ...],
    deleted: tuple[str, ...],
    bootstrap: str,
    timeout_s: float,
) -> None:
    """Set and unset properties of a topic or broker while it runs: all of them, or none if one is refused.

    `barnabas config list` shows which of a broker's properties can be changed while running. A change is kept over
    restarts and overrides the file, the environment and --set.
    """
    from barnabas.commands.output import print_line
    from barnabas.commands.session import with_admin
    from barnabas.explanation.wording import counted

    resource = _resource(topic, broker, all_brokers)
    set_to = checked_changes(configs, deleted)
    if not set_to and not deleted:
        raise click.UsageError("Nothing to change: give --config or --delete-config.")

    async def work(admin: Admin) -> None:
        await admin.alter_configs(**resource, set_to=set_to, delete=deleted)

    with_admin(bootstrap, timeout_s, work)
    print_line(f"changed {counted(len(set_to) + len(set(deleted)), 'property')}")


def _print_entries(entries: list[ConfigEntry], *, with_mode: bool) -> None:
    """Print a table; `with_mode` adds when each may change (a topic's properties always can while running)."""
    from barnabas.commands.output import print_table

    mode = ("may change",) if with_mode else ()
    print_table(
        ("property", "value", "from", *mode),
        [
            (entry.name, _value_text(entry), entry.source, *((_mode_text(entry.read_only),) if with_mode else ()))
            for entry in entries
        ],
    )


def _resource(topic: str | None, broker: int | None, all_brokers: bool) -> dict[str, Any]:
    """The chosen resource, as arguments of Admin's methods."""
    if (topic is not None) + (broker is not None) + all_brokers != 1:
        raise click.UsageError("Give one of --topic TOPIC, --broker ID and --all-brokers.")
    if topic is not None:
        return {"topic": topic}
    return {"broker": ALL_BROKERS if broker is None else broker}


def _property_json(scope: str, entry: Property) -> dict[str, Any]:
    return {
        "scope": scope,
        "name": entry.name,
        "type": entry.type.value,
        "default": None if entry.is_sensitive else entry.default,
        "rule": entry.rule,
        "update_mode": entry.update_mode.value,
        "topic_name": entry.topic_name,
        "doc": entry.doc,
    }


def _default_text(entry: Property) -> str | None:
    text = entry.show(entry.default)
    return '""' if text == "" else text


def _update_text(entry: Property) -> str:
    return _mode_text(not entry.is_dynamic)


def _mode_text(read_only: bool) -> str:
    return "at start" if read_only else "while running"


def _value_text(entry: ConfigEntry) -> str | None:
    if entry.sensitive:
        return "(hidden)"
    return entry.value
