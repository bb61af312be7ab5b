"""Spark sessions of the commands of `barnabas pipeline`: their options, and running a job in one.

    @click.command()
    @session_options
    def stats(session: SessionChoice, ...) -> None:
        def work(spark: Session) -> Summary: ...
        run_job("stats", session, work)

A job fails with one sentence; `--debug` shows the tracebacks of Python and Java, and Spark's own log.
"""

from __future__ import annotations

import functools
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from barnabas.commands.exit_codes import ExitCode
from barnabas.commands.failures import CommandFailure
from barnabas.commands.options import Command, as_dict, parse_key_value
from barnabas.commands.output import print_json, print_line

if TYPE_CHECKING:
    from barnabas.pipeline.jobs.summary import Summary
    from barnabas.pipeline.spark.session import Session


@dataclass(frozen=True, slots=True)
class SessionChoice:
    """Options of the session and of the output."""

    master: str | None
    conf: dict[str, str]
    debug: bool
    as_json: bool


def session_options(command: Command) -> Command:
    """`--master`, `--conf`, `--json` and `--debug`; the command gets them as `session`."""

    @functools.wraps(command)
    def with_session(
        *args: Any, master: str | None, conf: tuple[str, ...], debug: bool, as_json: bool, **others: Any
    ) -> Any:
        pairs = as_dict(tuple(parse_key_value(pair) for pair in conf), "--conf")
        return command(*args, session=SessionChoice(master, pairs, debug, as_json), **others)

    options = (
        click.option(
            "--master",
            metavar="URL",
            envvar="SPARK_MASTER",
            show_envvar=True,
            help="Spark's master: spark://HOST:7077, yarn, k8s://... Default: local[*].",
        ),
        click.option(
            "--conf",
            metavar="K=V",
            multiple=True,
            help="A property of Spark (spark.driver.memory=4g). Repeatable.",
        ),
        click.option("--json", "as_json", is_flag=True, help="Write the summary as JSON."),
        click.option("--debug", is_flag=True, help="Show Spark's log, and tracebacks when the job fails."),
    )
    decorated: Any = with_session
    for option in reversed(options):
        decorated = option(decorated)
    result: Command = decorated
    return result


def run_job(name: str, session: SessionChoice, work: Callable[[Session], Summary]) -> None:
    """Run `work` in a new session and print its summary. Raises CommandFailure with one sentence."""
    try:
        from barnabas.pipeline.spark.failures import sentence_of
        from barnabas.pipeline.spark.session import build_session
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in ("pyspark", "pyarrow", "py4j"):
            raise
        raise CommandFailure(
            f"this needs Apache Spark, and {error.name} is not installed: pip install '.[spark]' in its checkout",
            ExitCode.USAGE,
        ) from error
    try:
        with build_session(
            f"barnabas pipeline {name}",
            master=session.master,
            conf=session.conf,
            debug=session.debug,
            show_progress=sys.stderr.isatty(),
        ) as spark:
            summary = work(spark)
    except (CommandFailure, click.ClickException):
        raise
    except Exception as error:
        if session.debug:
            traceback.print_exception(error)
        raise CommandFailure(sentence_of(error)) from error
    if session.as_json:
        print_json(summary.as_json())
    else:
        for line in summary.lines():
            print_line(line)
