"""From a request frame to a response frame: the dialect by the frame's first byte, the handler by its API.

Failures are handled here, once for all APIs and dialects:
  - FrameError, a frame that the dialect cannot answer, closes the connection. Which of an unknown API, an unknown
    version and an undecodable body are answered, and how, is up to the dialect;
  - BrokerError, from a handler or a decoder, is answered with its code;
  - any other exception is a bug in the broker: logged once with its traceback, answered UNKNOWN_SERVER_ERROR.

Requests that name thousands of partitions are decoded on a thread, and their responses are encoded on one, as are those
of handlers that were busy for long: while it runs, the event loop waits for the interpreter lock for some milliseconds
at a time, instead of a tenth of a second for each megabyte. Handlers always run in the event loop, in turns. If the
client leaves before a large request is decoded, the request is dropped: its memory is no longer counted.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from time import perf_counter
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from barnabas.broker.network.deferred import Deferred
from barnabas.broker.network.response_frame import CloseConnection, LateResponse, ResponseFrame, encoded, throttled
from barnabas.broker.repeated_warnings import Event, RepeatedWarnings
from barnabas.protocol.dialects import KAFKA, dialect_of
from barnabas.protocol.errors import BrokerError, ErrorCode, without_frames
from barnabas.protocol.framing import FrameError
from barnabas.protocol.messages.api_key import ApiKey

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from barnabas.broker.network.kernels._frames import FrameRun
    from barnabas.broker.network.pending_request import PendingRequest
    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import ApiProbe, BrokerProbes
    from barnabas.protocol.dialects import Dialect, Header

logger = logging.getLogger(__name__)

T = TypeVar("T")

Outcome = Any
"""What a handler returns: a response, a Deferred or a coroutine of one, or None for no response (acks=0).

A Deferred may resolve to an exception instead of a response. One that a coroutine returns may resolve to another
coroutine; one that a handler returns directly may not."""

Handler = Callable[["Session", Any], Outcome]

_Route = tuple[Handler, "ApiProbe"]
"""A plain tuple: unpacking one is faster than unpacking a NamedTuple, and this is once per request."""

LARGE_REQUEST_BYTES: Final = 64 * 1024
"""A longer frame without records is decoded on a thread; a client with some hundred partitions sends shorter ones."""

LONG_HANDLER_SECONDS: Final = 0.005
"""Time in the event loop, over all its turns, from which on a handler's response is probably large."""

_PRODUCE: Final = int(ApiKey.PRODUCE)

UNKNOWN_LABEL: Final = "unknown"
"""The `api` label of requests for an API that is not served."""


class Dispatcher:
    """Serves frames of every dialect through one table of handlers."""

    def __init__(
        self,
        handlers: Mapping[ApiKey, Handler],
        probes: BrokerProbes,
        loop: asyncio.AbstractEventLoop,
        frames: FrameRun | None = None,
        codec_threads: Executor | None = None,
        *,
        serves_unstable: bool = False,
    ) -> None:
        """`frames` serves plain requests, instead of `serve`; None without compiled kernels.

        `codec_threads` decode and encode what is large; None: the event loop's default threads. `serves_unstable`:
        every client may use versions that Kafka holds back as unstable.
        """
        self.frames = frames
        if frames is not None:
            frames.use(self.serve)
        self._routes: dict[int, _Route] = {api: (handler, probes.api(api.label)) for api, handler in handlers.items()}
        self._unknown = probes.api(UNKNOWN_LABEL)
        self._loop = loop
        self._codec_threads = codec_threads
        self._serves_unstable = serves_unstable
        self._warnings = RepeatedWarnings(loop)
        self._tasks: set[asyncio.Task[None]] = set()

    def serve(
        self, session: Session, frame: memoryview, begun: Handler | None = None, arrived: float | None = None
    ) -> ResponseFrame | Deferred[LateResponse] | None:
        """Serve one frame (without its size field); returns its response, now or later, or None for no response.

        Views of `frame` are not kept, but by a large request until its handler has begun: the connection leaves the
        frame in its buffer as it is, as long as the response is pending. `begun` finishes a request that a kernel has
        begun, instead of the handler of its API; `arrived` is its arrival, by perf_counter, if it has waited. Raises
        FrameError: close the connection.
        """
        dialect = dialect_of(frame[0])
        started = perf_counter()
        header = dialect.read_request(frame)
        session.client_id = header.client_id
        quota = session.quota
        if quota is not None:
            quota.begin(started, len(frame))
        if arrived is not None:
            started = arrived
        route = self._routes.get(header.api)
        if route is None or not (
            dialect.is_supported(header)
            or ((self._serves_unstable or session.is_own) and dialect.is_supported(header, unstable=True))
        ):
            return self._refuse_unknown(dialect, session, header)
        handler, probe = route
        if begun is not None:
            handler = begun
        elif len(frame) > LARGE_REQUEST_BYTES and header.api != _PRODUCE:
            pending = self._pending(dialect, header, None, session, probe, started)
            return self._run_in_task(pending, self._decode_and_handle(pending, handler), is_large=True)
        request: Any = None
        try:
            request = dialect.decode_body(header)
            response = handler(session, request)
            kind = type(response)
            if kind is not Deferred and kind is not CoroutineType:
                response_frame = encoded(dialect, header, response)
                if quota is not None:
                    response_frame = throttled(quota, dialect, header, response_frame)
                probe.observe(perf_counter() - started)
                return response_frame
        except (CloseConnection, FrameError):
            raise
        except Exception as error:  # noqa: BLE001 - a bug in a handler must not affect other connections
            return self._pending(dialect, header, request, session, probe, started).refuse(error)
        pending = self._pending(dialect, header, request, session, probe, started)
        return pending.respond_later(response) if kind is Deferred else self._run_in_task(pending, response)

    def _pending(
        self, dialect: Dialect, header: Header, request: Any, session: Session, probe: ApiProbe, started: float
    ) -> PendingRequest:
        from barnabas.broker.network.pending_request import PendingRequest  # here: a start has none, and is short

        return PendingRequest(dialect, header, request, session, probe, started, self._warnings)

    def _refuse_unknown(self, dialect: Dialect, session: Session, header: Header) -> ResponseFrame:
        self._unknown.count_error(ErrorCode.UNSUPPORTED_VERSION.name.lower())
        if header.api != ApiKey.API_VERSIONS:  # newer clients try their own version of ApiVersions first
            self._warn_of_unknown(dialect, session, header)
        response_frame = ResponseFrame(*dialect.refuse_unknown(header))
        if session.quota is not None:
            session.quota.finish(header.api, is_answered=True)  # this response has no throttle time
        return response_frame

    def _warn_of_unknown(self, dialect: Dialect, session: Session, header: Header) -> None:
        """Say once for each host, API and version what is refused and what to do; a client may only see EOF."""
        advice = "see docs/protocol.md"
        if dialect is KAFKA:
            from barnabas.broker.network.refusal_advice import refusal_advice  # here: most clients are never refused

            advice = refusal_advice(header.api, header.version)
        self._warnings.warn(
            logger,
            Event(session.host, "an API or version that is not served was requested"),
            "api %d version %d requested by %s is not served: %s",
            header.api,
            header.version,
            session,
            advice,
            distinct=f"{header.api} {header.version}",
        )

    async def _decode_and_handle(self, pending: PendingRequest, handler: Handler) -> Any:
        """Decode a large request on a thread, run its handler, and return what the handler returns in the end."""
        try:
            try:
                pending.request = await self._on_codec_thread(pending, pending.decode)
            except FrameError as error:
                raise CloseConnection(str(error), "bad_frame") from None
            if pending.is_dropped:
                raise CloseConnection("the client has gone")
            response = handler(pending.session, pending.request)
        finally:
            pending.release_frame()
        return await response if type(response) is CoroutineType else response

    def _run_in_task(
        self, pending: PendingRequest, work: Coroutine[Any, Any, Any], *, is_large: bool = False
    ) -> Deferred[LateResponse]:
        """Run a coroutine handler in a task, to its end even when the client disconnects.

        A task per request is slow, but only metadata changes, slow disk reads and long requests are coroutines.
        """
        waiting: list[Deferred[Any]] = []

        def dropped() -> None:
            pending.drop()
            for each in waiting:
                each.cancel()

        late: Deferred[LateResponse] = Deferred(on_cancel=dropped)
        if pending.quota is not None:
            pending.quota.suspend()
        self._spawn(self._run(pending, work, late, waiting, is_large=is_large))
        if not is_large:
            pending.release_frame()
        return late

    async def _run(
        self,
        pending: PendingRequest,
        work: Coroutine[Any, Any, Any],
        late: Deferred[LateResponse],
        waiting: list[Deferred[Any]],
        *,
        is_large: bool,
    ) -> None:
        """Run a coroutine and resolve `late`; `waiting` takes the Deferred that it returns."""
        from barnabas.broker.network.timed_work import TimedWork  # here: a start needs no task, and should be short

        timed = TimedWork(work, pending.quota)
        response: Any
        try:
            response = await timed.run()
        except (BrokerError, CloseConnection, FrameError) as error:
            response = without_frames(error)
        except Exception as error:  # noqa: BLE001 - as above
            response = error
        if type(response) is Deferred:
            if pending.is_dropped:
                response.cancel()
                return
            waiting.append(response)
            response.then(partial(self._answered, pending, late, waiting, is_large))
        elif _is_answer(response) and (is_large or timed.seconds > LONG_HANDLER_SECONDS):
            late.resolve(await self._encode_on_thread(pending, response))
        else:
            late.resolve(pending.respond(response))

    def _answered(
        self,
        pending: PendingRequest,
        late: Deferred[LateResponse],
        waiting: list[Deferred[Any]],
        is_large: bool,
        response: Any,
    ) -> None:
        """Resolve `late` with what a coroutine's Deferred has brought."""
        if type(response) is CoroutineType:
            self._spawn(self._run(pending, response, late, waiting, is_large=is_large))
        elif is_large and _is_answer(response):
            self._spawn(self._encode_late(pending, late, response))
        else:
            late.resolve(pending.respond(response))

    async def _encode_late(self, pending: PendingRequest, late: Deferred[LateResponse], response: Any) -> None:
        late.resolve(await self._encode_on_thread(pending, response))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _encode_on_thread(self, pending: PendingRequest, response: Any) -> LateResponse:
        if isinstance(response, BrokerError):
            refusal = pending.note_refusal(response)
            try:
                return pending.respond(await self._on_codec_thread(pending, pending.encode_refusal, *refusal))
            except Exception as error:  # noqa: BLE001 - as above
                return pending.unanswerable(error)
        try:
            frame = await self._on_codec_thread(pending, encoded, pending.dialect, pending.header, response)
        except Exception as error:  # noqa: BLE001 - as above
            return pending.respond(error)
        return pending.respond(frame)

    async def _on_codec_thread(self, pending: PendingRequest, function: Callable[..., T], *args: Any) -> T:
        from barnabas.broker.network.timed_work import run_on_thread  # here: as in `_run`

        return await run_on_thread(self._codec_threads, pending.quota, function, *args)


def _is_answer(response: Any) -> bool:
    """Return whether it is a response or a refusal, and not a bug or the end of the connection."""
    return not isinstance(response, Exception) or isinstance(response, BrokerError)
