"""`barnabas offsets`: the earliest and latest offsets of a topic's partitions, and offsets by timestamp."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from barnabas.commands.options import bootstrap_option, json_option, parse_timestamp, timeout_option

if TYPE_CHECKING:
    from barnabas.clients.admin.admin import Admin
    from barnabas.clients.offsets import ListedOffset


@click.command()
@click.argument("topic", metavar="TOPIC")
@click.option("--partition", "partitions", type=click.IntRange(min=0), multiple=True, metavar="N", help="Repeatable.")
@click.option(
    "--timestamp", type=parse_timestamp, metavar="MS|ISO8601", help="Also show the first record at or after this time."
)
@json_option
@bootstrap_option
@timeout_option
def offsets(
    topic: str,
    partitions: tuple[int, ...],
    timestamp: int | None,
    as_json: bool,
    bootstrap: str,
    timeout_s: float,
) -> None:
    """Show the earliest and latest offsets of TOPIC's partitions.

    For each partition: the earliest offset, the latest (that of the next record to be written), their difference, and
    the first record with the maximum timestamp. With --timestamp also the first record at or after that time.
    """
    from barnabas.commands.output import print_json
    from barnabas.commands.session import with_admin

    async def work(admin: Admin) -> list[dict[str, Any]]:
        return await _offsets(admin, topic, partitions, timestamp)

    found = with_admin(bootstrap, timeout_s, work)
    if as_json:
        print_json(found)
    else:
        _print(found, timestamp)


async def _offsets(admin: Admin, topic: str, wanted: tuple[int, ...], timestamp: int | None) -> list[dict[str, Any]]:
    from barnabas.commands.topic.partition_offsets import chosen_partitions, earliest_and_latest, offsets_at
    from barnabas.protocol.messages.data.list_offsets import MAX_TIMESTAMP

    partitions = await chosen_partitions(admin, topic, wanted)
    ends = await earliest_and_latest(admin, topic, partitions)
    newest = await offsets_at(admin, topic, partitions, MAX_TIMESTAMP)
    at_time = {} if timestamp is None else await offsets_at(admin, topic, partitions, timestamp)
    entries = []
    for partition in partitions:
        earliest, latest = ends[partition]
        entry: dict[str, Any] = {
            "topic": topic,
            "partition": partition,
            "earliest": earliest,
            "latest": latest,
            "max_timestamp": _found(newest[partition]),
        }
        if timestamp is not None:
            entry["at_timestamp"] = _found(at_time[partition])
        entries.append(entry)
    return entries


def _found(listed: ListedOffset) -> dict[str, int] | None:
    """The record as JSON, None without one: that of the largest timestamp of a log without timestamps has none."""
    if listed.offset < 0 or listed.timestamp < 0:
        return None
    return {"offset": listed.offset, "timestamp": listed.timestamp}


def _print(entries: list[dict[str, Any]], timestamp: int | None) -> None:
    from barnabas.commands.output import print_table
    from barnabas.explanation.wording import time_text

    columns = ["partition", "earliest", "latest", "span", "max timestamp at", "max timestamp"]
    if timestamp is not None:
        columns += [f"at {time_text(timestamp)}", "its timestamp"]
    rows = []
    for entry in entries:
        row = [entry["partition"], entry["earliest"], entry["latest"], entry["latest"] - entry["earliest"]]
        for key in ("max_timestamp", "at_timestamp"):
            if key in entry:
                found = entry[key]
                row += [None, None] if found is None else [found["offset"], time_text(found["timestamp"])]
        rows.append(row)
    print_table(columns, rows)
