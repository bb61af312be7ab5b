"""What programs and people rely on, as text: the commands' options, the Python API, the lines of the log.

    python -m tools.surface --write    write tests/house/surface/{commands,python,log}.txt
    python -m tools.surface --check    exit code 1, and the difference, unless they are as the code

`make check` compares them, so that a change of the surface is seen, and accepted by the commit that makes it.
docs/metrics.md and docs/configuration.md do the same for metrics and properties, tests/house/test_surface.py for
`--json` and exit codes.
"""

from __future__ import annotations

import ast
import dataclasses
import difflib
import inspect
import re
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import click

import barnabas
from barnabas.commands.main import main as barnabas_command

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "tests/house/surface"
LOGGING = ("broker", "clients", "commands", "console", "pipeline", "transport")
LEVELS = ("info", "warning", "error", "exception", "critical")


def commands(command: click.Command = barnabas_command, path: str = "barnabas") -> Iterator[str]:
    """Yield a line for each command, and one for each of its arguments and options."""
    context = click.Context(command, info_name=path)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from commands(found, f"{path} {name}")
        return
    yield path
    for parameter in command.params:
        entry = parameter.to_info_dict()
        kind = entry["type"]["param_type"]
        if choices := entry["type"].get("choices"):
            kind += f"[{'|'.join(str(choice) for choice in choices)}]"
        traits = [name for name in ("required", "multiple", "is_flag", "hidden") if entry.get(name)]
        traits += [f"{name}={entry[name]!r}" for name in ("envvar", "nargs") if entry.get(name) not in (None, 1)]
        names = ", ".join([*parameter.opts, *parameter.secondary_opts])
        yield "    " + " ".join([names, kind, *traits])


def python_api() -> Iterator[str]:
    """Yield a line for each public name, and one for each public member of a class."""
    for name in sorted(barnabas.__all__):
        value = getattr(barnabas, name)
        if not isinstance(value, type):
            yield f"{name}: {type(value).__name__}"
            continue
        yield f"class {name}({', '.join(base.__name__ for base in value.__bases__)})"
        yield from (f"    {line}" for line in _members(value))


def _members(value: Any) -> Iterator[str]:
    if issubclass(value, Enum):
        yield from (f"{member.name} = {member.value!r}" for member in value)
        return
    if "__init__" in vars(value) or dataclasses.is_dataclass(value):
        yield f"__init__{_signature(value)}"
    for name, member in sorted(vars(value).items()):
        if name.startswith("_") and name not in ("__aenter__", "__aiter__", "__iter__"):
            continue
        function = inspect.unwrap(getattr(member, "__func__", member))
        if isinstance(member, property):
            yield f"{name}: property"
        elif inspect.isfunction(function):
            yield f"{'async ' if inspect.iscoroutinefunction(function) else ''}{name}{_signature(function)}"
        elif name in getattr(value, "_fields", ()):
            yield f"{name}: field"


def _signature(function: Any) -> str:
    return re.sub(r" at 0x\w+", "", str(inspect.signature(function)).replace("'", ""))


def log_lines() -> Iterator[str]:
    """Yield the level and the format of each line that is logged from INFO on, sorted."""
    found = set()
    for folder in LOGGING:
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                match node:
                    case ast.Call(
                        func=ast.Attribute(value=ast.Name(id="logger") | ast.Attribute(), attr=level),
                        args=[ast.Constant(value=str(text)), *_],
                    ) if level in LEVELS:
                        found.add(f"{level} {text}")
    yield from sorted(found)


SURFACES = {"commands": commands, "python": python_api, "log": log_lines}


def main(arguments: list[str]) -> int:
    """Write or check the files; return the exit code."""
    if arguments not in (["--write"], ["--check"]):
        print("usage: python -m tools.surface --write | --check", file=sys.stderr)
        return 2
    code = 0
    for name, lines in SURFACES.items():
        file = FOLDER / f"{name}.txt"
        text = "\n".join(lines()) + "\n"
        if arguments == ["--write"]:
            file.write_text(text)
        elif text != file.read_text():
            code = 1
            print(
                *difflib.unified_diff(file.read_text().splitlines(), text.splitlines(), name, "now", lineterm="", n=1),
                sep="\n",
            )
            print(
                f"{file.relative_to(ROOT)} differs: if that is meant, python -m tools.surface --write", file=sys.stderr
            )
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
