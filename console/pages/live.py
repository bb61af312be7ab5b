"""Parts of pages that change by themselves: server-sent events for htmx, and series for the charts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from barnabas.console.cluster.access import ClusterAccess
from barnabas.console.cluster.observer import TOTAL
from barnabas.console.cluster.snapshot import Snapshot
from barnabas.console.web import access_of, render


def live_parts(
    request: Request,
    access: ClusterAccess,
    templates: Mapping[str, str],
    context: Callable[[Snapshot], Mapping[str, Any]],
) -> Response:
    """Return a stream that sends parts of a page again with every observation. `templates`: event -> file name."""

    async def events() -> AsyncIterator[bytes]:
        async for snapshot in access.observer.changes():
            if await request.is_disconnected():
                return
            known = context(snapshot)
            for event, template in templates.items():
                yield event_of(event, bytes(render(request, template, **known).body).decode())

    return stream(events())


def stream(events: AsyncIterator[bytes]) -> Response:
    """Return a response of server-sent events."""
    return StreamingResponse(events, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


def event_of(name: str, text: str) -> bytes:
    """Return one server-sent event. Any line end in the text would end its line, so each line is sent as one."""
    lines = "".join(f"data: {line}\n" for line in text.splitlines())
    return f"event: {name}\n{lines}\n".encode()


async def _series(request: Request) -> Response:
    """Samples of the latest hour as two arrays: seconds since 1970, and values."""
    observer = (await access_of(request)).observer
    kind, name = request.path_params["kind"], request.query_params.get("name", TOTAL)
    history = {"bytes": observer.byte_rates, "records": observer.record_rates, "lag": observer.lags}.get(kind)
    if history is None:
        return JSONResponse({"error": f"there is no series {kind}"}, 404)
    series = history.series(name)
    return JSONResponse([list(series.times_s), list(series.values)])


ROUTES = (Route("/series/{kind}", _series),)
