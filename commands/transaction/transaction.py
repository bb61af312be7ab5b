"""`barnabas transaction ...`: list, describe and abort transactions, and find hanging ones."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import click

from barnabas.commands.durations import parse_duration
from barnabas.commands.options import bootstrap_option, json_option, timeout_option

if TYPE_CHECKING:
    from barnabas.clients.admin.admin import Admin

STATES: Final = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
)
"""Kafka's names of the states that occur."""


@click.group()
def transaction() -> None:
    """List, describe and abort transactions; find hanging ones."""


@transaction.command(name="list")
@click.option("--state", "states", type=click.Choice(STATES, case_sensitive=False), multiple=True, help="Repeatable.")
@click.option(
    "--producer-id", "producer_ids", type=click.IntRange(min=0), multiple=True, metavar="N", help="Repeatable."
)
@click.option(
    "--longer-than",
    "longer_than_ms",
    type=parse_duration,
    default=None,
    metavar="DURATION",
    help="Only transactions that have been open for longer: 90s, 15m, 2h.",
)
@click.option("--matching", metavar="REGEX", help="Only ids that match this pattern (RE2), as a whole.")
@json_option
@bootstrap_option
@timeout_option
def list_(
    states: tuple[str, ...],
    producer_ids: tuple[int, ...],
    longer_than_ms: int | None,
    matching: str | None,
    as_json: bool,
    bootstrap: str,
    timeout_s: float,
) -> None:
    """List transactional ids and their states.

    An id stays listed after its transactions, until transactional.id.expiration.ms (7 days) after its last use.
    """
    from barnabas.commands.output import print_json, print_table
    from barnabas.commands.session import with_admin
    from barnabas.commands.transaction.descriptions import described

    async def work(admin: Admin) -> list[dict[str, Any]]:
        listed = await admin.list_transactions(
            states=states,
            producer_ids=producer_ids,
            longer_than_ms=-1 if longer_than_ms is None else longer_than_ms,
            pattern=matching,
        )
        return await described(admin, [each.transactional_id for each in listed], missing_ok=True)

    found = with_admin(bootstrap, timeout_s, work)
    if longer_than_ms is not None:  # the broker's filter also passes transactions that have ended
        found = [each for each in found if each["start_time_ms"] is not None]
    if as_json:
        print_json(found)
        return
    print_table(
        ["transactional id", "state", "producer id", "epoch", "partitions", "open for"],
        [
            [
                each["transactional_id"],
                each["state"],
                each["producer_id"],
                each["producer_epoch"],
                len(each["partitions"]),
                _age(each["start_time_ms"]),
            ]
            for each in found
        ],
    )


@transaction.command()
@click.argument("transactional_ids", metavar="ID...", nargs=-1, required=True)
@json_option
@bootstrap_option
@timeout_option
def describe(transactional_ids: tuple[str, ...], as_json: bool, bootstrap: str, timeout_s: float) -> None:
    """Show the transaction of each ID.

    Shows the producer, the timeout, and the partitions that the transaction has written.
    While markers are being written, only the partitions are shown whose marker is still missing.
    """
    from barnabas.commands.output import print_json
    from barnabas.commands.session import with_admin
    from barnabas.commands.transaction.descriptions import described, print_description

    found = with_admin(bootstrap, timeout_s, lambda admin: described(admin, transactional_ids))
    if as_json:
        print_json(found)
        return
    for index, each in enumerate(found):
        print_description(each, _age(each["start_time_ms"]), is_first=not index)


@transaction.command()
@click.argument("transactional_id", metavar="[ID]", required=False)
@click.option("--topic", metavar="TOPIC", help="Instead of ID: of the hanging transaction.")
@click.option("--partition", type=click.IntRange(min=0), metavar="N", help="With --topic.")
@click.option(
    "--producer-id", type=click.IntRange(min=0), metavar="N", help="With --topic, if several transactions hang there."
)
@bootstrap_option
@timeout_option
def abort(
    transactional_id: str | None,
    topic: str | None,
    partition: int | None,
    producer_id: int | None,
    bootstrap: str,
    timeout_s: float,
) -> None:
    """Abort an open or a hanging transaction.

    With a transactional ID, its open transaction is aborted, and the producer is fenced: its next request fails. With
    --topic and --partition, an abort marker is written to the partition. That is refused while a coordinator knows the
    transaction, because it may commit it.
    """
    from barnabas.commands.output import print_line
    from barnabas.commands.session import with_admin
    from barnabas.commands.transaction.aborts import abort_hanging, abort_id

    if transactional_id is not None and topic is None and partition is None and producer_id is None:
        print_line(with_admin(bootstrap, timeout_s, lambda admin: abort_id(admin, transactional_id)))
    elif transactional_id is None and topic is not None and partition is not None:
        print_line(with_admin(bootstrap, timeout_s, lambda admin: abort_hanging(admin, topic, partition, producer_id)))
    else:
        raise click.UsageError("Give either an ID, or --topic and --partition.")


@transaction.command(name="find-hanging")
@click.argument("topics", metavar="[TOPIC]...", nargs=-1)
@click.option("--partition", "partitions", type=click.IntRange(min=0), multiple=True, metavar="N", help="Repeatable.")
@click.option(
    "--longer-than",
    "longer_than_ms",
    type=parse_duration,
    default="15m",
    show_default=True,
    metavar="DURATION",
    help="Transactions whose last record is younger are not checked.",
)
@json_option
@bootstrap_option
@timeout_option
def find_hanging(
    topics: tuple[str, ...],
    partitions: tuple[int, ...],
    longer_than_ms: int,
    as_json: bool,
    bootstrap: str,
    timeout_s: float,
) -> None:
    """Find transactions that nothing will end.

    They are open in a partition of a TOPIC (default: all topics) and unknown to any coordinator, so that read_committed
    consumers never read past them. `barnabas transaction abort --topic TOPIC --partition N` ends one.
    """
    from barnabas.commands.output import print_json, print_note, print_table
    from barnabas.commands.session import with_admin
    from barnabas.commands.transaction.descriptions import hanging
    from barnabas.explanation.wording import duration_text, time_text

    if partitions and len(topics) != 1:
        raise click.UsageError("--partition needs exactly one TOPIC.")
    found = with_admin(bootstrap, timeout_s, lambda admin: hanging(admin, topics, partitions, longer_than_ms))
    if as_json:
        print_json(found)
        return
    if not found:
        print_note(f"no hanging transactions whose last record is older than {duration_text(longer_than_ms)}")
        return
    columns = ["topic", "partition", "producer id", "epoch", "coordinator epoch", "start offset", "last record"]
    keys = ["topic", "partition", "producer_id", "producer_epoch", "coordinator_epoch", "start_offset"]
    print_table(columns, [[*(each[key] for key in keys), time_text(each["last_timestamp"])] for each in found])


def _age(start_time_ms: int | None) -> str | None:
    from barnabas.explanation.wording import duration_text

    return None if start_time_ms is None else duration_text(time.time_ns() // 1_000_000 - start_time_ms)
