"""The metrics that clients have pushed to the broker (KIP-714), as they are now."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from barnabas.console.pages.listing import Listing
from barnabas.console.web import access_of, render
from barnabas.protocol.messages.cluster.explain_start import ClientMetric, ExplainStartResponse


async def _client_metrics(request: Request) -> Response:
    access = await access_of(request)
    answer = ExplainStartResponse()
    if access.is_barnabas:
        answer = await access.admin.explain_start(client_metrics=True)
    listing: Listing[ClientMetric] = Listing(
        answer.client_metrics,
        request.query_params,
        {
            "client": lambda each: (each.client_id, each.instance, each.metric, each.attributes),
            "metric": lambda each: (each.metric, each.attributes, each.client_id),
            "value": lambda each: each.value,
        },
        lambda each: f"{each.client_id} {each.instance} {each.metric} {each.attributes}",
    )
    return render(
        request,
        "client_metrics.html",
        listing=listing,
        told=len(answer.client_metrics),
        total=answer.client_metrics_total,
        is_barnabas=access.is_barnabas,
    )


ROUTES = (Route("/client-metrics", _client_metrics),)
