"""`barnabas user ...`: users that log in with SCRAM, as `kafka-configs --entity-type users` changes them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from barnabas.commands.exit_codes import ExitCode
from barnabas.commands.failures import CommandFailure
from barnabas.commands.options import json_option
from barnabas.commands.output import print_json, print_line, print_table
from barnabas.commands.target import Change, Target, target_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from barnabas.protocol.messages.security.scram_credentials import AlterUserScramCredentialsRequest

Command = TypeVar("Command", bound=Callable[..., object])

MECHANISMS: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_DEFAULT_MECHANISM: Final = "SCRAM-SHA-512"
_MIN_ITERATIONS: Final = 4096
_MAX_ITERATIONS: Final = 16384


@click.group()
def user() -> None:
    """Add, list and delete users with SCRAM passwords.

    The commands work with Apache Kafka, too. With --log-dir or --config they change the directories of a stopped
    broker: for its first user.
    """


def _mechanism_option(**attributes: Any) -> Callable[[Command], Command]:
    return click.option(
        "--mechanism",
        "mechanisms",
        type=click.Choice(MECHANISMS, case_sensitive=False),
        multiple=True,
        **attributes,
    )


@user.command()
@click.argument("name")
@_mechanism_option(default=[_DEFAULT_MECHANISM], show_default=True, help="Repeatable: the same password for both.")
@click.option(
    "--iterations",
    type=click.IntRange(_MIN_ITERATIONS, _MAX_ITERATIONS),
    default=_MIN_ITERATIONS,
    show_default=True,
    metavar="N",
    help="Rounds of the key derivation.",
)
@click.option(
    "--password-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="File whose first line is the password. Otherwise a terminal is prompted, or standard input has it.",
)
@target_options
def add(
    name: str,
    mechanisms: tuple[str, ...],
    iterations: int,
    password_file: Path | None,
    target: Target,
) -> None:
    """Add the user NAME, or change its password.

    The password is never an argument. Only keys derived from it are stored.
    """
    from barnabas.commands.user.passwords import read_password
    from barnabas.protocol.messages.security.scram_credentials import AlterUserScramCredentialsRequest
    from barnabas.protocol.sasl.scram_keys import SCRAM_MECHANISMS
    from barnabas.protocol.sasl.scram_upsertions import scram_upsertion

    if not name.isascii():
        raise CommandFailure(f"user {name} could not log in: SCRAM names are ASCII", ExitCode.USAGE)
    password = read_password(name, password_file)
    requests = []
    for label in dict.fromkeys(mechanisms):
        upsertion = scram_upsertion(name, SCRAM_MECHANISMS[label], password, iterations)
        requests.append(AlterUserScramCredentialsRequest(upsertions=[upsertion]))
    _alter(requests, target)
    print_line(f"user {name} has a password for {' and '.join(dict.fromkeys(mechanisms))}")


@user.command(name="list")
@json_option
@target_options
def list_(as_json: bool, target: Target) -> None:
    """List users with their mechanisms."""
    found = sorted(_described(target))
    if as_json:
        print_json([{"user": name, "mechanism": label, "iterations": rounds} for name, label, rounds in found])
        return
    print_table(["user", "mechanism", "iterations"], found)


@user.command()
@click.argument("name")
@_mechanism_option(help="Only this mechanism. By default all of the user's. Repeatable.")
@target_options
def delete(
    name: str,
    mechanisms: tuple[str, ...],
    target: Target,
) -> None:
    """Delete the passwords of the user NAME.

    New logins fail. Open connections stay until they close or authenticate again (connections.max.reauth.ms). The
    user's ACLs and quotas stay.
    """
    from barnabas.protocol.messages.security.scram_credentials import AlterUserScramCredentialsRequest, ScramDeletion
    from barnabas.protocol.sasl.scram_keys import SCRAM_MECHANISMS

    labels = list(mechanisms)
    if not labels:
        labels = [label for user, label, _ in sorted(_described(target)) if user == name]
    if not labels:
        raise CommandFailure(f"user {name} does not exist")
    deletions = [ScramDeletion(name=name, mechanism=SCRAM_MECHANISMS[label].code) for label in dict.fromkeys(labels)]
    requests = [AlterUserScramCredentialsRequest(deletions=[deletion]) for deletion in deletions]
    _alter(requests, target)
    print_line(f"user {name} has no password for {' and '.join(dict.fromkeys(labels))} any more")


def _alter(requests: Sequence[AlterUserScramCredentialsRequest], target: Target) -> None:
    """Make the changes in order, each one of one user. Raises BrokerError, CommandFailure."""
    from barnabas.broker.metadata.security.scram import plan_alter_scram
    from barnabas.commands.kafka_session import ensure_answered

    changes = [Change(request, partial(plan_alter_scram, request=request)) for request in requests]
    for results in target.change(changes):
        for result in results:
            ensure_answered(result.error, _level_hint(result.message))


def _described(target: Target) -> list[tuple[str, str, int]]:
    """Return user, mechanism and iterations of each credential."""
    from barnabas.commands.kafka_session import ensure_answered
    from barnabas.protocol.messages.security.scram_credentials import DescribeUserScramCredentialsRequest
    from barnabas.protocol.sasl.scram_keys import SCRAM_MECHANISMS

    labels = {mechanism.code: label for label, mechanism in SCRAM_MECHANISMS.items()}
    if target.directories:
        return [
            (name, labels.get(code, str(code)), credential.iterations)
            for (name, code), credential in target.stored().security.scram.items()
        ]
    (answer,) = target.ask(DescribeUserScramCredentialsRequest())
    ensure_answered(answer.error, answer.message)
    return [
        (result.user, labels.get(info.mechanism, str(info.mechanism)), info.iterations)
        for result in answer.results
        for info in result.credentials
    ]


def _level_hint(message: str | None) -> str | None:
    if message is None or "metadata.version" not in message:
        return message
    return (
        f"{message}: it needs at least 3.5-IV2 (level 11); raise it on the running broker with kafka-features.sh "
        "--bootstrap-server HOST:PORT upgrade --feature metadata.version=11"
    )
