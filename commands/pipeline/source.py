"""Options for the source of a job of `barnabas pipeline`: a broker or data directories, and topics."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from barnabas.commands.options import (
    Command,
    as_dict,
    check_bootstrap,
    client_properties,
    client_security,
    command_config_option,
    configured_bootstrap,
    parse_key_value,
)

if TYPE_CHECKING:
    from barnabas.pipeline.jobs.record_source import RecordSource


class SharedDirectory(click.Path):
    """An existing directory, with the same path on every machine that runs the job."""

    name = "directory"

    def __init__(self) -> None:
        super().__init__(exists=True, file_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Refuse URIs, naming the commands that read them. Raises click.BadParameter."""
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
    help="Read the segment files of this data directory, local or on a file system that all executors share, without a "
    "broker. Repeatable.",
)
topics_option = click.option("--topic", "topics", multiple=True, metavar="TOPIC", help="A topic. Repeatable.")


@dataclass(frozen=True, slots=True)
class SourceChoice:
    """Options of the source, before Spark is loaded to check them."""

    bootstrap: str | None
    log_dirs: tuple[Path, ...]
    topics: tuple[str, ...]
    options: dict[str, str]

    def source(self) -> RecordSource:
        """Create the source. Needs pyspark; raises OptionError for invalid options."""
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
        if bootstrap is None and not log_dirs:
            bootstrap = configured_bootstrap(click.get_current_context())
        if bootstrap is not None and log_dirs:
            raise click.UsageError("--bootstrap and --log-dir exclude each other: read either a broker or files.")
        if bootstrap is None and not log_dirs:
            raise click.UsageError("give --bootstrap HOST:PORT or --log-dir DIR.")
        if bootstrap is not None and not topics:
            raise click.UsageError("give at least one --topic with --bootstrap.")
        options = as_dict(tuple(parse_key_value(pair) for pair in source_option), "--option")
        if bootstrap is not None:
            options = kafka_options() | options
        return command(*args, choice=SourceChoice(bootstrap, log_dirs, topics, options), **others)

    decorated: Any = command_config_option(with_source)
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
            help="Read from this broker. Without it and --log-dir, bootstrap.servers of --command-config counts.",
        ),
    ):
        decorated = option(decorated)
    result: Command = decorated
    return result


def kafka_options() -> dict[str, str]:
    """Return `--command-config` as options of a Spark source or sink. Raises ClientConfigError and UsageError."""
    client_security()  # refuses them before Spark starts
    return {f"kafka.{name}": value for name, value in client_properties().items()}


def check_optional_bootstrap(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Check the address as `check_bootstrap` does, if it is given."""
    return None if value is None else check_bootstrap(context, parameter, value)
