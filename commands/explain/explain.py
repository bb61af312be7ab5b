"""`barnabas explain ...`: why records are still there and until when, and where a setting comes from."""

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
    """Say why records are there and until when, what groups and transactions wait for, where a setting comes from."""


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


@explain.command()
@click.argument("name", metavar="PROPERTY")
@click.option("--topic", "topic_name", required=True, metavar="TOPIC", help="The topic whose property it is.")
@directory_options
@json_option
def config(name: str, topic_name: str, log_dirs: tuple[Path, ...], config_file: Path | None, as_json: bool) -> None:
    """Explain the value of a topic's PROPERTY: the one in force, and every layer that has one.

    The layers are, in decreasing precedence: the topic, the broker's dynamic config, the dynamic default of all
    brokers, the broker's start (file, environment), and the default. It reads the directories of a stopped broker.
    """
    from barnabas.commands.explain.config_output import config_json, config_sentences
    from barnabas.commands.explain.stored_config import explain_stored_config
    from barnabas.commands.output import print_json, print_line

    explained = explain_stored_config(_directories(log_dirs, config_file), topic_name, name)
    if as_json:
        print_json(config_json(explained))
        return
    for sentence in config_sentences(explained):
        print_line(sentence)


def _explain(
    name: str, number: int | None, log_dirs: tuple[Path, ...], config_file: Path | None, *, as_json: bool
) -> None:
    from barnabas.commands.explain.stored_topic import read_stored_topic
    from barnabas.commands.explain.topic_output import json_of, sentences_of
    from barnabas.commands.output import print_json, print_line

    explained = read_stored_topic(_directories(log_dirs, config_file), name, number)
    if as_json:
        print_json(json_of(explained))
        return
    for sentence in sentences_of(explained):
        print_line(sentence)


def _directories(log_dirs: tuple[Path, ...], config_file: Path | None) -> Directories:
    directories = Directories(log_dirs, config_file)
    if not directories:
        raise click.UsageError("give the directories of a stopped broker: --log-dir DIR or --config FILE")
    return directories
