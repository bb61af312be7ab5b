"""The arguments of `barnabas serve`, parsed without click, whose import is a tenth of a start.

Only plain arguments are parsed here: options of the table, each with a plausible value. Everything else (help, wrong
usage, shell completion) is left to click, which has the same options in `serve` and explains what is wrong.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

LOG_LEVELS = ("debug", "info", "warning", "error")

_FLAGS = ("--stop-with-stdin", "--ignore-security", "--adopt-topics")
_WITH_VALUE = ("--config", "--ready-file", "--log-level", "--set")


class ServeArguments(NamedTuple):
    """`overrides` are of the form name=value."""

    config_file: Path | None
    overrides: tuple[str, ...]
    ready_file: Path | None
    stop_with_stdin: bool
    ignore_security: bool
    adopt_topics: bool
    log_level: str


def parse_plain(arguments: Sequence[str], environ: Mapping[str, str]) -> ServeArguments | None:
    """Return the arguments after `serve`, None if click has to parse them."""
    if "_BARNABAS_COMPLETE" in environ:
        return None
    flags: set[str] = set()
    overrides: list[str] = []
    values = {"--config": environ.get("BARNABAS_CONFIG"), "--log-level": environ.get("BARNABAS_LOG_LEVEL")}
    rest = iter(arguments)
    for argument in rest:
        if argument in _FLAGS:
            flags.add(argument)
            continue
        name, equals, value = argument.partition("=")
        if not equals:
            value = next(rest, "")
        is_standard_output = name == "--ready-file" and value == "-"
        if name not in _WITH_VALUE or not value or (value.startswith("-") and not is_standard_output):
            return None
        if name == "--set":
            overrides.append(value)
        else:
            values[name] = value
    config_file, ready_file = values["--config"], values.get("--ready-file")
    log_level = (values["--log-level"] or "info").lower()
    if log_level not in LOG_LEVELS or (ready_file and os.path.isdir(ready_file)):
        return None
    return ServeArguments(
        Path(config_file) if config_file else None,
        tuple(overrides),
        Path(ready_file) if ready_file else None,
        "--stop-with-stdin" in flags,
        "--ignore-security" in flags,
        "--adopt-topics" in flags,
        log_level,
    )
