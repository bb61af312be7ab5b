"""The `barnabas` command: the group, its commands by name, and the conversion of failures to exit codes.

A command's module is imported when the command runs or its help is shown, never before: see the package's docstring.
So the names and their one-line helps are in this file.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from barnabas import __version__
from barnabas.commands.exit_codes import EXIT_CODE_HELP, ExitCode
from barnabas.commands.failures import report_failure
from barnabas.commands.lazy_group import LazyCommand, LazyGroup

_PACKAGE = "barnabas.commands"

COMMANDS = {
    "serve": LazyCommand(f"{_PACKAGE}.serve:serve", "Run the broker."),
    "topic": LazyCommand(f"{_PACKAGE}.topic.topic:topic", "Create, list, describe, alter and delete topics."),
    "partition": LazyCommand(
        f"{_PACKAGE}.topic.partition:partition", "Show which log directory has each partition; move them."
    ),
    "produce": LazyCommand(f"{_PACKAGE}.records.produce:produce", "Send lines of standard input to a topic."),
    "consume": LazyCommand(f"{_PACKAGE}.records.consume:consume", "Read a topic's records."),
    "group": LazyCommand(f"{_PACKAGE}.group.group:group", "List, describe and delete consumer groups; reset offsets."),
    "transaction": LazyCommand(
        f"{_PACKAGE}.transaction.transaction:transaction", "List, describe and abort transactions; find hanging ones."
    ),
    "mirror": LazyCommand(f"{_PACKAGE}.mirror.mirror:mirror", "Copy topics of another cluster, with the same offsets."),
    "standby": LazyCommand(
        f"{_PACKAGE}.standby.standby:standby", "Copy a broker, ready to take over; show the copy's state; promote it."
    ),
    "offsets": LazyCommand(
        f"{_PACKAGE}.offsets:offsets", "Show a topic's earliest and latest offsets, and offsets by timestamp."
    ),
    "config": LazyCommand(
        f"{_PACKAGE}.config:config", "List all properties; describe and alter a broker's or topic's."
    ),
    "user": LazyCommand(f"{_PACKAGE}.user.user:user", "Add, list and delete users with SCRAM passwords."),
    "acl": LazyCommand(f"{_PACKAGE}.acl.acl:acl", "Add, list, explain and delete access rules."),
    "quota": LazyCommand(f"{_PACKAGE}.quota.quota:quota", "Set, list and delete limits of clients."),
    "log": LazyCommand(f"{_PACKAGE}.log.log:log", "Inspect, verify and repair a log's files, without a broker."),
    "doctor": LazyCommand(
        f"{_PACKAGE}.doctor.doctor:doctor", "Diagnose problems of client connections and log directories."
    ),
    "explain": LazyCommand(
        f"{_PACKAGE}.explain.explain:explain",
        "Say why records are still there and until when, and where a setting comes from.",
    ),
    "health": LazyCommand(f"{_PACKAGE}.health:health", "Ask the broker of this machine whether it serves."),
    "console": LazyCommand(f"{_PACKAGE}.console:console", "Serve web pages about a cluster."),
    "handover": LazyCommand(f"{_PACKAGE}.handover.handover:handover", "Hand log directories over to Apache Kafka."),
    "security": LazyCommand(f"{_PACKAGE}.security.security:security", "Set up TLS, a user and ACLs for development."),
    "pipeline": LazyCommand(
        f"{_PACKAGE}.pipeline.pipeline:pipeline",
        "Run Apache Spark jobs: archive, replay, snapshot, stats, whatif, audit.",
    ),
}


class BarnabasGroup(LazyGroup):
    """Imports commands when they are used, and turns every failure into one sentence and an exit code."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Parse the options; --help and --version already print here."""
        with _failures_as_exit_codes():
            return super().make_context(info_name, args, parent, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. If it returns an int, that is the exit code."""
        with _failures_as_exit_codes():
            result = super().invoke(ctx)
        if isinstance(result, int) and not isinstance(result, bool):
            raise click.exceptions.Exit(result)
        return result


@contextmanager
def _failures_as_exit_codes() -> Iterator[None]:
    """Turn every exception inside into an exit code, with a sentence unless the reason is obvious to the user."""
    try:
        try:
            yield
        finally:
            # Not left to the interpreter's exit, which would print an unhelpful error and exit with 120.
            sys.stdout.flush()
    except (click.ClickException, click.exceptions.Exit):  # a usage error, which click prints, or a plain exit
        raise
    except click.Abort as error:
        raise click.exceptions.Exit(ExitCode.INTERRUPTED) from error
    except (KeyboardInterrupt, Exception) as error:
        raise click.exceptions.Exit(report_failure(error)) from error


def _print_version(ctx: click.Context, _parameter: click.Parameter, value: bool) -> None:
    if not value or ctx.resilient_parsing:
        return
    import platform

    from barnabas.protocol.records.kernels.kernel import KERNEL

    click.echo(f"barnabas {__version__}, {KERNEL} kernel, Python {platform.python_version()}")
    ctx.exit()


@click.group(
    cls=BarnabasGroup,
    commands_by_name=COMMANDS,
    epilog=EXIT_CODE_HELP,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version and which record kernel runs (compiled or python).",
)
def main() -> None:
    """Barnabas, a log broker that keeps topics as Apache Kafka does.

    Commands connect to the broker at --bootstrap HOST:PORT or BARNABAS_BOOTSTRAP (default: 127.0.0.1:9092), with TLS
    and a login by --command-config FILE. They print tables for people, or JSON for programs with --json. Every error
    is one sentence on standard error.
    """
