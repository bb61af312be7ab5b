"""`barnabas consume`: records of a topic to standard output, as JSON for programs or as lines."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from barnabas.clients.config import ASSIGNOR_NAMES
from barnabas.commands.options import (
    bootstrap_option,
    parse_escaped,
    parse_pattern,
    parse_timestamp,
    timeout_option,
)

if TYPE_CHECKING:
    import re

    from barnabas.commands.records.record_printer import Start

_PLAIN_ONLY = ("print_key", "print_timestamp", "print_partition", "print_offset", "print_headers", "no_value")


@click.command()
@click.argument("topic", metavar="[TOPIC]", required=False)
@click.option("--from-beginning", is_flag=True, help="Begin with the first record that is there.")
@click.option("--offset", type=click.IntRange(min=0), metavar="N", help="Begin at this offset, in each partition read.")
@click.option(
    "--timestamp", type=parse_timestamp, metavar="MS|ISO8601", help="Begin with the first record at or after this time."
)
@click.option(
    "--partition",
    "partitions",
    type=click.IntRange(min=0),
    multiple=True,
    metavar="N",
    help="Read this partition only. Repeatable; all without it.",
)
@click.option(
    "--group",
    metavar="NAME",
    help="Read as a member of this group: its partitions are shared, and what is written is committed.",
)
@click.option(
    "--include",
    type=parse_pattern,
    metavar="REGEX",
    help="With --group, in place of TOPIC: read all topics whose whole names match, later ones too.",
)
@click.option(
    "--assignor",
    "assignors",
    type=click.Choice(ASSIGNOR_NAMES),
    multiple=True,
    help="With --group: how partitions are shared. Repeatable, by preference; all members need one in common, and with"
    " cooperative-sticky alone a rebalance takes away only what moves. All of them without it.",
)
@click.option("--max-messages", type=click.IntRange(min=1), metavar="N", help="End after so many records.")
@click.option("--exit-at-end", is_flag=True, help="End where the partitions ended when the command began.")
@click.option(
    "--timeout-ms",
    type=click.IntRange(min=1),
    metavar="MS",
    help="End with exit code 4 when no record came for so long.",
)
@click.option(
    "--isolation-level",
    type=click.Choice(("read_uncommitted", "read_committed")),
    default="read_uncommitted",
    show_default=True,
    help="Whether records of open and aborted transactions are read too.",
)
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object a line.")
@click.option("--base64", "all_base64", is_flag=True, help="With --json: write keys, values and headers as base64.")
@click.option("--print-key", is_flag=True, help="Write the key before the value.")
@click.option("--print-timestamp", is_flag=True, help="Write the timestamp first.")
@click.option("--print-partition", is_flag=True, help="Write the partition.")
@click.option("--print-offset", is_flag=True, help="Write the offset.")
@click.option("--print-headers", is_flag=True, help="Write the headers.")
@click.option("--no-value", is_flag=True, help="Leave the value out.")
@click.option(
    "--separator",
    "--key-separator",
    "separator",
    type=parse_escaped,
    metavar="TEXT",
    help=r"Between those parts; a tab (\t) unless given.",
)
@click.option(
    "--null-marker",
    type=parse_escaped,
    metavar="TEXT",
    help="What is written for a null key or value; `null` unless given.",
)
@bootstrap_option
@timeout_option
@click.pass_context
def consume(
    ctx: click.Context,
    topic: str | None,
    from_beginning: bool,
    offset: int | None,
    timestamp: int | None,
    partitions: tuple[int, ...],
    group: str | None,
    include: re.Pattern[str] | None,
    assignors: tuple[str, ...],
    max_messages: int | None,
    exit_at_end: bool,
    timeout_ms: int | None,
    isolation_level: str,
    as_json: bool,
    all_base64: bool,
    print_key: bool,
    print_timestamp: bool,
    print_partition: bool,
    print_offset: bool,
    print_headers: bool,
    no_value: bool,
    separator: bytes | None,
    null_marker: bytes | None,
    bootstrap: str,
    timeout_s: float,
) -> None:
    """Write the records of TOPIC, or of the topics that --include names, to standard output.

    Begins with what comes from now on, unless --from-beginning, --offset or --timestamp says otherwise, and goes on
    until Ctrl-C, unless --max-messages, --exit-at-end or --timeout-ms ends it. Records of a partition come in order,
    those of different partitions in any.

    With --group each partition is read by one of the group's members, of whatever client, from where the group is;
    where it has committed nothing, from now on, or with --from-beginning from the first record. What is written is
    committed, so the next run goes on behind it.

    With --json each line is an object with topic, partition, offset, timestamp (ms), key, value and headers (a list of
    [name, value]). Keys, values and headers are bytes: they are written as text where they are UTF-8. A record in which
    something is not gets a further field "base64", a list of those of its fields (key, value, headers) that are
    written as base64; with --base64 all of them are. `barnabas produce --json` reads all of this back.

    Without --json a line is the value's bytes, after those parts that are asked for. Tombstones are written as `null`.
    """
    from barnabas.clients.config import ConsumerConfig
    from barnabas.commands.output import counted, print_note
    from barnabas.commands.records.group_record_printer import print_group_records
    from barnabas.commands.records.record_lines import JsonFormat, PlainFormat
    from barnabas.commands.records.record_printer import Reading, print_records
    from barnabas.commands.session import CLIENT_ID, run_async, timeouts_ms

    start = _start(from_beginning, offset, timestamp)
    if group is not None and (partitions or start[0] in ("offset", "timestamp")):
        raise click.UsageError("--group says where to read: --partition, --offset and --timestamp do not go with it.")
    if (topic is None) == (include is None):
        raise click.UsageError("Name a TOPIC, or --include topics by a regular expression: one of the two.")
    if group is None and (include is not None or assignors):
        raise click.UsageError("--include and --assignor belong to --group: the group shares the partitions out.")
    if group == "":
        raise click.UsageError("--group needs a name.")
    if all_base64 and not as_json:
        raise click.UsageError("--base64 belongs to --json.")
    plain_only = [name for name in _PLAIN_ONLY if ctx.params[name]]
    if as_json and (plain_only or separator is not None or null_marker is not None):
        option = plain_only[0] if plain_only else ("separator" if separator is not None else "null_marker")
        raise click.UsageError(f"--{option.replace('_', '-')} does not go with --json, which says all of a record.")
    record_format: JsonFormat | PlainFormat
    if as_json:
        record_format = JsonFormat(all_base64)
    else:
        record_format = PlainFormat(
            separator=b"\t" if separator is None else separator,
            null_marker=b"null" if null_marker is None else null_marker,
            with_timestamp=print_timestamp,
            with_partition=print_partition,
            with_offset=print_offset,
            with_headers=print_headers,
            with_key=print_key,
            with_value=not no_value,
        )
    config = ConsumerConfig(
        bootstrap=bootstrap,
        client_id=CLIENT_ID,
        isolation=isolation_level,
        offset_reset=_offset_reset(start, group),
        group=group,
        assignors=assignors or ASSIGNOR_NAMES,
        **timeouts_ms(timeout_s),
    )
    idle_timeout_s = None if timeout_ms is None else timeout_ms / 1000
    reading = Reading(topic or "", partitions, start, max_messages, exit_at_end, idle_timeout_s)
    try:
        if group is None:
            written = run_async(print_records(config, reading, record_format))
        else:
            written = run_async(print_group_records(config, reading, record_format, include))
    finally:
        if isinstance(record_format, JsonFormat) and record_format.unreadable:
            print_note(
                f"{counted(record_format.unreadable, 'record')} held bytes that are not UTF-8: "
                'written as base64 and named in the field "base64"'
            )
    if sys.stderr.isatty() and not sys.stdout.isatty():
        print_note(f"read {counted(written, 'record')}")


def _offset_reset(start: Start, group: str | None) -> str:
    """Where a partition begins that nothing else says a position of."""
    if group is not None:
        return start[0]
    return "error" if start[0] == "offset" else "earliest"


def _start(from_beginning: bool, offset: int | None, timestamp: int | None) -> Start:
    if from_beginning + (offset is not None) + (timestamp is not None) > 1:
        raise click.UsageError("--from-beginning, --offset and --timestamp exclude each other.")
    if offset is not None:
        return "offset", offset
    if timestamp is not None:
        return "timestamp", timestamp
    return ("earliest" if from_beginning else "latest"), 0
