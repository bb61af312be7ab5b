"""`barnabas consume`: write a topic's records to standard output, as JSON or as plain lines."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from barnabas.clients.config import ASSIGNOR_NAMES, EXPLICIT, RECORD_LIMIT, ConsumerConfig, ShareConsumerConfig
from barnabas.commands.options import (
    bootstrap_option,
    client_security,
    parse_escaped,
    parse_pattern,
    parse_timestamp,
    timeout_option,
)

if TYPE_CHECKING:
    from barnabas.commands.records.record_printer import Start

_PLAIN_ONLY = ("print_key", "print_timestamp", "print_partition", "print_offset", "print_headers", "no_value")


@click.command()
@click.argument("topic", metavar="[TOPIC]", required=False)
@click.option("--from-beginning", is_flag=True, help="Start with the first record.")
@click.option("--offset", type=click.IntRange(min=0), metavar="N", help="Start at this offset, in each partition read.")
@click.option(
    "--timestamp", type=parse_timestamp, metavar="MS|ISO8601", help="Start with the first record at or after this time."
)
@click.option(
    "--partition",
    "partitions",
    type=click.IntRange(min=0),
    multiple=True,
    metavar="N",
    help="Read this partition only. Repeatable. Default: all.",
)
@click.option(
    "--group",
    metavar="NAME",
    help="Read as a member of this group, which shares the partitions out; written records are committed.",
)
@click.option(
    "--include",
    type=parse_pattern,
    metavar="REGEX",
    help="With --group, instead of TOPIC: read all topics whose whole names match, including later ones.",
)
@click.option(
    "--assignor",
    "assignors",
    type=click.Choice(ASSIGNOR_NAMES),
    multiple=True,
    help="With --group: how partitions are shared out. Repeatable, in order of preference; all members need one in"
    " common. With cooperative-sticky alone a rebalance revokes only partitions that move. Default: all.",
)
@click.option(
    "--share-group",
    metavar="NAME",
    help="Read as a member of this share group, whose members share the records out, not the partitions; written"
    " records are acknowledged.",
)
@click.option(
    "--acknowledge",
    type=click.Choice(("accept", "release", "reject")),
    default="accept",
    show_default=True,
    help="With --share-group: whether written records are done, delivered again, or archived.",
)
@click.option("--max-messages", type=click.IntRange(min=1), metavar="N", help="Stop after N records.")
@click.option(
    "--exit-at-end", is_flag=True, help="Stop at the offsets at which the partitions ended when the command started."
)
@click.option(
    "--timeout-ms",
    type=click.IntRange(min=1),
    metavar="MS",
    help="Stop with exit code 4 when no record has come for this long.",
)
@click.option(
    "--isolation-level",
    type=click.Choice(("read_uncommitted", "read_committed")),
    default="read_uncommitted",
    show_default=True,
    help="Whether to read records of open and aborted transactions.",
)
@click.option("--json", "as_json", is_flag=True, help="Write one JSON object per line.")
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
    help=r"Separator of these parts. Default: a tab (\t).",
)
@click.option(
    "--null-marker",
    type=parse_escaped,
    metavar="TEXT",
    help="Text for a null key or value. Default: `null`.",
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
    include: str | None,
    assignors: tuple[str, ...],
    share_group: str | None,
    acknowledge: str,
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
    """Write the records of TOPIC, or of the topics that match --include, to standard output.

    Starts with new records, unless --from-beginning, --offset or --timestamp is given, and runs until Ctrl-C, unless
    --max-messages, --exit-at-end or --timeout-ms ends it. Records of a partition are written in order, those of
    different partitions in any order.

    With --group each partition is read by one of the group's members, of any client library, from the group's committed
    offset; without one, from now on, or with --from-beginning from the first record. Written records are committed, so
    the next run continues after them.

    With --share-group each record is read by one of the share group's members, and is done once it is written. A record
    that was written and not acknowledged, after a crash, is delivered again. The group begins where its config
    share.auto.offset.reset says: with `latest`, the default, records that exist already are not read.

    With --json each line is an object with topic, partition, offset, timestamp (ms), key, value and headers (a list of
    [name, value]). Keys, values and headers are bytes, written as text if they are UTF-8. Otherwise the object has a
    field "base64", which lists the fields (key, value, headers) that are written as base64; with --base64 all of them
    are. Names of headers are text; if one is not UTF-8, "base64" lists header_names, too. `barnabas produce --json`
    reads these lines.

    Without --json a line is the value's bytes, after the parts chosen by options. Tombstones are written as `null`.
    """
    from barnabas.commands.output import print_note
    from barnabas.commands.records.group_record_printer import print_group_records
    from barnabas.commands.records.record_lines import JsonFormat, PlainFormat
    from barnabas.commands.records.record_printer import Reading, print_records
    from barnabas.commands.records.share_record_printer import SHARE_POLL_RECORDS, print_share_records
    from barnabas.commands.session import CLIENT_ID, run_async, timeouts_ms
    from barnabas.explanation.wording import counted

    start = _start(from_beginning, offset, timestamp)
    if group is not None and (partitions or start[0] in ("offset", "timestamp")):
        raise click.UsageError("--partition, --offset and --timestamp cannot be used with --group.")
    if (topic is None) == (include is None):
        raise click.UsageError("Give either a TOPIC or --include.")
    if group is None and (include is not None or assignors):
        raise click.UsageError("--include and --assignor need --group.")
    if group == "":
        raise click.UsageError("--group needs a name.")
    if share_group is not None:
        _ensure_share_options(ctx, start, share_group)
    elif acknowledge != "accept":
        raise click.UsageError("--acknowledge needs --share-group.")
    if all_base64 and not as_json:
        raise click.UsageError("--base64 needs --json.")
    plain_only = [name for name in _PLAIN_ONLY if ctx.params[name]]
    if as_json and (plain_only or separator is not None or null_marker is not None):
        option = plain_only[0] if plain_only else ("separator" if separator is not None else "null_marker")
        raise click.UsageError(f"--{option.replace('_', '-')} cannot be used with --json, which writes whole records.")
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
        security=client_security(),
        **timeouts_ms(timeout_s),
    )
    idle_timeout_s = None if timeout_ms is None else timeout_ms / 1000
    reading = Reading(topic or "", partitions, start, max_messages, exit_at_end, idle_timeout_s)
    try:
        if share_group is not None:
            share_config = ShareConsumerConfig(
                bootstrap=bootstrap,
                client_id=CLIENT_ID,
                group=share_group,
                acknowledgement=EXPLICIT,
                acquire_mode=RECORD_LIMIT,
                max_poll_records=SHARE_POLL_RECORDS if max_messages is None else min(SHARE_POLL_RECORDS, max_messages),
                security=client_security(),
                **timeouts_ms(timeout_s),
            )
            written = run_async(print_share_records(share_config, reading, record_format, acknowledge))
        elif group is None:
            written = run_async(print_records(config, reading, record_format))
        else:
            written = run_async(print_group_records(config, reading, record_format, include))
    finally:
        if isinstance(record_format, JsonFormat) and record_format.unreadable:
            print_note(
                f"{counted(record_format.unreadable, 'record')} with bytes that are not UTF-8: "
                'written as base64 and named in the field "base64"'
            )
    if sys.stderr.isatty() and not sys.stdout.isatty():
        print_note(f"read {counted(written, 'record')}")


def _ensure_share_options(ctx: click.Context, start: Start, share_group: str) -> None:
    """Raise UsageError for options that have no meaning for a share group."""
    if share_group == "":
        raise click.UsageError("--share-group needs a name.")
    for name in ("group", "include", "assignors", "partitions", "exit_at_end"):
        if ctx.params[name]:
            option = {"assignors": "assignor", "partitions": "partition"}.get(name, name.replace("_", "-"))
            raise click.UsageError(f"--{option} cannot be used with --share-group.")
    if start[0] != "latest":
        raise click.UsageError(
            "--from-beginning, --offset and --timestamp cannot be used with --share-group: the group's config "
            "share.auto.offset.reset says where it begins."
        )
    if ctx.params["isolation_level"] != "read_uncommitted":
        raise click.UsageError(
            "--isolation-level cannot be used with --share-group: it is the group's config share.isolation.level."
        )


def _offset_reset(start: Start, group: str | None) -> str:
    """Where partitions start that have no other position."""
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
