"""`barnabas topic ...`: create, list, describe, alter and delete topics."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, BinaryIO

import click

from barnabas.commands.config_entries import checked_changes, config_options
from barnabas.commands.failures import CommandFailure
from barnabas.commands.options import as_dict, bootstrap_option, json_option, parse_key_value, timeout_option
from barnabas.protocol.errors import BrokerError, ErrorCode

if TYPE_CHECKING:
    from barnabas.clients.admin.admin import Admin, TopicDescription


@click.group()
def topic() -> None:
    """Create, list, describe, alter and delete topics."""


@topic.command()
@click.argument("name", metavar="TOPIC")
@click.option(
    "--partitions",
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of partitions. Default: the broker's num.partitions.",
)
@click.option("--replication-factor", type=click.IntRange(min=1), metavar="N", help="Always 1 on a single node.")
@click.option(
    "--config",
    "configs",
    type=parse_key_value,
    metavar="K=V",
    multiple=True,
    help="A topic property, for example retention.ms=-1. Repeatable; `barnabas config list --scope topic` lists them.",
)
@click.option("--if-not-exists", is_flag=True, help="Exit 0 if the topic exists already, whatever its settings.")
@json_option
@bootstrap_option
@timeout_option
def create(
    name: str,
    partitions: int | None,
    replication_factor: int | None,
    configs: tuple[tuple[str, str], ...],
    if_not_exists: bool,
    as_json: bool,
    bootstrap: str,
    timeout_s: float,
) -> None:
    """Create TOPIC."""
    from barnabas.commands.output import print_json, print_line, print_note
    from barnabas.commands.session import with_admin
    from barnabas.explanation.wording import counted

    wanted = as_dict(configs, "--config")

    async def work(admin: Admin) -> dict[str, Any]:
        try:
            created = await admin.create_topic(
                name, partitions=partitions, replication_factor=replication_factor, configs=wanted
            )
        except BrokerError as error:
            if not if_not_exists or error.code is not ErrorCode.TOPIC_ALREADY_EXISTS:
                raise
            found = await admin.describe_topic(name)
            return _created(name, found.topic_id, len(found.partitions), False, None)
        return _created(name, created.topic_id, created.partitions, True, created.warning)

    result = with_admin(bootstrap, timeout_s, work)
    if result["warning"] is not None:
        print_note(f"warning: {result['warning']}")
    if as_json:
        print_json(result)
    elif result["created"]:
        print_line(f"created topic {name} with {counted(result['partitions'], 'partition')}")
    else:
        print_line(f"topic {name} already exists, with {counted(result['partitions'], 'partition')}")


@topic.command(name="list")
@json_option
@bootstrap_option
@timeout_option
def list_topics(as_json: bool, bootstrap: str, timeout_s: float) -> None:
    """List all topics."""
    from barnabas.commands.output import print_json, print_line, print_table
    from barnabas.commands.session import with_admin

    async def work(admin: Admin) -> list[TopicDescription]:
        return await admin.list_topics()

    topics = with_admin(bootstrap, timeout_s, work)
    if as_json:
        print_json(
            [{"topic": entry.name, "topic_id": entry.topic_id, "partitions": len(entry.partitions)} for entry in topics]
        )
    elif topics:
        print_table(
            ("topic", "partitions", "topic id"),
            [(entry.name, len(entry.partitions), entry.topic_id) for entry in topics],
        )
    elif sys.stdout.isatty():
        print_line("no topics yet; `barnabas topic create` creates one")


@topic.command()
@click.argument("names", metavar="TOPIC...", nargs=-1, required=True)
@click.option("--all-configs", is_flag=True, help="Also show properties at their defaults.")
@json_option
@bootstrap_option
@timeout_option
def describe(names: tuple[str, ...], all_configs: bool, as_json: bool, bootstrap: str, timeout_s: float) -> None:
    """Show the partitions, offsets and properties of each TOPIC, and the cleaning state of compacted ones."""
    from barnabas.commands.output import print_json
    from barnabas.commands.session import with_admin
    from barnabas.commands.topic.description import description_of, print_description

    async def work(admin: Admin) -> list[dict[str, Any]]:
        return [await description_of(admin, name, all_configs) for name in names]

    descriptions = with_admin(bootstrap, timeout_s, work)
    if as_json:
        print_json(descriptions)
        return
    for number, description in enumerate(descriptions):
        print_description(description, is_first=number == 0)


@topic.command()
@click.argument("name", metavar="TOPIC")
@click.option("--partitions", type=click.IntRange(min=1), metavar="N", help="Increase the number of partitions to N.")
@config_options
@bootstrap_option
@timeout_option
def alter(
    name: str,
    partitions: int | None,
    configs: tuple[tuple[str, str], ...],
    deleted: tuple[str, ...],
    bootstrap: str,
    timeout_s: float,
) -> None:
    """Change properties of TOPIC, or add partitions.

    Properties change immediately, all or none. With more partitions, new records of a key may go to another partition
    than older ones: the order per key is kept from then on, but not across the change.
    """
    from barnabas.commands.output import print_line
    from barnabas.commands.session import with_admin
    from barnabas.explanation.wording import counted

    if partitions is None and not configs and not deleted:
        raise click.UsageError("Nothing to change: give --partitions, --config or --delete-config.")
    set_to = checked_changes(configs, deleted)

    async def work(admin: Admin) -> None:
        if set_to or deleted:
            await admin.alter_configs(topic=name, set_to=set_to, delete=deleted)
            print_line(f"changed {counted(len(set_to) + len(set(deleted)), 'property')} of topic {name}")
        if partitions is not None:
            await admin.create_partitions(name, partitions)
            print_line(f"topic {name} now has {counted(partitions, 'partition')}")

    with_admin(bootstrap, timeout_s, work)


@topic.command()
@click.argument("names", metavar="TOPIC...", nargs=-1, required=True)
@click.option("--if-exists", is_flag=True, help="Exit 0 if a topic does not exist.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation (only a terminal is asked, never a script).")
@bootstrap_option
@timeout_option
def delete(names: tuple[str, ...], if_exists: bool, yes: bool, bootstrap: str, timeout_s: float) -> None:
    """Delete each TOPIC and all of its records."""
    from barnabas.commands.output import print_line
    from barnabas.commands.session import with_admin

    if not yes and sys.stdin.isatty() and sys.stdout.isatty():
        question = f"Delete {', '.join(names)} and all records?"
        if not click.confirm(question):
            raise CommandFailure("nothing was deleted")

    async def work(admin: Admin) -> None:
        for name in names:
            try:
                await admin.delete_topic(name)
            except BrokerError as error:
                if not if_exists or error.code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    raise
                print_line(f"there is no topic {name}")
                continue
            print_line(f"deleted topic {name}")

    with_admin(bootstrap, timeout_s, work)


@topic.command(name="delete-records", context_settings={"ignore_unknown_options": True})  # for the offset -1
@click.argument("name", metavar="[TOPIC]", required=False)
@click.argument("partition", metavar="[PARTITION]", type=click.IntRange(min=0), required=False)
@click.argument("offset", metavar="[OFFSET]", type=click.IntRange(min=-1), required=False)
@click.option(
    "--offset-json-file",
    "file",
    type=click.File("rb"),
    metavar="FILE",
    help='Partitions and offsets as {"partitions": [{"topic": "t", "partition": 0, "offset": 5}], "version": 1}.',
)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation (only a terminal is asked, never a script).")
@json_option
@bootstrap_option
@timeout_option
def delete_records(
    name: str | None,
    partition: int | None,
    offset: int | None,
    file: BinaryIO | None,
    yes: bool,
    as_json: bool,
    bootstrap: str,
    timeout_s: float,
) -> int:
    """Delete the records of a partition below OFFSET.

    They are immediately no longer readable; the next run of log-retention frees the disk space. OFFSET -1 deletes all
    records. For several partitions use --offset-json-file, with a file as for kafka-delete-records.
    """
    from barnabas.commands.topic.record_deletion import delete_and_report, read_offsets

    if file is not None and name is None:
        offsets = read_offsets(file)
    elif file is None and name is not None and partition is not None and offset is not None:
        offsets = {(name, partition): offset}
    else:
        raise click.UsageError("Give TOPIC PARTITION OFFSET, or --offset-json-file alone.")
    return delete_and_report(offsets, yes=yes, as_json=as_json, bootstrap=bootstrap, timeout_s=timeout_s)


def _created(name: str, topic_id: str, partitions: int, created: bool, warning: str | None) -> dict[str, Any]:
    return {
        "topic": name,
        "topic_id": topic_id,
        "partitions": partitions,
        "created": created,
        "warning": warning,
    }
