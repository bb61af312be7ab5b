"""The metrics port's WSGI application.

GET /metrics    the Prometheus text (or OpenMetrics, or gzip, as the scraper's headers ask)
GET /healthz    200 while the broker serves, else 503 with the reason in one line. Partitions that are not served are
                named in the line of a 200: a restart, which a 503 may cause, would not create them on a full disk
anything else   404 with a hint, 405 for other methods
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from prometheus_client import make_wsgi_app

from barnabas.broker.metrics.registry import make_registry
from barnabas.broker.metrics.state import BrokerState
from barnabas.broker.probes import BrokerProbes

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

LOOP_STUCK_SECONDS: Final = 10.0
"""/healthz reports an event loop as stuck that has not run its half-second timer for this long."""

_METHODS: Final = ("GET", "HEAD")

logger = logging.getLogger(__name__)


def make_application(
    probes: BrokerProbes, state: BrokerState, *, monotonic: Callable[[], float] = time.monotonic
) -> WSGIApplication:
    """Return the application for one broker's counters, with a Prometheus registry of its own."""
    metrics_app = make_wsgi_app(make_registry(probes, state))

    def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        method, path = environ["REQUEST_METHOD"], environ.get("PATH_INFO", "")
        if method not in _METHODS:
            return _text(start_response, method, "405 Method Not Allowed", "use GET", [("Allow", "GET, HEAD")])
        if path == "/healthz":
            reason = why_unhealthy(probes, state, monotonic())
            if reason is None:
                return _text(start_response, method, "200 OK", _serving(state.partitions_without_log))
            return _text(start_response, method, "503 Service Unavailable", reason)
        if path != "/metrics":
            return _text(start_response, method, "404 Not Found", "not here: there are /metrics and /healthz")
        try:
            body: Iterable[bytes] = metrics_app({**environ, "REQUEST_METHOD": "GET"}, start_response)
        except Exception:
            # A bug in a collector must not take the port down, nor look like a broker without data.
            logger.exception("cannot render the metrics")
            return _text(start_response, method, "500 Internal Server Error", "cannot render, see the broker's log")
        return [] if method == "HEAD" else body

    return application


def why_unhealthy(probes: BrokerProbes, state: BrokerState, now: float) -> str | None:
    """Return one line on why the broker does not serve, or None if it does. `now` is monotonic seconds."""
    if not state.ready:
        return f"not serving: {state.phase}"
    last_beat = probes.loop_lag.last_beat
    if last_beat is not None and now - last_beat > LOOP_STUCK_SECONDS:
        return f"not serving: the event loop has not run for {now - last_beat:.0f} s"
    return None


def _serving(partitions_without_log: int) -> str:
    return "serving" + (f", but {partitions_without_log} partitions have no log" if partitions_without_log else "")


def _text(
    start_response: StartResponse, method: str, status: str, line: str, headers: list[tuple[str, str]] | None = None
) -> list[bytes]:
    body = f"{line}\n".encode()
    fields = [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body))), *(headers or [])]
    start_response(status, fields)
    return [] if method == "HEAD" else [body]
