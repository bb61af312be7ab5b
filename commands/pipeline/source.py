"""The options by which a job of `barnabas pipeline` is told what to read."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from barnabas.commands.options import Command, as_dict, check_bootstrap, parse_key_value

if TYPE_CHECKING:
    from barnabas.pipeline.jobs.record_source import RecordSource


class SharedDirectory(click.Path):
    """A directory that is there, under this path on every machine that works on the job."""

    name = "directory"

    def __init__(self) -> None:
        super().__init__(exists=True, file_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """An address is no directory: say who reads those. Raises click.BadParameter."""
        if isinstance(value, str) and "://" in value:
            self.fail(
                f"{value}: this reads local or shared file systems only. Object stores are read by 'archive --log-dir' "
                "and by spark.read.format('barnabas').load(...); or copy the directory here.",
                param,
                ctx,
            )
        return super().convert(value, param, ctx)


log_dirs_option = click.option(
    "--log-dir",
    "log_dirs",
    multiple=True,
    type=SharedDirectory(),
    metavar="DIR",
    help="Read the segment files of this data directory, local or on a file system that all executors share; may be "
    "given several times. No broker is asked.",
)
topics_option = click.option(
    "--topic", "topics", multiple=True, metavar="TOPIC", help="A topic; may be given several times."
)


@dataclass(frozen=True, slots=True)
class SourceChoice:
    """What the options say of the source, before Spark is there to check it."""

    bootstrap: str | None
    log_dirs: tuple[Path, ...]
    topics: tuple[str, ...]
    options: dict[str, str]

    def source(self) -> RecordSource:
        """The source. Needs pyspark; raises OptionError for what cannot be."""
        from barnabas.pipeline.jobs.record_source import RecordSource

        return RecordSource(self.bootstrap, self.log_dirs, self.topics, self.options)


def source_options(command: Command) -> Command:
    """`--bootstrap` or `--log-dir`, `--topic` and `--option`; the command gets them as `choice`."""

    @functools.wraps(command)
    def with_source(
        *args: Any,
        bootstrap: str | None,
        log_dirs: tuple[Path, ...],
        topics: tuple[str, ...],
        source_option: tuple[str, ...],
        **others: Any,
    ) -> Any:
        if bootstrap is not None and log_dirs:
            raise click.UsageError("--bootstrap and --log-dir exclude each other: read a broker or files.")
        if bootstrap is None and not log_dirs:
            raise click.UsageError("name what to read: --bootstrap HOST:PORT, or --log-dir DIR.")
        if bootstrap is not None and not topics:
            raise click.UsageError("name at least one --topic: from a broker nothing is read unasked.")
        options = as_dict(tuple(parse_key_value(pair) for pair in source_option), "--option")
        return command(*args, choice=SourceChoice(bootstrap, log_dirs, topics, options), **others)

    decorated: Any = with_source
    for option in (
        click.option(
            "--option",
            "source_option",
            multiple=True,
            metavar="K=V",
            help="An option of the source (startingOffsets, mode, ...); see docs/pipeline.md.",
        ),
        topics_option,
        log_dirs_option,
        click.option(
            "--bootstrap",
            "--bootstrap-server",
            "bootstrap",
            metavar="HOST:PORT",
            callback=check_optional_bootstrap,
            help="Read from this broker.",
        ),
    ):
        decorated = option(decorated)
    result: Command = decorated
    return result


def check_optional_bootstrap(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """As `check_bootstrap` where one is given."""
    return None if value is None else check_bootstrap(context, parameter, value)
