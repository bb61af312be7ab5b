"""Options that several commands share, and the parsers of their values."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from barnabas.clients.security.settings import SecuritySettings

Command = TypeVar("Command", bound=Callable[..., Any])

DEFAULT_BOOTSTRAP = "127.0.0.1:9092"
DEFAULT_TIMEOUT_S = 30.0

_COMMAND_CONFIG = "barnabas.command_config"
"""Where click's context has the path."""


_ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{2}|.)", re.DOTALL)
_SIMPLE_ESCAPES = {b"t": b"\t", b"n": b"\n", b"r": b"\r", b"0": b"\0", b"\\": b"\\"}


class PositiveNumber(click.FloatRange):
    """Type of an option for seconds or days: not nan, nor more than a clock takes."""

    def __init__(self, at_least: float = 0) -> None:
        """`at_least` 0: anything above it."""
        super().__init__(min=at_least, max=1_000_000, min_open=not at_least)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number. Raises BadParameter."""
        number = super().convert(value, param, ctx)
        if number != number:
            self.fail("nan is not a number.", param, ctx)
        return number


def parse_timestamp(text: str) -> int:
    """Parse milliseconds since 1970, given as a number or as ISO 8601 (UTC without a zone). Raises BadParameter."""
    if re.fullmatch(r"[0-9]+", text):
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is neither milliseconds since 1970 nor an ISO 8601 time.") from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    milliseconds = round(moment.timestamp() * 1000)
    if milliseconds < 0:
        raise click.BadParameter(f"{text!r} is before 1970.")
    return milliseconds


def parse_key_value(text: str) -> tuple[str, str]:
    """Parse `name=value`. The value may contain `=` and may be empty, the name may not. Raises BadParameter."""
    name, separator, value = text.partition("=")
    if not separator or not name.strip():
        raise click.BadParameter(f"{text!r} is not of the form name=value.")
    return name.strip(), value.strip()


def parse_escaped(text: str) -> bytes:
    r"""Encode text as UTF-8, with C's escapes `\t`, `\n`, `\r`, `\0`, `\\` and `\xHH`. Raises BadParameter."""

    def replacement(match: re.Match[bytes]) -> bytes:
        escape = match.group(1)
        if len(escape) == 3:
            return bytes([int(escape[1:], 16)])
        if escape not in _SIMPLE_ESCAPES:
            raise click.BadParameter(rf"{text!r} contains an unknown escape; known are \t \n \r \0 \\ \xHH.")
        return _SIMPLE_ESCAPES[escape]

    return _ESCAPE.sub(replacement, text.encode("utf-8", "surrogateescape"))


def parse_separator(text: str) -> bytes:
    """Parse as `parse_escaped` does, but refuse empty text."""
    separator = parse_escaped(text)
    if not separator:
        raise click.BadParameter("it must not be empty.")
    return separator


def parse_pattern(text: str) -> str:
    """Return a regular expression that the client serves. Raises BadParameter."""
    from barnabas.config.regex import RegexError, compiled

    try:
        compiled(text)
    except RegexError as error:
        raise click.BadParameter(f"{error}.") from error
    return text


def bootstrap_option(command: Command) -> Command:
    """`--bootstrap HOST:PORT`, BARNABAS_BOOTSTRAP, or bootstrap.servers of `--command-config`, which comes along."""
    return _bootstrap_option(command_config_option(command))


def bootstrap_and_broker_config_options(command: Command) -> Command:
    """`--bootstrap`, with `--broker-config` instead of `--command-config`, which is about another cluster there."""
    return _bootstrap_option(_properties_option(command, "--broker-config", "of the login at this broker"))


def _bootstrap_option(command: Command) -> Command:
    return click.option(
        "--bootstrap",
        "--bootstrap-server",
        "bootstrap",
        metavar="HOST:PORT",
        envvar="BARNABAS_BOOTSTRAP",
        default=DEFAULT_BOOTSTRAP,
        show_default=True,
        show_envvar=True,
        callback=check_bootstrap,
        help="The broker's address. Without it, bootstrap.servers of the properties file counts.",
    )(command)


def command_config_option(command: Command) -> Command:
    """`--command-config FILE`, which `client_properties` and `client_security` read."""
    return _properties_option(command, "--command-config", "of a Kafka client")


def _properties_option(command: Command, name: str, of_what: str) -> Command:
    return click.option(
        name,
        "command_config_file",
        metavar="FILE",
        envvar="BARNABAS_COMMAND_CONFIG",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        expose_value=False,
        is_eager=True,  # check_bootstrap reads the file
        callback=_keep_command_config,
        help=f"Properties {of_what}, for TLS and SASL: security.protocol, sasl.*, ssl.*. Environment variables "
        "such as BARNABAS_SECURITY_PROTOCOL override them.",
        show_envvar=True,
    )(command)


def client_security() -> SecuritySettings:
    """Return how the running command connects. Raises ClientConfigError and UsageError."""
    from barnabas.clients.security.settings import SecuritySettings

    return SecuritySettings.from_properties(client_properties())


def client_properties() -> dict[str, str]:
    """Return the security properties of the running command, from `--command-config` and BARNABAS_* variables.

    Raises UsageError for a file that is none of properties, and ClientConfigError for a misspelled name.
    """
    from barnabas.clients.security.names import ensure_known, ensure_known_variables
    from barnabas.clients.security.settings import NAMES
    from barnabas.config.environment import variable_of

    context = click.get_current_context(silent=True)
    entries = {} if context is None else _command_config(context)
    ensure_known(entries, NAMES)
    ensure_known_variables(os.environ, NAMES)
    properties = {name: value for name, value in entries.items() if name in NAMES}
    for name in NAMES:
        value = os.environ.get(variable_of(name))
        if value is not None:
            properties[name] = value
    return properties


def configured_bootstrap(ctx: click.Context) -> str | None:
    """Return bootstrap.servers of `--command-config`. Raises UsageError."""
    return _command_config(ctx).get("bootstrap.servers")


def _command_config(ctx: click.Context) -> dict[str, str]:
    """Return all properties of `--command-config`, none without it. Raises UsageError."""
    from barnabas.config.properties_file import BadLineError, decode, parse_properties

    path = ctx.meta.get(_COMMAND_CONFIG)
    if path is None:
        return {}
    try:
        return {entry.key: entry.value for entry in parse_properties(decode(path.read_bytes()))}
    except BadLineError as error:
        raise click.UsageError(f"--command-config {path}, line {error.line}: {error}.") from error


def _keep_command_config(ctx: click.Context, _parameter: click.Parameter, value: Path | None) -> None:
    ctx.meta[_COMMAND_CONFIG] = value


def timeout_option(command: Command) -> Command:
    """`--timeout SECONDS`: the limit for the whole command."""
    return click.option(
        "--timeout",
        "timeout_s",
        type=PositiveNumber(),
        metavar="SECONDS",
        default=DEFAULT_TIMEOUT_S,
        show_default=True,
        help="Give up (exit code 4) if the broker has not answered after this long.",
    )(command)


def json_option(command: Command) -> Command:
    """`--json`: JSON instead of a table."""
    return click.option("--json", "as_json", is_flag=True, help="Write JSON for programs instead of a table.")(command)


def as_dict(pairs: tuple[tuple[str, str], ...], option: str) -> dict[str, str]:
    """The pairs of a repeated `K=V` option as a dict. Raises UsageError for a name with two different values."""
    values: dict[str, str] = {}
    for name, value in pairs:
        if values.get(name, value) != value:
            raise click.UsageError(f"{option} gives {name} twice: {values[name]!r} and {value!r}.")
        values[name] = value
    return values


def check_bootstrap(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    """Check the option's syntax, so that a typing error is a usage error and not a failed DNS lookup.

    Without the option and its variable, return bootstrap.servers of `--command-config`, if it is there.
    """
    from barnabas.clients.addresses import parse_bootstrap
    from barnabas.clients.errors import ClientConfigError

    if ctx.get_parameter_source(parameter.name) is click.core.ParameterSource.DEFAULT:
        value = configured_bootstrap(ctx) or value
    try:
        parse_bootstrap(value)
    except ClientConfigError as error:
        raise click.BadParameter(f"{str(error).removeprefix('bootstrap: ')}.") from error
    return value


def check_kafka_version(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    """Check that the version of Apache Kafka is one whose rules are implemented: 4.3, or 4.3.0."""
    from barnabas.broker.metadata.directories.report import KAFKA_VERSIONS

    if value is not None and not any(value == known or value.startswith(f"{known}.") for known in KAFKA_VERSIONS):
        raise click.BadParameter(f"{value!r} is not known; known are {', '.join(KAFKA_VERSIONS)}.")
    return value
