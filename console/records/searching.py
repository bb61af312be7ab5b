"""Searches records for a text or a field's value, page by page, and follows the ends of partitions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from barnabas.clients.network.cluster import Cluster
from barnabas.console.cluster.snapshot import PartitionFacts, TopicFacts
from barnabas.console.records.reading import ShownRecord, read_page
from barnabas.protocol.uuids import parse_uuid

Predicate = Callable[[ShownRecord], bool]

_RECORDS_A_PAGE: Final = 5000
_TAIL_PAUSE_S: Final = 0.5
_TAIL_RECORDS: Final = 25
"""Of one partition in one round; what is beyond is skipped and counted, so that the rate is bounded."""


class Found(NamedTuple):
    """A record with its partition."""

    partition: int
    record: ShownRecord


@dataclass(slots=True)
class Progress:
    """How far a search is. `problems` are sentences."""

    scanned: int = 0
    matches: int = 0
    partition: int = -1
    offset: int = 0
    end: int = 0
    problems: tuple[str, ...] = ()


def predicate(text: str, field: str, key: str = "") -> Predicate:
    """Return what a record must have: a text in its key or value, a JSON field of its value, this key, or all three.

    `field` is `a.b=3` or `a.b=some text`. What is empty is not looked for. Raises ValueError.
    """
    wanted = text.encode()
    matches_value = _value_predicate(wanted, field)
    if not key:
        return matches_value
    wanted_key = key.encode()
    return lambda record: record.key == wanted_key and matches_value(record)


def _value_predicate(wanted: bytes, field: str) -> Predicate:
    if not field:
        return lambda record: _has(record, wanted)
    path_text, separator, value_text = field.partition("=")
    path = path_text.strip().split(".")
    if not separator or not all(path):
        raise ValueError(f"{field!r} is not of the form name=value; a.b=3 is the field b in a")
    value = _json_or_text(value_text.strip())

    def matches(record: ShownRecord) -> bool:
        return _has(record, wanted) and _field(record.value, path) in (value, value_text.strip())

    return matches


def _has(record: ShownRecord, wanted: bytes) -> bool:
    return not record.marker and (wanted in (record.key or b"") or wanted in (record.value or b""))


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _field(value: bytes | None, path: Sequence[str]) -> Any:
    """Return a field of a JSON value; an object that equals nothing where there is none."""
    missing = object()
    try:
        found = json.loads(value or b"")
    except (ValueError, RecursionError):
        return missing
    for name in path:
        if isinstance(found, list) and name.isascii() and name.isdigit() and int(name) < len(found):
            found = found[int(name)]
        elif isinstance(found, dict) and name in found:
            found = found[name]
        else:
            return missing
    return found


async def search(
    kafka: Cluster,
    topic: TopicFacts,
    starts: dict[int, int],
    is_wanted: Predicate,
    *,
    most: int,
) -> AsyncIterator[tuple[Progress, Sequence[Found]]]:
    """Yield after each page what was found in it. Ends at the ends that the logs have now, or after `most` matches.

    `starts`: the first offset by partition. Raises ClientError.
    """
    progress = Progress()
    by_number = {each.partition: each for each in topic.partitions}
    for number, start in starts.items():
        facts = by_number[number]
        offset, end = start, facts.end_offset or 0
        while offset < end and progress.matches < most:
            page = await read_page(
                kafka, topic.name, parse_uuid(topic.topic_id), number, facts.leader, offset, _RECORDS_A_PAGE
            )
            found = [Found(number, each) for each in page.records if each.offset < end and is_wanted(each)]
            found = found[: most - progress.matches]
            progress.scanned += len(page.records)
            progress.matches += len(found)
            progress.partition, progress.offset, progress.end = number, page.next_offset, end
            if page.problem:
                progress.problems = (*progress.problems, f"partition {number}: {page.problem}")
            yield progress, found
            if page.problem or page.next_offset <= offset:
                break
            offset = page.next_offset
            await asyncio.sleep(0)


async def tail(
    kafka: Cluster, topic: TopicFacts, partitions: Sequence[PartitionFacts]
) -> AsyncIterator[tuple[Sequence[Found], int]]:
    """Yield new records of partitions, from their ends on, and how many were skipped, twice a second, without end.

    Raises ClientError.
    """
    ends: dict[int, int] = {each.partition: each.end_offset or 0 for each in partitions}
    while True:
        found: list[Found] = []
        skipped = 0
        for facts in partitions:
            number = facts.partition
            page = await read_page(
                kafka, topic.name, parse_uuid(topic.topic_id), number, facts.leader, ends[number], _TAIL_RECORDS
            )
            found += [Found(number, each) for each in page.records]
            ends[number] = page.next_offset
            if page.high_watermark - page.next_offset > _TAIL_RECORDS:
                skipped += page.high_watermark - _TAIL_RECORDS - page.next_offset
                ends[number] = page.high_watermark - _TAIL_RECORDS
        yield sorted(found, key=lambda each: each.record.timestamp_ms), skipped
        await asyncio.sleep(_TAIL_PAUSE_S)
