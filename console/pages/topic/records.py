"""A partition's records: by offset, by time, from the end; one record with all that is stored about it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.clients.errors import RefusedError
from barnabas.clients.network.cluster import Cluster
from barnabas.console.cluster.snapshot import PartitionFacts, TopicFacts
from barnabas.console.pages.topic.partitions import topic_of
from barnabas.console.records.decoding import FORMATS, Decoded, decode
from barnabas.console.records.reading import RecordsPage, ShownRecord, offset_at, read_page
from barnabas.console.web import console_of, render
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.records.record import header_name_bytes
from barnabas.protocol.uuids import parse_uuid

ROWS: Final = 50
_LIST_CHARACTERS: Final = 300
_RECORD_CHARACTERS: Final = 256 * 1024
_KEY_SEARCHED_MAX_BYTES: Final = 1000

_OFFSET_DIGITS_MAX: Final = 18
_MERGED_PARTITIONS: Final = 50


class Row(NamedTuple):
    """A record of a list, decoded and shortened."""

    partition: int
    record: ShownRecord
    key: Decoded
    value: Decoded


async def rows_of(request: Request, records: Iterable[tuple[int, ShownRecord]]) -> list[Row]:
    """Decode records, each with its partition, for a list."""
    found = list(records)
    shown = await _decoder(request, [record for _, record in found])
    return [
        Row(partition, record, shown(record.key, _LIST_CHARACTERS // 3), shown(record.value, _LIST_CHARACTERS))
        for partition, record in found
    ]


async def _decoder(
    request: Request, records: Sequence[ShownRecord], *, indent: bool = False
) -> Callable[[bytes | None, int], Decoded]:
    """Return what decodes keys and values of these records as the query asks."""
    wanted, registry = format_of(request), console_of(request).schemas
    if registry is not None:
        await registry.load([content for each in records for content in (each.key, each.value)])

    def shown(content: bytes | None, limit: int) -> Decoded:
        schema = None if registry is None or content is None else registry.schema_of(content)
        return decode(content, wanted, limit, schema=schema, indent=indent)

    return shown


def format_of(request: Request) -> str:
    """Return the format that the query asks for."""
    wanted = request.query_params.get("format", FORMATS[0])
    return wanted if wanted in FORMATS else FORMATS[0]


async def _records(request: Request) -> Response:
    access, topic = await topic_of(request)
    query = request.query_params
    if query.get("partition") == "all":
        return await _merged(request, access.kafka, topic)
    facts = partition_of(topic, query.get("partition", "0"))
    wanted = format_of(request)
    start, end = facts.start_offset or 0, facts.end_offset or 0
    note = ""
    if time_text := query.get("time", "").strip():
        found = await offset_at(access.kafka, topic.name, facts.partition, facts.leader, time_ms_of(time_text))
        note = "" if found is not None else f"No record is as late as {time_text}: these are the last ones."
        offset = max(start, end - ROWS) if found is None else found
    elif offset_text := query.get("offset", "").strip():
        offset = min(max(number_of(offset_text, "offset"), start), end)
    else:
        offset = max(start, end - ROWS)
    page = await _read(access.kafka, topic, facts, offset, ROWS)
    rows = await rows_of(request, ((facts.partition, each) for each in page.records))
    return render(
        request,
        "records.html",
        topic=topic,
        facts=facts,
        page=page,
        rows=rows,
        offset=offset,
        previous=max(start, offset - ROWS),
        note=note,
        wanted=wanted,
        formats=FORMATS,
        tab="records",
    )


async def _merged(request: Request, kafka: Cluster, topic: TopicFacts) -> Response:
    """Records of all partitions in the order of their times: from a time on, or the latest ones."""
    chosen = [each for each in topic.partitions if each.leader >= 0][:_MERGED_PARTITIONS]
    time_text = request.query_params.get("time", "").strip()
    time_ms = time_ms_of(time_text) if time_text else None

    async def read(facts: PartitionFacts) -> Sequence[tuple[int, ShownRecord]]:
        start, end = facts.start_offset or 0, facts.end_offset or 0
        offset: int | None = max(start, end - ROWS)
        if time_ms is not None:
            offset = await offset_at(kafka, topic.name, facts.partition, facts.leader, time_ms)
        if offset is None:
            return ()
        page = await _read(kafka, topic, facts, offset, ROWS)
        return [(facts.partition, each) for each in page.records]

    found = [each for part in await asyncio.gather(*map(read, chosen)) for each in part]
    found.sort(key=lambda each: (each[1].timestamp_ms, each[0], each[1].offset))
    rows = await rows_of(request, found[-ROWS:] if time_ms is None else found[:ROWS])
    left_out = len(topic.partitions) - len(chosen)
    note = (
        f"{left_out} partitions are left out: the first {_MERGED_PARTITIONS} with a leader are shown."
        if left_out
        else ""
    )
    return render(
        request,
        "records_merged.html",
        topic=topic,
        rows=rows,
        later=_later(rows) if time_ms is not None and len(found) >= ROWS else None,
        note=note,
        wanted=format_of(request),
        formats=FORMATS,
        tab="records",
    )


def _later(rows: Sequence[Row]) -> int:
    """Return the time of the next page, which begins with the last time of this one: more may share it."""
    first, last = rows[0].record.timestamp_ms, rows[-1].record.timestamp_ms
    return last if last > first else last + 1


async def _record(request: Request) -> Response:
    access, topic = await topic_of(request)
    facts, record = await _one(request, topic, access.kafka)
    shown = await _decoder(request, [record], indent=True)
    return render(
        request,
        "record.html",
        topic=topic,
        facts=facts,
        record=record,
        key=shown(record.key, _RECORD_CHARACTERS),
        key_text=_key_text(record.key),
        value=shown(record.value, _RECORD_CHARACTERS),
        headers=[
            (decode(header_name_bytes(name), "text", _LIST_CHARACTERS).text, shown(value, _LIST_CHARACTERS))
            for name, value in record.headers
        ],
        problems=_problems(request, record),
        wanted=format_of(request),
        formats=FORMATS,
        tab="records",
    )


def _key_text(key: bytes | None) -> str | None:
    """The key as a text that a search finds; None if it is none, or too long for an address."""
    if key is None or len(key) > _KEY_SEARCHED_MAX_BYTES:
        return None
    try:
        return key.decode() or None
    except UnicodeDecodeError:
        return None


def _problems(request: Request, record: ShownRecord) -> list[str]:
    """Why a key or value is not shown by its schema."""
    registry = console_of(request).schemas
    schemas = [] if registry is None else [registry.schema_of(each) for each in (record.key, record.value) if each]
    return [each.problem for each in schemas if each is not None and each.problem]


async def _download(request: Request) -> Response:
    """The value as it is stored, or the key."""
    access, topic = await topic_of(request)
    facts, record = await _one(request, topic, access.kafka)
    part = request.path_params["part"]
    if part not in ("key", "value"):
        raise HTTPException(404)
    data = record.value if part == "value" else record.key
    name = f"{topic.name}-{facts.partition}-{record.offset}.{part}"
    disposition = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(data or b"", media_type="application/octet-stream", headers=disposition)


async def _one(request: Request, topic: TopicFacts, kafka: Cluster) -> tuple[PartitionFacts, ShownRecord]:
    facts = partition_of(topic, str(request.path_params["partition"]))
    offset = number_of(str(request.path_params["offset"]), "offset")
    reason = "it is outside of the log"
    if (facts.start_offset or 0) <= offset:
        try:
            page = await _read(kafka, topic, facts, offset, 1)
        except RefusedError as error:
            if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
        else:
            if page.records and page.records[0].offset == offset:
                return facts, page.records[0]
            reason = page.problem or "compaction has removed it, or it is not written yet"
    raise HTTPException(404, f"{topic.name}-{facts.partition} has no record at offset {offset}: {reason}")


async def _read(kafka: Cluster, topic: TopicFacts, facts: PartitionFacts, offset: int, count: int) -> RecordsPage:
    if facts.leader < 0:
        raise HTTPException(409, f"{topic.name}-{facts.partition} has no leader: it can be neither written nor read")
    return await read_page(
        kafka,
        topic.name,
        parse_uuid(topic.topic_id),
        facts.partition,
        facts.leader,
        offset,
        count,
    )


def partition_of(topic: TopicFacts, text: str) -> PartitionFacts:
    """Return the partition with this number. Raises HTTPException."""
    number = number_of(text, "partition")
    for each in topic.partitions:
        if each.partition == number:
            return each
    raise HTTPException(404, f"{topic.name} has no partition {number}")


def number_of(text: str, what: str) -> int:
    """Return a number from 0 on. Raises HTTPException."""
    if text.isascii() and text.isdigit() and len(text) <= _OFFSET_DIGITS_MAX:
        return int(text)
    raise HTTPException(400, f"{text!r} is not a number for the {what}")


def time_ms_of(text: str) -> int:
    """Return ms since 1970 of a time in ISO 8601, UTC without a zone, or in ms. Raises HTTPException."""
    if text.isascii() and text.isdigit() and len(text) <= _OFFSET_DIGITS_MAX:
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise HTTPException(400, f"{text!r} is neither ISO 8601 nor milliseconds since 1970") from error
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


ROUTES = (
    Route("/topics/{topic}/records", _records),
    Route("/topics/{topic}/records/{partition}/{offset}", _record),
    Route("/topics/{topic}/records/{partition}/{offset}/{part}", _download),
)
