"""Options that several commands share, and the types that parse what is written after them."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., Any])

DEFAULT_BOOTSTRAP = "127.0.0.1:9092"
DEFAULT_TIMEOUT_S = 30.0


class TimestampType(click.ParamType):
    """Milliseconds since 1970 (UTC), or ISO 8601 (`2013-07-04T12:00:00Z`; UTC where no zone is written)."""

    name = "MS|ISO8601"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The timestamp in milliseconds."""
        if isinstance(value, int):
            return value
        text = str(value).strip()
        if re.fullmatch(r"[0-9]+", text):
            return int(text)
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            self.fail(f"{value!r} is neither milliseconds since 1970 nor an ISO 8601 time.", param, ctx)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        milliseconds = round(moment.timestamp() * 1000)
        if milliseconds < 0:
            self.fail(f"{value!r} is before 1970.", param, ctx)
        return milliseconds


class KeyValueType(click.ParamType):
    """`name=value`; the value may hold further `=` and may be empty, the name may not."""

    name = "K=V"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, str]:
        """The pair."""
        if isinstance(value, tuple):
            return value
        name, separator, text = str(value).partition("=")
        if not separator or not name.strip():
            self.fail(f"{value!r} is not of the form name=value.", param, ctx)
        return name.strip(), text.strip()


class EscapedTextType(click.ParamType):
    r"""Text in which `\t`, `\n`, `\r`, `\0`, `\\` and `\xHH` stand for what they do in C. The value is UTF-8 bytes."""

    name = "TEXT"

    _ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{2}|.)", re.DOTALL)
    _SIMPLE = {b"t": b"\t", b"n": b"\n", b"r": b"\r", b"0": b"\0", b"\\": b"\\"}

    def __init__(self, *, allow_empty: bool) -> None:
        self._allow_empty = allow_empty

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> bytes:
        """The bytes that the text means."""
        if isinstance(value, bytes):
            return value
        raw = str(value).encode("utf-8", "surrogateescape")
        if not raw and not self._allow_empty:
            self.fail("it must not be empty.", param, ctx)

        def replacement(match: re.Match[bytes]) -> bytes:
            escape = match.group(1)
            if len(escape) == 3:
                return bytes([int(escape[1:], 16)])
            if escape not in self._SIMPLE:
                self.fail(rf"{value!r} holds an unknown escape; known are \t \n \r \0 \\ \xHH.", param, ctx)
            return self._SIMPLE[escape]

        return self._ESCAPE.sub(replacement, raw)


TIMESTAMP = TimestampType()
KEY_VALUE = KeyValueType()


def bootstrap_option(command: Command) -> Command:
    """`--bootstrap HOST:PORT`, or BARNABAS_BOOTSTRAP."""
    return click.option(
        "--bootstrap",
        "--bootstrap-server",
        "bootstrap",
        metavar="HOST:PORT",
        envvar="BARNABAS_BOOTSTRAP",
        default=DEFAULT_BOOTSTRAP,
        show_default=True,
        show_envvar=True,
        callback=_check_bootstrap,
        help="The broker's address.",
    )(command)


def timeout_option(command: Command) -> Command:
    """`--timeout SECONDS`: how long the whole command may take."""
    return click.option(
        "--timeout",
        "timeout_s",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        default=DEFAULT_TIMEOUT_S,
        show_default=True,
        help="Give up (exit code 4) when the broker has not answered after this long.",
    )(command)


def json_option(command: Command) -> Command:
    """`--json`: for programs."""
    return click.option("--json", "as_json", is_flag=True, help="Write JSON for programs instead of a table.")(command)


def as_dict(pairs: tuple[tuple[str, str], ...], option: str) -> dict[str, str]:
    """The pairs of a repeated `K=V` option. A name that is given twice with two values is a usage error."""
    values: dict[str, str] = {}
    for name, value in pairs:
        if values.get(name, value) != value:
            raise click.UsageError(f"{option} gives {name} twice: {values[name]!r} and {value!r}.")
        values[name] = value
    return values


def _check_bootstrap(_ctx: click.Context, _parameter: click.Parameter, value: str) -> str:
    """A typing error is a usage error, not a failed look-up of a name."""
    from barnabas.clients.addresses import parse_bootstrap
    from barnabas.clients.errors import ClientConfigError

    try:
        parse_bootstrap(value)
    except ClientConfigError as error:
        raise click.BadParameter(f"{str(error).removeprefix('bootstrap: ')}.") from error
    return value
