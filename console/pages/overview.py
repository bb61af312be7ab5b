"""The first page: traffic, disks and warnings, which a browser gets anew with every observation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.console.cluster.access import ClusterAccess
from barnabas.console.cluster.snapshot import Snapshot
from barnabas.console.pages.live import live_parts
from barnabas.console.web import access_of, render
from barnabas.explanation.space import space_sentences
from barnabas.explanation.topic import offline_directory_sentence

_PARTS = {"figures": "overview_figures.html", "details": "overview_details.html"}


async def _overview(request: Request) -> Response:
    access = await access_of(request)
    snapshot = await access.observer.snapshot()
    return render(request, "overview.html", **_figures(access, snapshot))


async def _live(request: Request) -> Response:
    access = await access_of(request)
    return live_parts(request, access, _PARTS, lambda snapshot: _figures(access, snapshot))


def _figures(access: ClusterAccess, snapshot: Snapshot) -> dict[str, Any]:
    """What the template needs. `inspection` is None before the first, and on Apache Kafka."""
    inspection = access.inspector.latest(snapshot)
    warnings = [*_warnings(access, snapshot)]
    forecast: list[list[str]] = []
    if inspection is not None:
        warnings += [*inspection.warnings, *inspection.problems]
        forecast = [[each.strip() for each in space_sentences(space)] for space in inspection.spaces]
    return {
        "snapshot": snapshot,
        "warnings": warnings,
        "is_barnabas": access.is_barnabas,
        "inspection": inspection,
        "forecast": forecast,
    }


def _warnings(access: ClusterAccess, snapshot: Snapshot) -> Sequence[str]:
    failure = access.observer.failure
    late = [] if failure is None else [f"these figures are old, because the last observation failed: {failure}"]
    leaderless = sum(each.leader < 0 for topic in snapshot.topics.values() for each in topic.partitions)
    if leaderless:
        late.append(f"{leaderless:,} partitions have no leader: they can be neither written nor read")
    offline = [each for each in snapshot.directories if each.error]
    late += [f"{offline_directory_sentence(each.path)} (broker {each.node_id}: {each.error})" for each in offline]
    return [*late, *snapshot.problems]


ROUTES = (Route("/", _overview), Route("/live/overview", _live))
