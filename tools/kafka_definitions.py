"""Kafka's JSON definitions of messages and records: taken from its jars, and compared between two versions.

python -m tools.kafka_definitions --write 4.3.0 4.4.0    writes tests/protocol/definitions/<version>.json.xz
python -m tools.kafka_definitions --diff 4.3.0 4.4.0     prints what the second changes
"""

from __future__ import annotations

import json
import lzma
import re
import sys
import zipfile
from collections.abc import Iterator
from typing import Any

from tests.support.kafka.definitions import FOLDER, load
from tests.support.kafka.jars import fetch_definitions

_PLACE = re.compile(r"(common/)?(message|metadata)/[^/]+\.json")
_COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)
_UNUSED = {"about", "entityType", "mapKey", "zeroCopy"}


def read_jars(version: str) -> dict[str, Any]:
    """Return the definitions of a version by name, without texts. Raises FetchError."""
    found: dict[str, Any] = {}
    for jar in sorted(fetch_definitions(version).glob("kafka-*.jar")):
        with zipfile.ZipFile(jar) as archive:
            for name in filter(_PLACE.fullmatch, archive.namelist()):
                definition = _stripped(json.loads(_COMMENT.sub("", archive.read(name).decode())))
                if found.setdefault(definition.pop("name"), definition) is not definition:
                    raise ValueError(f"{name} of {jar} defines a message that another jar has, too")
    return dict(sorted(found.items()))


def write(version: str) -> None:
    """Write the file of a version."""
    text = json.dumps(read_jars(version), separators=(",", ":"), sort_keys=True)
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{version}.json.xz").write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def differences(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    """Iterate over lines: a message, its versions, or a field that was added (+), removed (-) or changed (!)."""
    for name in sorted(old | new):
        if name not in old or name not in new:
            sign, message = ("+", new[name]) if name in new else ("-", old[name])
            yield f"{sign} {name}: versions {message['validVersions']}"
            continue
        before, after = dict(_rows(old[name])), dict(_rows(new[name]))
        for row in dict.fromkeys((*before, *after)):
            place = f"{name}{row}"
            if row not in before:
                yield f"+ {place}: {_text(after[row])}"
            elif row not in after:
                yield f"- {place}: {_text(before[row])}"
            elif before[row] != after[row]:
                yield f"! {place}: {_text(before[row] - after[row])} -> {_text(after[row] - before[row])}"


def _stripped(part: Any) -> Any:
    if isinstance(part, dict):
        return {key: _stripped(value) for key, value in part.items() if key not in _UNUSED}
    return [_stripped(each) for each in part] if isinstance(part, list) else part


def _rows(message: dict[str, Any]) -> Iterator[tuple[str, frozenset[str]]]:
    yield "", _attributes(message)
    yield from _fields("", message.get("fields", []))
    for struct in message.get("commonStructs", []):
        yield from _fields(f" {struct['name']}", struct["fields"])


def _fields(place: str, fields: list[dict[str, Any]]) -> Iterator[tuple[str, frozenset[str]]]:
    for field in fields:
        path = f"{place}.{field['name']}"
        yield path, _attributes(field)
        yield from _fields(path, field.get("fields", []))


def _attributes(part: dict[str, Any]) -> frozenset[str]:
    nested = ("name", "fields", "commonStructs")
    return frozenset(f"{key} {value}" for key, value in part.items() if key not in nested)


def _text(attributes: frozenset[str]) -> str:
    return ", ".join(sorted(attributes)) or "-"


def main(arguments: list[str]) -> int:
    """Run the command line; return the exit code."""
    match arguments:
        case ["--write", *versions] if versions:
            for version in versions:
                write(version)
        case ["--diff", old, new]:
            for line in differences(load(old), load(new)):
                print(line)
        case _:
            print(__doc__, file=sys.stderr)
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
