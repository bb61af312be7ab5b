"""The work of `barnabas topic delete-records`: reads the offsets' file, deletes, and prints each partition's result.

The file has the format of kafka-delete-records:

    {"partitions": [{"topic": "orders", "partition": 0, "offset": 5}, ...], "version": 1}

`version` is optional. Source: Kafka DeleteRecordsCommand.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Any, BinaryIO

import click

from barnabas.clients.admin.admin import Admin
from barnabas.commands.exit_codes import ExitCode
from barnabas.commands.failures import CommandFailure
from barnabas.commands.output import print_json, print_line, print_note
from barnabas.commands.session import with_admin
from barnabas.explanation.wording import counted
from barnabas.protocol.errors import BrokerError
from barnabas.protocol.topic_partition import TopicPartition

_NEWEST_VERSION = 1
_MAX_INT32 = 2**31 - 1
_MAX_INT64 = 2**63 - 1


def read_offsets(file: BinaryIO) -> dict[tuple[str, int], int]:
    """Read the offset of each partition. Raises click.BadParameter with the fault of the file."""
    try:
        document = json.loads(file.read())
    except (ValueError, RecursionError) as error:
        raise _bad(f"it is not JSON: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("partitions"), list):
        raise _bad('it is not an object with an array "partitions"')
    version = document.get("version", _NEWEST_VERSION)
    if version != _NEWEST_VERSION:
        raise _bad(f"its version is {version!r}, and only {_NEWEST_VERSION} is supported")
    offsets: dict[tuple[str, int], int] = {}
    for number, entry in enumerate(document["partitions"]):
        where = f"partitions[{number}]"
        if not isinstance(entry, dict):
            raise _bad(f"{where} is not an object")
        topic = entry.get("topic")
        if not isinstance(topic, str):
            raise _bad(f'{where} has no "topic" that is a string')
        key = (topic, _integer(entry, "partition", 0, _MAX_INT32, where))
        if key in offsets:
            raise _bad(f"{where} names {topic}-{key[1]} a second time")
        offsets[key] = _integer(entry, "offset", -1, _MAX_INT64, where)
    if not offsets:
        raise _bad("it names no partition")
    return offsets


def delete_and_report(
    offsets: Mapping[tuple[str, int], int], *, yes: bool, as_json: bool, bootstrap: str, timeout_s: float
) -> int:
    """Delete, and print one line per partition. Returns FAILED if the broker refused any of them."""
    named = ", ".join(
        f"{topic}-{partition} below {'its end' if offset < 0 else offset}"
        for (topic, partition), offset in offsets.items()
    )
    if not yes and sys.stdin.isatty() and sys.stdout.isatty() and not click.confirm(f"Delete the records of {named}?"):
        raise CommandFailure("nothing was deleted")
    wanted = {TopicPartition(*key): offset for key, offset in offsets.items()}

    async def work(admin: Admin) -> dict[TopicPartition, Any]:
        return dict(await admin.delete_records(wanted))

    results = with_admin(bootstrap, timeout_s, work)
    refused = {each: result for each, result in results.items() if isinstance(result, BrokerError)}
    if as_json:
        print_json(
            [
                {
                    "topic": each.topic,
                    "partition": each.partition,
                    "low_watermark": None if each in refused else result,
                    "error": result.code.name if isinstance(result, BrokerError) else None,
                    "message": result.message if isinstance(result, BrokerError) else None,
                }
                for each, result in results.items()
            ]
        )
    else:
        for each, result in results.items():
            if each not in refused:
                print_line(f"{each} now begins at offset {result}")
    for error in refused.values():
        print_note(f"{error.message} ({error.code.name})")
    if refused and len(results) > 1:
        print_note(f"{counted(len(refused), 'partition')} of {len(results)} refused")
    return ExitCode.FAILED if refused else ExitCode.OK


def _integer(entry: Mapping[str, Any], name: str, lowest: int, highest: int, where: str) -> int:
    value = entry.get(name)
    if type(value) is not int or not lowest <= value <= highest:
        raise _bad(f'{where} has no "{name}" that is an integer from {lowest} on')
    return value


def _bad(problem: str) -> click.BadParameter:
    return click.BadParameter(f"{problem}.", param_hint="--offset-json-file")
