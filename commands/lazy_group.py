"""A click group with its commands' names and one-line helps, which imports a command when it is used."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click


@dataclass(frozen=True, slots=True)
class LazyCommand:
    """A command's location (`module:attribute`), and its help in the list of commands."""

    target: str
    help: str


class LazyGroup(click.Group):
    """`commands_by_name` is in the order of the help, with the commands that users need first at the top."""

    def __init__(self, *args: Any, commands_by_name: Mapping[str, LazyCommand] | None = None, **extra: Any) -> None:
        super().__init__(*args, **extra)
        self._commands_by_name = commands_by_name or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names in the order of the table."""
        return list(self._commands_by_name)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the command's module."""
        lazy = self._commands_by_name.get(cmd_name)
        if lazy is None:
            return None
        module_name, _, attribute = lazy.target.partition(":")
        command: click.Command = getattr(importlib.import_module(module_name), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, lazy.help) for name, lazy in self._commands_by_name.items()])
