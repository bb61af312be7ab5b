"""`barnabas explain ...`: why records are still there, and until when."""

from __future__ import annotations

from pathlib import Path

import click

from barnabas.commands.explain.groups.group import group
from barnabas.commands.explain.start.start import start
from barnabas.commands.explain.transactions.transaction import transaction
from barnabas.commands.options import json_option
from barnabas.commands.stopped_broker import Directories, directory_options


@click.group()
def explain() -> None:
    """Say why records are still there, and until when."""


explain.add_command(group)
explain.add_command(start)
explain.add_command(transaction)


@explain.command()
@click.argument("name", metavar="TOPIC")
@directory_options
@json_option
def topic(name: str, log_dirs: tuple[Path, ...], config_file: Path | None, as_json: bool) -> None:
    """Explain the retention of all partitions of TOPIC.

    For each segment: when it is deleted, by which property, and what keeps it until then. It needs the directories of a
    stopped broker (--log-dir or --config), Barnabas' or Apache Kafka's, and only reads them. Give --config if the
    broker has a configuration file: its retention is the default of the topics. The times are those of a broker that
    runs on the directories now, without further appends.
    """
    _explain(name, None, log_dirs, config_file, as_json=as_json)


@explain.command()
@click.argument("name", metavar="TOPIC-PARTITION")
@directory_options
@json_option
def partition(name: str, log_dirs: tuple[Path, ...], config_file: Path | None, as_json: bool) -> None:
    """Explain the retention of one partition, for example orders-0. As `explain topic` does."""
    from barnabas.commands.explain.partition_name import parse_partition

    topic_name, number = parse_partition(name)
    _explain(topic_name, number, log_dirs, config_file, as_json=as_json)


def _explain(
    name: str, number: int | None, log_dirs: tuple[Path, ...], config_file: Path | None, *, as_json: bool
) -> None:
    from barnabas.commands.explain.stored_topic import read_stored_topic
    from barnabas.commands.explain.topic_output import json_of, sentences_of
    from barnabas.commands.output import print_json, print_line

    directories = Directories(log_dirs, config_file)
    if not directories:
        raise click.UsageError("give the directories of a stopped broker: --log-dir DIR or --config FILE")
    explained = read_stored_topic(directories, name, number)
    if as_json:
        print_json(json_of(explained))
        return
    for sentence in sentences_of(explained):
        print_line(sentence)
