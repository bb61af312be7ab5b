"""`barnabas partition ...`: show the log directories with their partitions, and move partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from barnabas.commands.options import bootstrap_option, json_option, timeout_option

if TYPE_CHECKING:
    from barnabas.clients.admin.admin import Admin, LogDirDescription


@click.group()
def partition() -> None:
    """Show which log directory has each partition; move them."""


@partition.command()
@click.argument("topics", metavar="[TOPIC]...", nargs=-1)
@json_option
@bootstrap_option
@timeout_option
def dirs(topics: tuple[str, ...], as_json: bool, bootstrap: str, timeout_s: float) -> None:
    """List the brokers' log directories and the partitions in them (of each TOPIC, or all).

    A partition that is being moved is listed twice: in its current directory, and as a copy in the new one, with the
    number of offsets that the copy is behind.
    """
    from barnabas.commands.output import print_json
    from barnabas.commands.session import with_admin

    async def work(admin: Admin) -> list[LogDirDescription]:
        for topic in topics:
            await admin.describe_topic(topic)  # report a mistyped name instead of printing an empty list
        return await admin.describe_log_dirs()

    found = [_directory(described, topics) for described in with_admin(bootstrap, timeout_s, work)]
    if as_json:
        print_json(found)
    else:
        _print_directories(found)


@partition.command()
@click.argument("topic", metavar="TOPIC")
@click.argument("number", metavar="PARTITION", type=click.IntRange(min=0))
@click.argument("log_dir", metavar="LOG_DIR")
@click.option("--wait", is_flag=True, help="Wait for the end of the move, with a progress bar.")
@bootstrap_option
@timeout_option
def move(topic: str, number: int, log_dir: str, wait: bool, bootstrap: str, timeout_s: float) -> None:
    """Move PARTITION of TOPIC to another log directory of its broker.

    LOG_DIR is one of the broker's log.dirs, as an absolute path on its machine. Producers and consumers continue
    meanwhile. Naming the partition's current directory cancels a running move. --timeout ends the waiting, not the
    move.
    """
    from barnabas.commands.output import print_line
    from barnabas.commands.session import with_admin
    from barnabas.commands.topic.move import begin_move, wait_for_move
    from barnabas.protocol.topic_partition import TopicPartition

    topic_partition = TopicPartition(topic, number)

    async def work(admin: Admin) -> str:
        source = await begin_move(admin, topic_partition, log_dir)
        if source is None:
            return f"{topic_partition} is in {log_dir} already"
        if not wait:
            progress = f"`barnabas partition dirs {topic}` shows the progress"
            return f"moving {topic_partition} from {source} to {log_dir}; {progress}"
        await wait_for_move(admin, topic_partition, log_dir)
        return f"moved {topic_partition} from {source} to {log_dir}"

    print_line(with_admin(bootstrap, timeout_s, work))


def _directory(described: LogDirDescription, topics: tuple[str, ...]) -> dict[str, Any]:
    from barnabas.protocol.errors import ErrorCode

    return {
        "broker": described.broker,
        "log_dir": described.path,
        "error": None if described.error is ErrorCode.NONE else described.error.name,
        "total_bytes": described.total_bytes if described.total_bytes >= 0 else None,
        "usable_bytes": described.usable_bytes if described.usable_bytes >= 0 else None,
        "partitions": [
            {
                "topic": replica.topic_partition.topic,
                "partition": replica.topic_partition.partition,
                "size_bytes": replica.size_bytes,
                "offset_lag": replica.offset_lag if replica.offset_lag >= 0 else None,
                "is_future": replica.is_future,
            }
            for replica in described.replicas
            if not topics or replica.topic_partition.topic in topics
        ],
    }


def _print_directories(found: list[dict[str, Any]]) -> None:
    from barnabas.commands.output import print_line, print_table

    is_one = len({entry["broker"] for entry in found}) <= 1
    places = [entry["log_dir"] if is_one else f"{entry['log_dir']} at broker {entry['broker']}" for entry in found]
    columns = ("log dir", "state", "partitions", "bytes", "usable bytes", "total bytes")
    print_table(
        columns,
        [
            (
                place,
                "online" if entry["error"] is None else entry["error"],
                len(entry["partitions"]),
                sum(replica["size_bytes"] for replica in entry["partitions"]),
                entry["usable_bytes"],
                entry["total_bytes"],
            )
            for entry, place in zip(found, places, strict=True)
        ],
    )
    rows: list[tuple[str, int, int, str, str | None]] = [
        (
            replica["topic"],
            replica["partition"],
            replica["size_bytes"],
            place,
            f"copy, {replica['offset_lag']} offsets behind" if replica["is_future"] else None,
        )
        for entry, place in zip(found, places, strict=True)
        for replica in entry["partitions"]
    ]
    if rows:
        print_line("")
        print_table(
            ("topic", "partition", "bytes", "log dir", "moving"),
            sorted(rows, key=lambda row: (row[0], row[1], row[4] or "")),
        )
