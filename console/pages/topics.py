"""The list of topics."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.console.cluster.snapshot import TopicFacts
from barnabas.console.pages.listing import Listing
from barnabas.console.web import access_of, render


async def _topics(request: Request) -> Response:
    access = await access_of(request)
    snapshot = await access.observer.snapshot()
    lags = snapshot.largest_lags
    internal = request.query_params.get("internal") == "1"
    listing: Listing[TopicFacts] = Listing(
        (each for each in snapshot.topics.values() if internal or not each.is_internal),
        request.query_params,
        {
            "name": lambda topic: topic.name,
            "partitions": lambda topic: len(topic.partitions),
            "records": lambda topic: topic.records,
            "size": lambda topic: topic.size_bytes,
            "rate": lambda topic: topic.records_per_s,
            "bytes": lambda topic: topic.bytes_per_s,
            "lag": lambda topic: lags.get(topic.name),
            "dirty": lambda topic: topic.dirty_ratio,
        },
        lambda topic: topic.name,
    )
    return render(
        request,
        "topics.html",
        snapshot=snapshot,
        listing=listing,
        lags=lags,
        internal=internal,
        is_barnabas=access.is_barnabas,
    )


ROUTES = (Route("/topics", _topics),)
