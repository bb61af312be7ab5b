"""`barnabas produce`: send lines of standard input to a topic."""

from __future__ import annotations

import sys

import click

from barnabas.commands.durations import parse_duration
from barnabas.commands.options import (
    bootstrap_option,
    client_security,
    parse_escaped,
    parse_key_value,
    parse_separator,
    parse_timestamp,
    timeout_option,
)
from barnabas.commands.records.line_records import JsonLines, LineFormat, PlainLines

ACKS = {"0": 0, "1": 1, "-1": -1, "all": -1}

_BATCH_BYTES = 256 * 1024
"""As much as is read at once. Each batch costs a round trip, which is a fifth of the time with the default size."""
EXAMPLES = """\
\b
Examples:
  echo 'k|v' | barnabas produce orders --key-separator '|'
  echo 'k|NULL' | barnabas produce orders --key-separator '|' --null-marker NULL
  barnabas consume a --json --from-beginning --exit-at-end | barnabas produce b --json
"""
COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")


@click.command(epilog=EXAMPLES)
@click.argument("topic", metavar="TOPIC")
@click.option(
    "--key-separator",
    type=parse_separator,
    metavar="TEXT",
    help=r"A line is KEY TEXT VALUE, split at the first TEXT (\t is a tab). Without this option there are no keys.",
)
@click.option(
    "--null-marker",
    type=parse_escaped,
    metavar="TEXT",
    help="A key, value or header that equals TEXT is null; a null value is a tombstone.",
)
@click.option(
    "--parse-headers",
    is_flag=True,
    help="A line starts with name:value,name:value and a tab, as with parse.headers of Kafka's console producer.",
)
@click.option(
    "--header",
    "headers",
    type=parse_key_value,
    metavar="K=V",
    multiple=True,
    help="Header for every record. Repeatable.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="A line is an object as written by `barnabas consume --json`; key, value, headers and timestamp are used.",
)
@click.option("--base64", "all_base64", is_flag=True, help="With --json: keys, values and headers are base64.")
@click.option("--keep-partition", is_flag=True, help="With --json: send each record to the partition in its object.")
@click.option("--partition", type=click.IntRange(min=0), metavar="N", help="Send all records to this partition.")
@click.option(
    "--timestamp",
    type=parse_timestamp,
    metavar="MS|ISO8601",
    help="Timestamp of records whose line has none. Default: now.",
)
@click.option("--compression", type=click.Choice(COMPRESSIONS), default="none", show_default=True)
@click.option(
    "--acks",
    type=click.Choice(tuple(ACKS)),
    default="all",
    show_default=True,
    help="Wait until the broker has the record (1, all), or do not wait (0).",
)
@click.option(
    "--transactional-id",
    metavar="ID",
    help="Send all records as one transaction: read_committed consumers get all of them, or after a failure none.",
)
@click.option(
    "--transaction-timeout",
    "transaction_timeout_ms",
    type=parse_duration,
    default=None,
    show_default="1m",
    metavar="DURATION",
    help="With --transactional-id: the broker aborts when the input takes longer (90s, 15m).",
)
@bootstrap_option
@timeout_option
def produce(
    topic: str,
    key_separator: bytes | None,
    null_marker: bytes | None,
    parse_headers: bool,
    headers: tuple[tuple[str, str], ...],
    as_json: bool,
    all_base64: bool,
    keep_partition: bool,
    partition: int | None,
    timestamp: int | None,
    compression: str,
    acks: str,
    transactional_id: str | None,
    transaction_timeout_ms: int | None,
    bootstrap: str,
    timeout_s: float,
) -> None:
    """Send each line of standard input to TOPIC as a record.

    A line's bytes are taken as they are, without the newline; an empty line is an empty value. Records with the same
    key go to the same partition, chosen as Kafka's Java client does. The command ends when the input has ended and
    every record is acknowledged. It stops at the first line that is invalid or refused, reports it, and exits with 1.

    With --transactional-id, a start ends an earlier run with the same ID that is still busy, and aborts its records.
    """
    from barnabas.clients.config import ProducerConfig
    from barnabas.commands.output import print_note
    from barnabas.commands.records.line_sender import Target, send_input
    from barnabas.commands.session import CLIENT_ID, run_async, timeouts_ms
    from barnabas.explanation.wording import counted

    if as_json and (key_separator is not None or null_marker is not None or parse_headers):
        raise click.UsageError("--key-separator, --null-marker and --parse-headers cannot be used with --json.")
    if not as_json and (all_base64 or keep_partition):
        raise click.UsageError("--base64 and --keep-partition need --json.")
    if keep_partition and partition is not None:
        raise click.UsageError("--keep-partition and --partition exclude each other.")
    if transactional_id is not None and ACKS[acks] != ACKS["all"]:
        raise click.UsageError("--transactional-id needs --acks all.")
    if transactional_id is None and transaction_timeout_ms is not None:
        raise click.UsageError("--transaction-timeout needs --transactional-id.")
    line_format: LineFormat = (
        JsonLines(all_base64, keep_partition) if as_json else PlainLines(key_separator, null_marker, parse_headers)
    )
    timeouts = timeouts_ms(timeout_s)
    config = ProducerConfig(
        bootstrap=bootstrap,
        client_id=CLIENT_ID,
        acks=ACKS[acks],
        compression=compression,
        security=client_security(),
        max_block_ms=timeouts["api_timeout_ms"],
        delivery_timeout_ms=timeouts["api_timeout_ms"],
        batch_size=_BATCH_BYTES,
        transactional_id=transactional_id,
        transaction_timeout_ms=60_000 if transaction_timeout_ms is None else transaction_timeout_ms,
        **timeouts,
    )
    common_headers = tuple((name, value.encode("utf-8", "surrogateescape")) for name, value in headers)
    if sys.stdin.isatty() and sys.stderr.isatty():
        print_note("each line is a record; end with Ctrl-D")
    sent = run_async(send_input(config, Target(topic, partition, timestamp, common_headers), line_format))
    if sys.stderr.isatty():
        print_note(f"sent {counted(sent, 'record')}")
