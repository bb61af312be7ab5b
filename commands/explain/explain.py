"""`barnabas explain ...`: why records are still there and until when, and where a setting comes from."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from barnabas.commands.explain.durability import durability
from barnabas.commands.explain.groups.group import group
from barnabas.commands.explain.mirror import mirror
from barnabas.commands.explain.space import space
from barnabas.commands.explain.start.start import start
from barnabas.commands.explain.transactions.transaction import transaction
from barnabas.commands.failures import CommandFailure
from barnabas.commands.options import bootstrap_option, json_option, timeout_option
from barnabas.commands.output import print_json, print_line
from barnabas.commands.stopped_broker import Directories, directories_config, directory_options

if TYPE_CHECKING:
    from barnabas.clients.admin.admin import Admin
    from barnabas.explanation.transaction_findings import ExplainedTransactions
    from barnabas.protocol.messages.topics.explain_topic import ExplainTopicResponse


@click.group()
def explain() -> None:
    """Say why records are there and until when, what groups and transactions wait for, where a setting comes from."""


explain.add_command(durability)
explain.add_command(group)
explain.add_command(mirror)
explain.add_command(space)
explain.add_command(start)
explain.add_command(transaction)


@explain.command()
@click.argument("name", metavar="TOPIC")
@directory_options
@json_option
@bootstrap_option
@timeout_option
def topic(
    name: str, log_dirs: tuple[Path, ...], config_file: Path | None, as_json: bool, bootstrap: str, timeout_s: float
) -> None:
    """Explain the retention and the compaction of all partitions of TOPIC.

    For each segment: when it is deleted, by which property, and what keeps it until then, if nothing is appended and no
    config changes. Of a compacted topic: how dirty it is, and why it is not cleaned now. It asks a running broker. With
    --log-dir or --config it reads the directories of a stopped broker, Barnabas' or Apache Kafka's: give --config if
    that broker has a configuration file, whose retention is the default of the topics.
    """
    _explain(name, None, Directories(log_dirs, config_file), bootstrap, timeout_s, as_json=as_json)


@explain.command()
@click.argument("name", metavar="TOPIC-PARTITION")
@directory_options
@json_option
@bootstrap_option
@timeout_option
def partition(
    name: str, log_dirs: tuple[Path, ...], config_file: Path | None, as_json: bool, bootstrap: str, timeout_s: float
) -> None:
    """Explain one partition, for example orders-0: its retention, and its last stable offset.

    The retention is explained as `explain topic` does, and what holds the last stable offset back as `explain
    transaction` does.
    """
    from barnabas.commands.explain.partition_name import parse_partition

    topic_name, number = parse_partition(name)
    _explain(topic_name, number, Directories(log_dirs, config_file), bootstrap, timeout_s, as_json=as_json)


@explain.command()
@click.argument("name", metavar="PROPERTY")
@click.option("--topic", "topic_name", required=True, metavar="TOPIC", help="The topic whose property it is.")
@click.option("--to", "new_value", metavar="VALUE", help="Also say what this value would delete at the next check.")
@directory_options
@json_option
@bootstrap_option
@timeout_option
def config(
    name: str,
    topic_name: str,
    new_value: str | None,
    log_dirs: tuple[Path, ...],
    config_file: Path | None,
    as_json: bool,
    bootstrap: str,
    timeout_s: float,
) -> None:
    """Explain the value of a topic's PROPERTY: the one in force, and every layer that has one.

    The layers are, in decreasing precedence: the topic, the broker's dynamic config, the dynamic default of all
    brokers, the broker's start (file, environment), and the default. It asks a running broker; with --log-dir or
    --config it reads the directories of a stopped one. With --to, it also says which segments another value of
    retention.ms, retention.bytes or cleanup.policy would delete; nothing is changed.
    """
    from barnabas.commands.session import with_admin
    from barnabas.explanation.setting import config_json, config_sentences

    directories = Directories(log_dirs, config_file)
    if directories:
        from barnabas.commands.explain.stored_config import explain_stored_config

        explained = explain_stored_config(directories, topic_name, name)
    else:

        async def work(admin: Admin) -> ExplainTopicResponse:
            return await admin.explain_setting(topic_name, name)

        explained = with_admin(bootstrap, timeout_s, work)
    change = None
    if new_value is not None:
        from barnabas.explanation.change import UnexplainableChangeError, explain_change

        try:
            change = explain_change(_read_topic(topic_name, directories, bootstrap, timeout_s), name, new_value)
        except UnexplainableChangeError as error:
            raise CommandFailure(f"--to: {error}") from error
    if as_json:
        print_json(config_json(topic_name, explained, change))
        return
    for sentence in config_sentences(topic_name, explained, change):
        print_line(sentence)


def _explain(
    name: str, number: int | None, directories: Directories, bootstrap: str, timeout_s: float, *, as_json: bool
) -> None:
    from barnabas.commands.explain.transactions import facts
    from barnabas.commands.session import with_admin
    from barnabas.explanation.topic import json_of, sentences_of
    from barnabas.explanation.transaction import partition_json, partition_sentences
    from barnabas.protocol.topic_partition import TopicPartition

    held = None
    if directories:
        from barnabas.commands.explain.stored_topic import read_stored_topic
        from barnabas.commands.explain.transactions.stored_facts import explain_stored

        explained = read_stored_topic(directories, name, number)
        if number is not None:
            held = explain_stored(directories_config(directories), partitions=[TopicPartition(name, number)])
    else:

        async def work(admin: Admin) -> tuple[ExplainTopicResponse, ExplainedTransactions | None]:
            found = await admin.explain_topic(name, number)
            if number is None:
                return found, None
            return found, await facts.explain_readable(admin, TopicPartition(name, number))

        explained, held = with_admin(bootstrap, timeout_s, work)
    if as_json:
        print_json(json_of(name, explained) | ({} if number is None else {"transactions": partition_json(held)}))
        return
    for sentence in sentences_of(name, explained):
        print_line(sentence)
    if number is not None:
        print_line("")
        for sentence in partition_sentences(held, is_stored=bool(directories)):
            print_line(sentence)


def _read_topic(name: str, directories: Directories, bootstrap: str, timeout_s: float) -> ExplainTopicResponse:
    from barnabas.commands.session import with_admin

    if directories:
        from barnabas.commands.explain.stored_topic import read_stored_topic

        return read_stored_topic(directories, name, None)

    async def work(admin: Admin) -> ExplainTopicResponse:
        return await admin.explain_topic(name)

    return with_admin(bootstrap, timeout_s, work)
