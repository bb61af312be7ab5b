"""`barnabas group ...`: list, describe and delete groups of consumers, and set back what they have committed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from barnabas.commands.failures import CommandFailure
from barnabas.commands.group.reset_target import ResetTarget, parse_duration
from barnabas.commands.options import bootstrap_option, json_option, parse_timestamp, timeout_option

if TYPE_CHECKING:
    from barnabas.clients.admin.admin import Admin


@click.group()
def group() -> None:
    """Groups of consumers: list, describe, delete, reset offsets."""


@group.command(name="list")
@json_option
@bootstrap_option
@timeout_option
def list_(as_json: bool, bootstrap: str, timeout_s: float) -> None:
    """List all groups, also those that only ever committed offsets."""
    from barnabas.commands.output import print_json, print_table
    from barnabas.commands.session import with_admin

    async def work(admin: Admin) -> list[dict[str, Any]]:
        return [
            {
                "group": each.group_id,
                "state": each.state,
                "type": each.group_type,
                "protocol_type": each.protocol_type,
            }
            for each in await admin.list_groups()
        ]

    found = with_admin(bootstrap, timeout_s, work)
    if as_json:
        print_json(found)
    else:
        print_table(["group", "state", "type"], [[each["group"], each["state"], each["type"]] for each in found])


@group.command()
@click.argument("name", metavar="GROUP")
@json_option
@bootstrap_option
@timeout_option
def describe(name: str, as_json: bool, bootstrap: str, timeout_s: float) -> None:
    """Show where GROUP is in each partition, and how many records it has still to read.

    The lag is the number of offsets between what the group committed and the end of the partition. A dash: it has
    committed nothing, or the topic is gone. Where the group has members, `client` is who reads the partition.
    """
    from barnabas.commands.group.offsets import described
    from barnabas.commands.output import counted, print_json, print_line, print_table
    from barnabas.commands.session import with_admin

    found = with_admin(bootstrap, timeout_s, lambda admin: described(admin, name))
    if as_json:
        print_json(found)
        return
    members = found["members"]
    print_line(f"group {name}, {found['state']}" + (f", {counted(len(members), 'member')}" if members else ""))
    columns = ["topic", "partition", "committed", "end", "lag", "metadata", *(["client"] if members else [])]
    print_table(columns, [[entry[column] for column in columns] for entry in found["partitions"]])


@group.command()
@click.argument("names", metavar="GROUP...", nargs=-1, required=True)
@bootstrap_option
@timeout_option
def delete(names: tuple[str, ...], bootstrap: str, timeout_s: float) -> None:
    """Delete groups, with all that they have committed. A group with members is not deleted."""
    from barnabas.commands.output import print_line
    from barnabas.commands.session import with_admin

    async def work(admin: Admin) -> None:
        for name in names:
            await admin.delete_group(name)
            print_line(f"deleted group {name}")

    with_admin(bootstrap, timeout_s, work)


@group.command(name="reset-offsets")
@click.argument("name", metavar="GROUP")
@click.option("--topic", "topics", multiple=True, metavar="TOPIC", help="Repeatable; all that the group committed to.")
@click.option("--partition", "partitions", type=click.IntRange(min=0), multiple=True, metavar="N", help="Repeatable.")
@click.option("--to-earliest", is_flag=True, help="To the first record of each partition.")
@click.option("--to-latest", is_flag=True, help="To the end of each partition.")
@click.option(
    "--to-offset", type=click.IntRange(min=0), metavar="N", help="To this offset, or the nearest that is there."
)
@click.option("--to-timestamp", type=parse_timestamp, metavar="MS|ISO8601", help="To the first record at or after it.")
@click.option("--by-duration", type=parse_duration, metavar="DURATION", help="So far back from now: 90s, 15m, 2h, 7d.")
@click.option("--execute", is_flag=True, help="Do it. Without this option it is only shown.")
@json_option
@bootstrap_option
@timeout_option
def reset_offsets(
    name: str,
    topics: tuple[str, ...],
    partitions: tuple[int, ...],
    to_earliest: bool,
    to_latest: bool,
    to_offset: int | None,
    to_timestamp: int | None,
    by_duration: int | None,
    execute: bool,
    as_json: bool,
    bootstrap: str,
    timeout_s: float,
) -> None:
    """Set what GROUP has committed. The group must have no members.

    Shows what would change; with --execute it is done. An offset that a partition does not have (any more) becomes the
    nearest that it has.
    """
    from barnabas.commands.group.offsets import planned_reset
    from barnabas.commands.output import counted, print_json, print_note, print_table
    from barnabas.commands.session import with_admin

    target = ResetTarget.of(to_earliest, to_latest, to_offset, to_timestamp, by_duration)
    if partitions and len(topics) != 1:
        raise click.UsageError("--partition needs exactly one --topic")

    async def work(admin: Admin) -> list[dict[str, Any]]:
        from barnabas.clients.group_offsets import CommittedOffset
        from barnabas.protocol.topic_partition import TopicPartition

        plan = await planned_reset(admin, name, topics, partitions, target)
        if not plan:
            raise CommandFailure(f"group {name} has committed nothing: name a --topic")
        if execute:
            await admin.set_group_offsets(
                name,
                {TopicPartition(each["topic"], each["partition"]): CommittedOffset(each["new"]) for each in plan},
            )
        return plan

    plan = with_admin(bootstrap, timeout_s, work)
    if as_json:
        print_json({"group": name, "executed": execute, "partitions": plan})
        return
    columns = ["topic", "partition", "committed", "new"]
    print_table(columns, [[entry[column] for column in columns] for entry in plan])
    if not execute:
        print_note(f"nothing was changed: --execute sets {counted(len(plan), 'partition')}")
