"""A topic's partitions, each with its segments on a time axis and what explain says about them."""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.clients.errors import ClientError
from barnabas.console.cluster.access import ClusterAccess
from barnabas.console.cluster.snapshot import PartitionFacts, TopicFacts
from barnabas.console.pages.topic.picture import Picture, draw
from barnabas.console.web import access_of, render
from barnabas.explanation.topic import Explanation, explanation_of
from barnabas.protocol.errors import ErrorCode
from barnabas.protocol.messages.data.list_offsets import (
    LATEST_TIMESTAMP,
    REMOTE_TIMEOUT_MS,
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.topics.explain_topic import ExplainTopicResponse

PARTITIONS_A_PAGE: Final = 10

_READ_COMMITTED: Final = 1


class ShownPartition(NamedTuple):
    """One partition of the page. `picture` and `explained` are None where the broker does not tell segments."""

    facts: PartitionFacts
    picture: Picture | None
    explained: Explanation | None
    problem: str | None


async def topic_of(request: Request) -> tuple[ClusterAccess, TopicFacts]:
    """Return the topic that the path names. Raises HTTPException (404) and ClientError."""
    access = await access_of(request)
    name = request.path_params["topic"]
    topic = (await access.observer.snapshot()).topics.get(name)
    if topic is None:  # created since the latest observation, or never
        topic = (await access.observer.refresh()).topics.get(name)
    if topic is None:
        raise HTTPException(404, f"there is no topic {name!r}, or you may not see it")
    return access, topic


async def _partitions(request: Request) -> Response:
    access, topic = await topic_of(request)
    count = len(topic.partitions)
    pages = max(1, -(-count // PARTITIONS_A_PAGE))
    given = request.query_params.get("page", "1")
    page = min(int(given), pages) if given.isascii() and given.isdigit() and 0 < len(given) < 9 and int(given) else 1
    first = (page - 1) * PARTITIONS_A_PAGE
    chosen = topic.partitions[first : first + PARTITIONS_A_PAGE]
    shown = await asyncio.gather(*(_shown(access, topic.name, each) for each in chosen))
    return render(
        request,
        "topic.html",
        topic=topic,
        shown=shown,
        page=page,
        pages=pages,
        is_barnabas=access.is_barnabas,
        tab="partitions",
    )


async def _shown(access: ClusterAccess, topic: str, facts: PartitionFacts) -> ShownPartition:
    if not access.is_barnabas:
        return ShownPartition(facts, None, None, None)
    try:
        response = await access.admin.explain_topic(topic, facts.partition)
    except ClientError as error:
        return ShownPartition(facts, None, None, str(error))
    if not response.partitions:
        return ShownPartition(facts, None, None, "the broker has no log of it")
    stable = await _last_stable_offset(access, topic, facts)
    picture = draw(response.partitions[0], response.now_ms, _retention_ms(response), stable)
    return ShownPartition(facts, picture, explanation_of(response, response.partitions[0]), None)


def _retention_ms(explained: ExplainTopicResponse) -> int | None:
    """The time after which records are deleted; None if time does not delete."""
    if any(each.problem is not None for each in explained.settings):
        return None
    values = {each.name: each.value for each in explained.settings}
    if "delete" not in (values.get("cleanup.policy", "delete") or ""):
        return None
    retention_ms = int(values.get("retention.ms") or -1)
    return retention_ms if retention_ms >= 0 else None


async def _last_stable_offset(access: ClusterAccess, topic: str, facts: PartitionFacts) -> int | None:
    wanted = [
        ListOffsetsTopic(
            name=topic, partitions=[ListOffsetsPartition(partition=facts.partition, timestamp=LATEST_TIMESTAMP)]
        )
    ]
    try:
        answer = await access.kafka.ask(
            facts.leader,
            ListOffsetsRequest(isolation=_READ_COMMITTED, topics=wanted, timeout_ms=REMOTE_TIMEOUT_MS),
        )
    except ClientError:
        return None  # the page has its other lines
    for result in answer.topics:
        for each in result.partitions:
            if each.error is ErrorCode.NONE:
                return int(each.offset)
    return None


ROUTES = (Route("/topics/{topic}", _partitions),)
