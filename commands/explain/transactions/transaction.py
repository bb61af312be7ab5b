"""`barnabas explain transaction`: what holds last stable offsets back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from barnabas.commands.options import bootstrap_option, json_option, timeout_option
from barnabas.commands.output import print_json, print_line
from barnabas.commands.stopped_broker import Directories, directories_config, directory_options

if TYPE_CHECKING:
    from barnabas.clients.admin.admin import Admin
    from barnabas.explanation.transaction_findings import ExplainedTransactions


@click.command()
@click.argument("transactional_id", metavar="[ID]", required=False)
@click.option("--producer-id", type=click.IntRange(min=0), metavar="N", help="Instead of ID: a producer's id.")
@click.option(
    "--partition",
    "partitions",
    multiple=True,
    metavar="TOPIC-PARTITION",
    help="Instead of ID: for example orders-0. Repeatable.",
)
@directory_options
@json_option
@bootstrap_option
@timeout_option
def transaction(
    transactional_id: str | None,
    producer_id: int | None,
    partitions: tuple[str, ...],
    log_dirs: tuple[Path, ...],
    config_file: Path | None,
    as_json: bool,
    bootstrap: str,
    timeout_s: float,
) -> None:
    """Explain what holds last stable offsets back, and what ends it.

    Of the transaction of ID or of a producer, of partitions, or (without any of them) of all partitions with an open
    transaction. read_committed consumers do not read past the last stable offset. With --log-dir or --config: of the
    directories of a stopped broker, Barnabas' or Apache Kafka's, which are only read.
    """
    from barnabas.commands.explain.partition_name import parse_partition
    from barnabas.commands.explain.transactions import facts
    from barnabas.commands.session import with_admin
    from barnabas.explanation.transaction import json_of, sentences_of

    if (transactional_id is not None) + (producer_id is not None) + bool(partitions) > 1:
        raise click.UsageError("give one of ID, --producer-id and --partition")
    wanted = [parse_partition(each) for each in partitions]

    async def work(admin: Admin) -> ExplainedTransactions:
        if transactional_id is not None:
            return await facts.explain_id(admin, transactional_id)
        if producer_id is not None:
            return await facts.explain_producer(admin, producer_id)
        return await (facts.explain_partitions(admin, wanted) if wanted else facts.explain_all(admin))

    directories = Directories(log_dirs, config_file)
    if directories:
        from barnabas.commands.explain.transactions.stored_facts import explain_stored

        explained = explain_stored(
            directories_config(directories),
            transactional_id=transactional_id,
            producer_id=producer_id,
            partitions=wanted,
        )
    else:
        explained = with_admin(bootstrap, timeout_s, work)
    if as_json:
        print_json(json_of(explained))
        return
    for sentence in sentences_of(explained, is_stored=bool(directories)):
        print_line(sentence)
