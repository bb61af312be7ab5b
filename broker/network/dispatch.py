"""From a request frame to a response frame: the dialect by the frame's first byte, the handler by its API.

Failures are handled here, once for all APIs and dialects:
  - FrameError, a frame that the dialect cannot answer, closes the connection. Which of an unknown API, an unknown
    version and an undecodable body are answered, and how, is up to the dialect;
  - BrokerError, from a handler or a decoder, is answered with its code;
  - any other exception is a bug in the broker: logged once with its traceback, answered UNKNOWN_SERVER_ERROR.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from time import perf_counter
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.network.deferred import Deferred
from barnabas.broker.network.response_frame import CloseConnection, ResponseFrame
from barnabas.broker.repeated_warnings import Event, RepeatedWarnings
from barnabas.protocol.dialects import DIALECTS
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.framing import FrameError
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.data.produce import forget_records

if TYPE_CHECKING:
    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import ApiProbe, BrokerProbes
    from barnabas.broker.quotas.session_quota import SessionQuota
    from barnabas.protocol.dialects import Dialect, Header, RepeatedRequest

logger = logging.getLogger(__name__)

Outcome = Any
"""What a handler returns: a response, a Deferred or a coroutine of one, or None for no response (acks=0).

A Deferred may resolve to an exception instead of a response."""

Handler = Callable[["Session", Any], Outcome]

ServeRepeated = Callable[["Session", Any, memoryview], Outcome]
"""A handler's `serve_repeated(session, request, records)`: serves a request that equals `request` but for its records.

Optional. The dialect then caches the shapes of this API's requests, so that most are not decoded."""


_Route = tuple[Handler, "ApiProbe", ServeRepeated | None]
"""A plain tuple: unpacking one is faster than unpacking a NamedTuple, and this is once per request."""

_new_tuple = tuple.__new__

LateResponse = ResponseFrame | CloseConnection | None
"""Result of a deferred request: a frame, no response (None), or the end of its connection."""

UNKNOWN_LABEL: Final = "unknown"
"""The `api` label of requests for an API that is not served."""


class Dispatcher:
    """Serves frames of every dialect through one table of handlers."""

    def __init__(
        self, handlers: Mapping[ApiKey, Handler], probes: BrokerProbes, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._routes: dict[int, _Route] = {
            api: (handler, probes.api(api.label), getattr(handler, "serve_repeated", None))
            for api, handler in handlers.items()
        }
        self._unknown = probes.api(UNKNOWN_LABEL)
        self._loop = loop
        self._warnings = RepeatedWarnings(loop)
        self._tasks: set[asyncio.Task[None]] = set()

    def serve(self, session: Session, frame: memoryview) -> ResponseFrame | Deferred[LateResponse] | None:
        """Serve one frame (without its size field); returns its response, now or later, or None for no response.

        Views of `frame` are not kept. Raises FrameError: close the connection.
        """
        cache = session.request_cache
        if cache is not None:
            repeated = cache.match(frame)
            if repeated is not None:
                return self._serve_repeated(session, frame, repeated)
        dialect = DIALECTS.get(frame[0])
        if dialect is None:
            raise FrameError(f"a frame that begins with 0x{frame[0]:02x} belongs to no supported protocol")
        started = perf_counter()
        header = dialect.read_request(frame)
        session.client_id = header.client_id
        quota = session.quota
        if quota is not None:
            quota.begin(started, len(frame))
        route = self._routes.get(header.api)
        if route is None or not dialect.is_supported(header):
            return self._refuse_unknown(dialect, session, header)
        handler, probe, serve_repeated = route
        request: Any = None
        try:
            request = dialect.decode_body(header)
            response = handler(session, request)
            kind = type(response)
            if serve_repeated is not None and session.caches_requests:
                session.request_cache = cache = dialect.cache_shape(cache, header, frame, request)
                session.caches_requests = cache is not None
            if kind is not Deferred and kind is not CoroutineType:
                response_frame = _encode(dialect, header, response)
                if quota is not None:
                    response_frame = _throttled(quota, dialect, header, response_frame)
                probe.observe(perf_counter() - started)
                return response_frame
        except (CloseConnection, FrameError):
            raise
        except Exception as error:  # noqa: BLE001 - a bug in a handler must not affect other connections
            return _PendingRequest(dialect, header, request, session, probe, started, self._warnings).refuse(error)
        pending = _PendingRequest(dialect, header, request, session, probe, started, self._warnings)
        return pending.respond_later(response) if kind is Deferred else self._run_in_task(pending, response)

    def _serve_repeated(
        self, session: Session, frame: memoryview, repeated: RepeatedRequest
    ) -> ResponseFrame | Deferred[LateResponse] | None:
        """Serve a request of a cached shape: like `serve`, without decoding."""
        started = perf_counter()
        shape, correlation_id, records = repeated
        session.client_id = shape.client_id
        quota = session.quota
        if quota is not None:
            quota.begin(started, len(frame))
        _, probe, serve_repeated = self._routes[shape.api]
        assert serve_repeated is not None
        try:
            response = serve_repeated(session, shape.request, records)
            if type(response) is not Deferred:
                response_frame: ResponseFrame = _new_tuple(
                    ResponseFrame, shape.encode_response(correlation_id, response)
                )
                if quota is not None:
                    throttle_ms = quota.finish(shape.api, is_answered=True)
                    if throttle_ms > 0:
                        header = shape.header(correlation_id)
                        response_frame = _with_throttle(DIALECTS[frame[0]], header, response_frame, throttle_ms)
                probe.observe(perf_counter() - started)
                return response_frame
        except Exception as error:  # noqa: BLE001 - as above
            response = error
        header = shape.header(correlation_id)
        pending = _PendingRequest(DIALECTS[frame[0]], header, shape.request, session, probe, started, self._warnings)
        return pending.refuse(response) if isinstance(response, Exception) else pending.respond_later(response)

    def _refuse_unknown(self, dialect: Dialect, session: Session, header: Header) -> ResponseFrame:
        self._unknown.count_error(ErrorCode.UNSUPPORTED_VERSION.name.lower())
        response_frame = ResponseFrame(*dialect.refuse_unknown(header))
        if session.quota is not None:
            session.quota.finish(header.api, is_answered=True)  # this response has no throttle time
        if header.api != ApiKey.API_VERSIONS:  # newer clients try their own version of ApiVersions first
            self._warnings.warn(
                logger,
                Event(session.host, "an API or version that is not served was requested"),
                "api %d version %d requested by %s is not served",
                header.api,
                header.version,
                session,
            )
        return response_frame

    def _run_in_task(self, pending: _PendingRequest, work: Coroutine[Any, Any, Any]) -> Deferred[LateResponse]:
        """Run a coroutine handler in a task, to its end even when the client disconnects.

        A task per request is slow, but only metadata changes and slow disk reads are coroutines.
        """
        late: Deferred[LateResponse] = Deferred()

        async def run() -> None:
            try:
                response = await work
            except Exception as error:  # noqa: BLE001 - as above
                response = error
            late.resolve(pending.respond(response))

        if pending.quota is not None:
            pending.quota.suspend()
            work = pending.quota.timed(work)
        task = self._loop.create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        pending.release_frame()
        return late


def _encode(dialect: Dialect, header: Header, response: Any) -> ResponseFrame | None:
    """Return the frame of a response; None stays None."""
    if response is None:
        return None
    response_frame: ResponseFrame = _new_tuple(ResponseFrame, dialect.encode_response(header, response))
    return response_frame


def _throttled(
    quota: SessionQuota, dialect: Dialect, header: Header, response_frame: ResponseFrame | None
) -> ResponseFrame | None:
    """Count a served request, mute its connection if a quota is exceeded, and return the response that says so."""
    throttle_ms = quota.finish(header.api, is_answered=response_frame is not None)
    if throttle_ms == 0 or response_frame is None:
        return response_frame
    return _with_throttle(dialect, header, response_frame, throttle_ms)


def _with_throttle(dialect: Dialect, header: Header, response_frame: ResponseFrame, throttle_ms: int) -> ResponseFrame:
    return ResponseFrame(dialect.with_throttle(header, response_frame.header, throttle_ms), response_frame.parts)


class _PendingRequest:
    """A request whose response is not encoded yet: what the encoding needs, and when the request arrived."""

    __slots__ = ("dialect", "header", "probe", "quota", "request", "session", "started", "warnings")

    def __init__(
        self,
        dialect: Dialect,
        header: Header,
        request: Any,
        session: Session,
        probe: ApiProbe,
        started: float,
        warnings: RepeatedWarnings,
    ) -> None:
        self.dialect = dialect
        self.header = header
        self.request = request
        self.session = session
        self.quota = session.quota
        self.probe = probe
        self.started = started
        self.warnings = warnings

    def respond(self, response: Any) -> LateResponse:
        """Return the frame of a late response, or of the exception that replaced it; None stays None.

        Never raises: the caller that resolves a Deferred must not receive this request's errors, and the connection
        must not wait forever.
        """
        try:
            if self.quota is not None:
                self.quota.resume()
            if isinstance(response, Exception):
                return self.refuse(response)
            try:
                response_frame = _encode(self.dialect, self.header, response)
                if self.quota is not None:
                    response_frame = _throttled(self.quota, self.dialect, self.header, response_frame)
            except Exception as error:  # noqa: BLE001 - see above
                return self.refuse(error)
        except FrameError as error:
            return CloseConnection(str(error))
        except Exception:
            logger.exception("a bug in the error response of api %d", self.header.api)
            return CloseConnection(f"no response could be encoded for api {self.header.api}")
        self.probe.observe(perf_counter() - self.started)
        return response_frame

    def respond_later(self, response: Deferred[Any]) -> Deferred[LateResponse]:
        """Return the deferred frame of a deferred response."""
        self.release_frame()
        if self.quota is not None:
            self.quota.suspend()
        late: Deferred[LateResponse] = Deferred(on_cancel=response.cancel)
        response.then(lambda value: late.resolve(self.respond(value)))
        return late

    def release_frame(self) -> None:
        """Drop all views of the receive buffer: the next frame will overwrite it."""
        self.header = self.header.without_frame()
        forget_records(self.request)

    def refuse(self, error: Exception) -> ResponseFrame:
        """Return the error response to the whole request; a bug is logged with its traceback."""
        header = self.header
        if isinstance(error, BrokerError):
            code, message = error.code, error.message
            if self.request is None:
                self.warnings.warn(
                    logger,
                    Event(self.session.host, "a request that does not decode was refused"),
                    "a request of api %d from %s is refused: %s",
                    header.api,
                    self.session,
                    error,
                )
        else:
            code, message = ErrorCode.UNKNOWN_SERVER_ERROR, "an error inside the broker; its log says more"
            logger.error("a bug in the handler of api %d, request of %s", header.api, self.session, exc_info=error)
        self.probe.count_error(code.name.lower())
        self.probe.observe(perf_counter() - self.started)
        response_frame = ResponseFrame(*self.dialect.encode_error(header, self.request, code, message))
        if self.quota is not None:
            return _throttled(self.quota, self.dialect, header, response_frame) or response_frame
        return response_frame
