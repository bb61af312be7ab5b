"""`barnabas group ...`: list, describe and delete consumer and share groups, and reset committed offsets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from barnabas.commands.durations import parse_duration
from barnabas.commands.failures import CommandFailure
from barnabas.commands.group.reset_target import ResetTarget
from barnabas.commands.options import bootstrap_option, json_option, parse_timestamp, timeout_option

if TYPE_CHECKING:
    from barnabas.clients.admin.admin import Admin


@click.group()
def group() -> None:
    """List, describe and delete consumer groups and share groups; reset offsets."""


@group.command(name="list")
@json_option
@bootstrap_option
@timeout_option
def list_(as_json: bool, bootstrap: str, timeout_s: float) -> None:
    """List all groups, including those that only committed offsets."""
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
    """Show GROUP's committed offset and lag in each partition.

    The lag is the number of offsets between the committed offset and the end of the partition. A dash means that no
    offset is committed, or that the topic no longer exists. `client` is the member that reads the partition.

    Of a share group: where it begins in each partition, how many records after that are not done, and the members that
    share the partition. A dash means that nothing was delivered yet.

    Of a streams group: also the tasks of each member, by subtopology and partition.
    """
    from barnabas.commands.group.offsets import described
    from barnabas.commands.group.share_group import SHARE_TYPE
    from barnabas.commands.group.streams_group import STREAMS_TYPE
    from barnabas.commands.output import print_json, print_line, print_table
    from barnabas.commands.session import with_admin
    from barnabas.explanation.wording import counted

    found = with_admin(bootstrap, timeout_s, lambda admin: described(admin, name))
    if as_json:
        print_json(found)
        return
    members = found["members"]
    if found["type"] == SHARE_TYPE:
        print_line(f"share group {name}, {found['state']}, {counted(len(members), 'member')}")
        rows = [{**entry, "clients": ", ".join(entry["clients"])} for entry in found["partitions"]]
        share_columns = ["topic", "partition", "start", "lag", "clients"]
        print_table(share_columns, [[entry[column] for column in share_columns] for entry in rows])
        return
    print_line(f"group {name}, {found['state']}" + (f", {counted(len(members), 'member')}" if members else ""))
    columns = ["topic", "partition", "committed", "end", "lag", "metadata", *(["client"] if members else [])]
    print_table(columns, [[entry[column] for column in columns] for entry in found["partitions"]])
    if found["type"] == STREAMS_TYPE and members:
        print_line("")
        task_columns = ["member", "client", "active tasks", "standby tasks"]
        print_table(
            task_columns,
            [
                [
                    each["member_id"],
                    f"{each['client_id']}@{each['host']}",
                    ", ".join(each["active_tasks"]),
                    ", ".join([*each["standby_tasks"], *(f"{task} (warm-up)" for task in each["warmup_tasks"])]),
                ]
                for each in members
            ],
        )


@group.command()
@click.argument("names", metavar="GROUP...", nargs=-1, required=True)
@bootstrap_option
@timeout_option
def delete(names: tuple[str, ...], bootstrap: str, timeout_s: float) -> None:
    """Delete groups with their committed offsets. A group with members is not deleted."""
    from barnabas.commands.output import print_line
    from barnabas.commands.session import with_admin

    async def work(admin: Admin) -> None:
        for name in names:
            await admin.delete_group(name)
            print_line(f"deleted group {name}")

    with_admin(bootstrap, timeout_s, work)


@group.command(name="reset-offsets")
@click.argument("name", metavar="GROUP")
@click.option(
    "--topic", "topics", multiple=True, metavar="TOPIC", help="Repeatable. Default: all with committed offsets."
)
@click.option("--partition", "partitions", type=click.IntRange(min=0), multiple=True, metavar="N", help="Repeatable.")
@click.option("--to-earliest", is_flag=True, help="To the first record of each partition.")
@click.option("--to-latest", is_flag=True, help="To the end of each partition.")
@click.option(
    "--to-offset", type=click.IntRange(min=0), metavar="N", help="To this offset, or the nearest one in the log."
)
@click.option(
    "--to-timestamp", type=parse_timestamp, metavar="MS|ISO8601", help="To the first record at or after this time."
)
@click.option(
    "--by-duration", type=parse_duration, metavar="DURATION", help="To this long before now: 90s, 15m, 2h, 7d."
)
@click.option("--execute", is_flag=True, help="Commit the new offsets. Without this option they are only shown.")
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
    """Set GROUP's committed offsets. The group must have no members.

    Shows the new offsets, and commits them with --execute. An offset outside of a partition's log becomes the nearest
    one inside.
    """
    from barnabas.commands.group.offsets import planned_reset
    from barnabas.commands.output import print_json, print_note, print_table
    from barnabas.commands.session import with_admin
    from barnabas.explanation.wording import counted

    target = ResetTarget.of(to_earliest, to_latest, to_offset, to_timestamp, by_duration)
    if partitions and len(topics) != 1:
        raise click.UsageError("--partition needs exactly one --topic")

    async def work(admin: Admin) -> list[dict[str, Any]]:
        from barnabas.clients.group_offsets import CommittedOffset
        from barnabas.protocol.topic_partition import TopicPartition

        plan = await planned_reset(admin, name, topics, partitions, target)
        if not plan:
            raise CommandFailure(f"group {name} has no committed offsets: give --topic")
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
