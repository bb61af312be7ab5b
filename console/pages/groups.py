"""The list of groups, and one group with its members, lag and history."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.clients.errors import ClientError
from barnabas.console.cluster.access import ClusterAccess
from barnabas.console.cluster.group_description import describe_group
from barnabas.console.cluster.snapshot import GroupFacts, Snapshot
from barnabas.console.pages.listing import Listing
from barnabas.console.pages.topic.partitions import topic_of
from barnabas.console.web import access_of, render
from barnabas.explanation.group import sentences_of
from barnabas.explanation.group_findings import ExplainedGroup, PartitionFinding, explain_group
from barnabas.explanation.warnings import group_warnings, shortened


class PartitionLag(NamedTuple):
    """A committed offset, and the log's end if it is known."""

    topic: str
    partition: int
    committed: int
    end: int | None

    @property
    def lag(self) -> int | None:
        """Records between the two."""
        return None if self.end is None else max(0, self.end - self.committed)


class Explained(NamedTuple):
    """What only Barnabas tells: members that hold a group up, its history, and what retention takes from it.

    `warnings` are of the partitions that are not on the page.
    """

    sentences: Sequence[str] = ()
    warnings: Sequence[str] = ()


async def _groups(request: Request) -> Response:
    access = await access_of(request)
    snapshot = await access.observer.snapshot()
    listing: Listing[GroupFacts] = Listing(
        snapshot.groups.values(),
        request.query_params,
        {
            "name": lambda group: group.listed.group_id,
            "state": lambda group: group.listed.state,
            "type": lambda group: group.listed.group_type,
            "partitions": lambda group: len(group.committed),
            "lag": lambda group: group.lag,
        },
        lambda group: group.listed.group_id,
    )
    return render(request, "groups.html", snapshot=snapshot, listing=listing)


async def _group(request: Request) -> Response:
    access = await access_of(request)
    name = request.path_params["group"]
    described, explained = await asyncio.gather(describe_group(access.kafka, name), _explain(access, name))
    snapshot = await access.observer.snapshot()
    facts = snapshot.groups.get(name)
    if facts is None:  # since the latest observation
        snapshot = await access.observer.refresh()
        facts = snapshot.groups.get(name)
    listing: Listing[PartitionLag] = Listing(
        () if facts is None else _lags(facts, snapshot),
        request.query_params,
        {
            "partition": lambda each: (each.topic, each.partition),
            "committed": lambda each: each.committed,
            "end": lambda each: each.end,
            "lag": lambda each: each.lag,
        },
        lambda each: each.topic,
    )
    return render(
        request,
        "group.html",
        name=name,
        described=described,
        facts=facts,
        listing=listing,
        explained=_told(explained, listing.rows),
        is_barnabas=access.is_barnabas,
    )


async def _of_topic(request: Request) -> Response:
    access, topic = await topic_of(request)
    snapshot = await access.observer.snapshot()
    readers = []
    for group in snapshot.groups.values():
        lags = _lags(group, snapshot, topic.name)
        if lags:
            known = [each.lag for each in lags if each.lag is not None]
            readers.append((group.listed, len(lags), sum(known) if known else None))
    return render(request, "topic_groups.html", topic=topic, readers=readers, tab="groups")


def _lags(group: GroupFacts, snapshot: Snapshot, only: str | None = None) -> Sequence[PartitionLag]:
    """The lag in each partition, or in those of one topic."""
    return [
        PartitionLag(partition.topic, partition.partition, committed, snapshot.ends.get(partition))
        for partition, committed in sorted(group.committed.items())
        if only in (None, partition.topic)
    ]


async def _explain(access: ClusterAccess, group: str) -> ExplainedGroup | str | None:
    """What Barnabas tells, or why it does not; None on Apache Kafka."""
    if not access.is_barnabas:
        return None
    try:
        return explain_group(group, await access.admin.explain_group(group))
    except ClientError as error:
        return f"the broker has not explained the group: {error}"


def _told(found: ExplainedGroup | str | None, rows: Sequence[PartitionLag]) -> Explained:
    """What the page says: of its own partitions each, of the others warnings."""
    if not isinstance(found, ExplainedGroup):
        return Explained([found] if found else ())
    on_page = {(each.topic, each.partition) for each in rows}

    def is_shown(finding: PartitionFinding) -> bool:
        return (finding.lag.topic, finding.lag.partition) in on_page

    partitions = tuple(each for each in found.partitions if not is_shown(each))
    others = replace(found, partitions=partitions, facts=found.facts.replaced(problems=()))
    warnings = shortened(list(group_warnings(others)), "partition that retention takes from the group")
    return Explained([each.strip() for each in sentences_of(found, is_shown)], warnings)


ROUTES = (
    Route("/groups", _groups),
    Route("/groups/{group:path}", _group),
    Route("/topics/{topic}/groups", _of_topic),
)
