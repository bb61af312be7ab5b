"""Records that arrive while a page is open: the matches of a search, and the ends of partitions."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.clients.errors import ClientError
from barnabas.console.cluster.access import ClusterAccess
from barnabas.console.cluster.snapshot import PartitionFacts, TopicFacts
from barnabas.console.formats import ENVIRONMENT, count_text
from barnabas.console.pages.live import event_of, stream
from barnabas.console.pages.topic.partitions import topic_of
from barnabas.console.pages.topic.records import format_of, number_of, partition_of, rows_of, time_ms_of
from barnabas.console.records.decoding import FORMATS
from barnabas.console.records.reading import offset_at
from barnabas.console.records.searching import Found, Progress, predicate, search, tail
from barnabas.console.web import render

MATCHES_MAX: Final = 200
_PARTITIONS_MAX: Final = 50
"""Of a tail: each is read twice a second."""


async def _search(request: Request) -> Response:
    _, topic = await topic_of(request)
    query = request.query_params
    problem = None
    text, field, key = query.get("text", ""), query.get("field", "").strip(), query.get("key", "")
    if text or field or key:
        try:
            predicate(text, field, key)
        except ValueError as error:
            problem = str(error)
    return render(
        request,
        "records_search.html",
        status=200 if problem is None else 400,
        topic=topic,
        given={name: query.get(name, "") for name in ("text", "field", "key", "partition", "offset", "time")},
        query=request.url.query,
        is_running=bool(text or field or key) and problem is None,
        problem=problem,
        most=MATCHES_MAX,
        wanted=format_of(request),
        formats=FORMATS,
        tab="records",
    )


async def _search_stream(request: Request) -> Response:
    access, topic = await topic_of(request)
    query = request.query_params
    try:
        is_wanted = predicate(query.get("text", ""), query.get("field", "").strip(), query.get("key", ""))
    except ValueError as error:
        raise HTTPException(400, str(error)) from error
    starts = await _starts(request, access, topic)

    async def events() -> AsyncIterator[bytes]:
        try:
            async for progress, found in search(access.kafka, topic, starts, is_wanted, most=MATCHES_MAX):
                if await request.is_disconnected():
                    return
                if found:
                    yield event_of("rows", await _rows(request, topic, found))
                yield event_of("progress", "; ".join([_sentence(progress), *progress.problems]))
        except ClientError as error:
            yield event_of("progress", f"The search has ended early: {error}")
        yield event_of("end", "-")

    return stream(events())


async def _starts(request: Request, access: ClusterAccess, topic: TopicFacts) -> dict[int, int]:
    """Return where a search begins in each partition. Raises HTTPException, ClientError."""
    query = request.query_params
    chosen: Sequence[PartitionFacts] = [each for each in topic.partitions if each.leader >= 0]
    if query.get("partition"):
        chosen = [partition_of(topic, query["partition"])]
    time_text, offset_text = query.get("time", "").strip(), query.get("offset", "").strip()
    starts: dict[int, int] = {}
    for facts in chosen:
        offset = facts.start_offset or 0
        if time_text:
            found = await offset_at(access.kafka, topic.name, facts.partition, facts.leader, time_ms_of(time_text))
            if found is None:
                continue
            offset = found
        elif offset_text:
            offset = max(offset, number_of(offset_text, "offset"))
        starts[facts.partition] = offset
    return starts


async def _tail(request: Request) -> Response:
    _, topic = await topic_of(request)
    return render(
        request,
        "records_tail.html",
        topic=topic,
        query=request.url.query,
        partition=request.query_params.get("partition", ""),
        wanted=format_of(request),
        formats=FORMATS,
        tab="records",
    )


async def _tail_stream(request: Request) -> Response:
    access, _ = await topic_of(request)
    topic = (await access.observer.refresh()).topics[request.path_params["topic"]]
    number = request.query_params.get("partition", "")
    chosen = [each for each in topic.partitions if each.leader >= 0][:_PARTITIONS_MAX]
    if number:
        chosen = [partition_of(topic, number)]

    async def events() -> AsyncIterator[bytes]:
        missed = 0
        try:
            async for found, skipped in tail(access.kafka, topic, chosen):
                if await request.is_disconnected():
                    return
                missed += skipped
                if found:
                    yield event_of("rows", await _rows(request, topic, found))
                note = f"; {count_text(missed)} records came too fast and are not shown" if missed else ""
                yield event_of("progress", f"Following {len(chosen)} partitions{note}")
        except ClientError as error:
            yield event_of("progress", f"The end is not followed any more: {error}")
            yield event_of("end", "-")

    return stream(events())


def _sentence(progress: Progress) -> str:
    return (
        f"{count_text(progress.scanned)} records read, {progress.matches} found, at offset "
        f"{count_text(progress.offset)} of {count_text(progress.end)} in partition {progress.partition}"
    )


async def _rows(request: Request, topic: TopicFacts, found: Sequence[Found]) -> str:
    rows = await rows_of(request, ((each.partition, each.record) for each in found))
    return ENVIRONMENT.get_template("record_rows.html").render(topic=topic, rows=rows)


ROUTES = (
    Route("/topics/{topic}/search", _search),
    Route("/topics/{topic}/search/stream", _search_stream),
    Route("/topics/{topic}/tail", _tail),
    Route("/topics/{topic}/tail/stream", _tail_stream),
)
