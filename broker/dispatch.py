"""From a frame to an answer: the dialect by the frame's first byte, the handler by its API.

What goes wrong is told apart here, once for all APIs:
  - framing that cannot be trusted (FrameError) closes the connection;
  - an API or version that we do not serve is answered UNSUPPORTED_VERSION, a body that does not decode INVALID_REQUEST;
  - a handler's BrokerError is answered with its code;
  - anything else is a bug of ours: logged once with its traceback, answered UNKNOWN_SERVER_ERROR.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from time import perf_counter
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from barnabas.broker.answer import Answer, CloseConnection
from barnabas.broker.deferred import Deferred
from barnabas.protocol.errors import BrokerError, DecodeError, ErrorCode
from barnabas.protocol.framing import KAFKA_MAGIC, NATIVE_MAGIC, FrameError
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.fetch import FetchResponse, records_of
from barnabas.protocol.native import codec as native
from barnabas.protocol.native.codec import RequestHeader

if TYPE_CHECKING:
    from barnabas.broker.metrics.probes import ApiProbe, BrokerProbes
    from barnabas.broker.session import Session
    from barnabas.broker.storage.file_records import FileSlice

log = logging.getLogger(__name__)

Outcome = Any
"""What a handler returns: a response, a Deferred or a coroutine of one, or None for no answer (acks=0).

A Deferred may bring an exception in a response's place."""

Handler = Callable[["Session", Any], Outcome]


class Dialect(Protocol):
    """A codec between frames and the neutral requests and responses. `header` is the dialect's own value."""

    def read_request(self, frame: memoryview) -> RequestHeader:
        """Raises FrameError: close the connection."""
        ...

    def is_supported(self, header: RequestHeader) -> bool:
        """Whether `decode_body` knows the api in that version."""
        ...

    def decode_body(self, header: RequestHeader) -> Any:
        """The neutral request. Raises DecodeError, naming the field."""
        ...

    def encode_response(self, header: RequestHeader, response: Any, records_bytes: int) -> bytes:
        """The frame that answers `header`, up to its records."""
        ...

    def encode_error(self, header: RequestHeader, code: ErrorCode, message: str) -> bytes:
        """The frame that refuses `header` as a whole."""
        ...


_new_tuple = tuple.__new__

_NATIVE = cast(Dialect, native)

UNKNOWN_LABEL: Final = "unknown"
"""The `api` label of requests for an API that is none of ours."""


class Dispatcher:
    """Serves frames of either dialect through one table of handlers."""

    def __init__(
        self, handlers: Mapping[ApiKey, Handler], probes: BrokerProbes, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._handlers: dict[int, tuple[Handler, ApiProbe]] = {
            api: (handler, probes.api(api.label)) for api, handler in handlers.items()
        }
        self._unknown = probes.api(UNKNOWN_LABEL)
        self._loop = loop
        self._tasks: set[asyncio.Task[None]] = set()

    def serve(self, session: Session, frame: memoryview) -> Answer | Deferred[Answer | None] | None:
        """The answer to one frame (without its size field), now or later; None where there is none to give.

        Views of `frame` are not kept. Raises FrameError: close the connection.
        """
        magic = frame[0]
        if magic == NATIVE_MAGIC:
            return self._serve(_NATIVE, session, frame)
        if magic == KAFKA_MAGIC:
            raise FrameError("this looks like a request of Kafka's protocol, which this version does not serve yet")
        raise FrameError(f"a frame that begins with 0x{magic:02x} is of no protocol that is served here")

    def _serve(self, dialect: Dialect, session: Session, frame: memoryview) -> Answer | Deferred[Answer | None] | None:
        started = perf_counter()
        header = dialect.read_request(frame)
        session.client_id = header.client_id
        entry = self._handlers.get(header.api)
        if entry is None or not dialect.is_supported(header):
            self._unknown.count_error(ErrorCode.UNSUPPORTED_VERSION.name.lower())
            log.warning("api %d version %d asked by %s is not served", header.api, header.version, session)
            message = f"api {header.api} version {header.version} is not served here; hello lists what is"
            return Answer(dialect.encode_error(header, ErrorCode.UNSUPPORTED_VERSION, message))
        handler, probe = entry
        try:
            response = handler(session, dialect.decode_body(header))
            kind = type(response)
            if kind is not Deferred and kind is not CoroutineType:
                answer = _answer(dialect, header, response)
                probe.observe(perf_counter() - started)
                return answer
        except CloseConnection:
            raise
        except Exception as error:  # noqa: BLE001 - a bug in a handler must not take the connection's neighbours along
            return _Request(dialect, header, session, probe, started).refuse(error)
        request = _Request(dialect, header, session, probe, started)
        return request.later(response) if kind is Deferred else self._in_task(request, response)

    def _in_task(self, request: _Request, work: Coroutine[Any, Any, Any]) -> Deferred[Answer | None]:
        """Requests that change metadata: rare, so a task each is fine. They finish even when the client has gone."""
        answer: Deferred[Answer | None] = Deferred()

        async def run() -> None:
            try:
                response = await work
            except Exception as error:  # noqa: BLE001 - as above
                response = error
            answer.resolve(request.answer(response))

        task = self._loop.create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        request.forget_frame()
        return answer


def _answer(dialect: Dialect, header: RequestHeader, response: Any) -> Answer | None:
    """The frame of a response; None stays None."""
    if response is None:
        return None
    if type(response) is not FetchResponse:
        answer: Answer = _new_tuple(Answer, (dialect.encode_response(header, response, 0), ()))
        return answer
    parts = cast("list[FileSlice]", records_of(response))
    return Answer(dialect.encode_response(header, response, sum([part.size for part in parts])), parts)


class _Request:
    """A request that is not answered at once: what its answer's frame will need, and when it came."""

    __slots__ = ("dialect", "header", "probe", "session", "started")

    def __init__(
        self, dialect: Dialect, header: RequestHeader, session: Session, probe: ApiProbe, started: float
    ) -> None:
        self.dialect = dialect
        self.header = header
        self.session = session
        self.probe = probe
        self.started = started

    def answer(self, response: Any) -> Answer | None:
        """The frame of a response that was waited for, or of the exception that came instead; None stays None."""
        if isinstance(response, Exception):
            return self.refuse(response)
        try:
            answer = _answer(self.dialect, self.header, response)
        except Exception as error:  # noqa: BLE001 - whoever resolves the request must not get its bugs
            return self.refuse(error)
        self.probe.observe(perf_counter() - self.started)
        return answer

    def later(self, response: Deferred[Any]) -> Deferred[Answer | None]:
        """The answer that a deferred response becomes."""
        self.forget_frame()
        answer: Deferred[Answer | None] = Deferred(on_cancel=response.cancel)
        response.then(lambda value: answer.resolve(self.answer(value)))
        return answer

    def forget_frame(self) -> None:
        """Let go of the receive buffer's views: the next frame will be read over them."""
        self.header = self.header._replace(body=None, records=memoryview(b""))

    def refuse(self, error: Exception) -> Answer:
        """The answer to a request as a whole that failed; a bug is logged with its traceback."""
        header = self.header
        if isinstance(error, BrokerError):
            code, message = error.code, error.message
        elif isinstance(error, DecodeError):
            code, message = ErrorCode.INVALID_REQUEST, str(error)
            log.warning("a request of api %d from %s does not decode: %s", header.api, self.session, error)
        else:
            code, message = ErrorCode.UNKNOWN_SERVER_ERROR, "an error inside the broker; its log says more"
            log.error("a bug in the handler of api %d, request of %s", header.api, self.session, exc_info=error)
        self.probe.count_error(code.name.lower())
        self.probe.observe(perf_counter() - self.started)
        return Answer(self.dialect.encode_error(header, code, message))
