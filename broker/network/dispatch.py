"""From a frame to an answer: the dialect by the frame's first byte, the handler by its API.

What goes wrong is told apart here, once for all APIs and dialects:
  - what a dialect cannot answer (FrameError) closes the connection; which of an unknown API, an unknown version and a
    body that does not decode is answered, and how, is the dialect's own;
  - a BrokerError, of a handler or of a decoder, is answered with its code;
  - anything else is a bug of ours: logged once with its traceback, answered UNKNOWN_SERVER_ERROR.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from time import perf_counter
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Final, Protocol, cast

from barnabas.broker.handlers.data.produce import ProduceHandler
from barnabas.broker.network.deferred import Deferred
from barnabas.broker.network.response_frame import CloseConnection, ResponseFrame
from barnabas.broker.storage.log.append import AppendResult
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.framing import KAFKA_MAGIC, NATIVE_MAGIC, FrameError
from barnabas.protocol.kafka import dialect as kafka
from barnabas.protocol.kafka.data.repeated_produce import RepeatedProduce
from barnabas.protocol.kafka.dialect import RequestHeader as KafkaRequestHeader
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.data.produce import ProduceRequest, forget_records
from barnabas.protocol.native import dialect as native

if TYPE_CHECKING:
    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import ApiProbe, BrokerProbes
    from barnabas.protocol.kafka.data.repeated_produce import RepeatedRequest

logger = logging.getLogger(__name__)

Outcome = Any
"""What a handler returns: a response, a Deferred or a coroutine of one, or None for no answer (acks=0).

A Deferred may bring an exception in a response's place."""

Handler = Callable[["Session", Any], Outcome]


class Header(Protocol):
    """What dispatch reads of a dialect's own header."""

    @property
    def api(self) -> int:
        """Kafka's key of the API."""
        ...

    @property
    def version(self) -> int:
        """Of the API's messages."""
        ...

    @property
    def client_id(self) -> str | None:
        """Who the client says it is."""
        ...

    def without_frame(self) -> Header:
        """What an answer needs of it, without views of the frame."""
        ...


Encoded = tuple[bytes, Sequence[Any]]
"""An answer's frame: its first bytes, and what follows them (bytes and slices of files)."""


class Dialect(Protocol):
    """A codec between frames and the neutral requests and responses. `header` is the dialect's own value."""

    def read_request(self, frame: memoryview) -> Header:
        """Raises FrameError: close the connection."""
        ...

    def is_supported(self, header: Header) -> bool:
        """Whether `decode_body` knows the api in that version."""
        ...

    def refuse_unknown(self, header: Header) -> Encoded:
        """The answer to what is not supported. Raises FrameError: there is none, close the connection."""
        ...

    def decode_body(self, header: Header) -> Any:
        """The neutral request. Raises BrokerError: answer it; FrameError: close the connection."""
        ...

    def encode_response(self, header: Header, response: Any) -> Encoded:
        """The frame that answers `header`. Raises BrokerError: answer that instead."""
        ...

    def encode_error(self, header: Header, request: Any, code: ErrorCode, message: str) -> Encoded:
        """The frame that refuses `request` (None: it could not be decoded) as a whole.

        Raises FrameError: there is no answer to it, close the connection.
        """
        ...


_new_tuple = tuple.__new__
_NO_PARTS: Final = ()
_KAFKA = cast(Dialect, kafka)

_DIALECTS: dict[int, Dialect] = {NATIVE_MAGIC: cast(Dialect, native), KAFKA_MAGIC: _KAFKA}
"""By a frame's first byte."""

LateAnswer = ResponseFrame | CloseConnection | None
"""What a deferred answer becomes: a frame, none (None), or the end of its connection."""

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
        produce = handlers.get(ApiKey.PRODUCE)
        self._append_repeated = produce.append_repeated if isinstance(produce, ProduceHandler) else None
        self._produce_probe = probes.api(ApiKey.PRODUCE.label)
        self._unknown = probes.api(UNKNOWN_LABEL)
        self._loop = loop
        self._tasks: set[asyncio.Task[None]] = set()

    def serve(self, session: Session, frame: memoryview) -> ResponseFrame | Deferred[LateAnswer] | None:
        """The answer to one frame (without its size field), now or later; None where there is none to give.

        Views of `frame` are not kept. Raises FrameError: close the connection.
        """
        known = session.repeated_produce
        if known is not None:
            repeated = known.match(frame)
            if repeated is not None:
                return self._serve_repeated(session, repeated)
        dialect = _DIALECTS.get(frame[0])
        if dialect is None:
            raise FrameError(f"a frame that begins with 0x{frame[0]:02x} is of no protocol that is served here")
        started = perf_counter()
        header = dialect.read_request(frame)
        session.client_id = header.client_id
        entry = self._handlers.get(header.api)
        if entry is None or not dialect.is_supported(header):
            return self._refuse_unknown(dialect, session, header)
        handler, probe = entry
        request: Any = None
        try:
            request = dialect.decode_body(header)
            response = handler(session, request)
            kind = type(response)
            if type(request) is ProduceRequest and session.may_repeat and self._append_repeated is not None:
                _remember(session, header, frame, request)
            if kind is not Deferred and kind is not CoroutineType:
                answer = _answer(dialect, header, response)
                probe.observe(perf_counter() - started)
                return answer
        except (CloseConnection, FrameError):
            raise
        except Exception as error:  # noqa: BLE001 - a bug in a handler must not take the connection's neighbours along
            return _Waiting(dialect, header, request, session, probe, started).refuse(error)
        waiting = _Waiting(dialect, header, request, session, probe, started)
        return waiting.later(response) if kind is Deferred else self._in_task(waiting, response)

    def _serve_repeated(
        self, session: Session, repeated: RepeatedRequest
    ) -> ResponseFrame | Deferred[LateAnswer] | None:
        """As `serve`, of a produce request that says what an earlier one said but for its records."""
        started = perf_counter()
        shape, correlation_id, records = repeated
        session.client_id = shape.client_id
        append, probe = self._append_repeated, self._produce_probe
        assert append is not None
        try:
            response = append(session, shape.request, records)
            if type(response) is Deferred:
                return self._waiting_repeated(session, repeated, started).later(response)
            if type(response) is AppendResult:
                answer: ResponseFrame | None = _new_tuple(
                    ResponseFrame, (shape.answer(correlation_id, response), _NO_PARTS)
                )
            else:
                answer = _answer(_KAFKA, shape.header(correlation_id), response)
        except Exception as error:  # noqa: BLE001 - as above
            return self._waiting_repeated(session, repeated, started).refuse(error)
        probe.observe(perf_counter() - started)
        return answer

    def _waiting_repeated(self, session: Session, repeated: RepeatedRequest, started: float) -> _Waiting:
        shape, correlation_id, _ = repeated
        header = shape.header(correlation_id)
        return _Waiting(_KAFKA, header, shape.request, session, self._produce_probe, started)

    def _refuse_unknown(self, dialect: Dialect, session: Session, header: Header) -> ResponseFrame:
        self._unknown.count_error(ErrorCode.UNSUPPORTED_VERSION.name.lower())
        answer = ResponseFrame(*dialect.refuse_unknown(header))
        if header.api != ApiKey.API_VERSIONS:  # asking for it in too new a version is how clients find out
            logger.warning("api %d version %d asked by %s is not served", header.api, header.version, session)
        return answer

    def _in_task(self, waiting: _Waiting, work: Coroutine[Any, Any, Any]) -> Deferred[LateAnswer]:
        """Requests that change metadata: rare, so a task each is fine. They finish even when the client has gone."""
        answer: Deferred[LateAnswer] = Deferred()

        async def run() -> None:
            try:
                response = await work
            except Exception as error:  # noqa: BLE001 - as above
                response = error
            answer.resolve(waiting.answer(response))

        task = self._loop.create_task(run())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        waiting.forget_frame()
        return answer


def _answer(dialect: Dialect, header: Header, response: Any) -> ResponseFrame | None:
    """The frame of a response; None stays None."""
    if response is None:
        return None
    answer: ResponseFrame = _new_tuple(ResponseFrame, dialect.encode_response(header, response))
    return answer


def _remember(session: Session, header: Header, frame: memoryview, request: ProduceRequest) -> None:
    """Know the next request like this one, which was served."""
    if not isinstance(header, KafkaRequestHeader):
        return
    known = session.repeated_produce
    if known is None:
        known = session.repeated_produce = RepeatedProduce()
    if not known.learn(header, frame, request):
        session.repeated_produce = None
        session.may_repeat = False


class _Waiting:
    """A request that is not answered at once: what its answer's frame will need, and when it came."""

    __slots__ = ("dialect", "header", "probe", "request", "session", "started")

    def __init__(
        self, dialect: Dialect, header: Header, request: Any, session: Session, probe: ApiProbe, started: float
    ) -> None:
        self.dialect = dialect
        self.header = header
        self.request = request
        self.session = session
        self.probe = probe
        self.started = started

    def answer(self, response: Any) -> LateAnswer:
        """The frame of a response that was waited for, or of the exception that came instead; None stays None.

        Raises nothing: whoever resolves the request must not get its bugs, and its connection must not wait for ever.
        """
        try:
            if isinstance(response, Exception):
                return self.refuse(response)
            try:
                answer = _answer(self.dialect, self.header, response)
            except Exception as error:  # noqa: BLE001 - see above
                return self.refuse(error)
        except FrameError as error:
            return CloseConnection(str(error))
        except Exception:
            logger.exception("a bug in the error answer of api %d", self.header.api)
            return CloseConnection(f"no answer could be made for api {self.header.api}")
        self.probe.observe(perf_counter() - self.started)
        return answer

    def later(self, response: Deferred[Any]) -> Deferred[LateAnswer]:
        """The answer that a deferred response becomes."""
        self.forget_frame()
        answer: Deferred[LateAnswer] = Deferred(on_cancel=response.cancel)
        response.then(lambda value: answer.resolve(self.answer(value)))
        return answer

    def forget_frame(self) -> None:
        """Let go of the receive buffer's views: the next frame will be read over them."""
        self.header = self.header.without_frame()
        forget_records(self.request)

    def refuse(self, error: Exception) -> ResponseFrame:
        """The answer to a request as a whole that failed; a bug is logged with its traceback."""
        header = self.header
        if isinstance(error, BrokerError):
            code, message = error.code, error.message
            if self.request is None:
                logger.warning("a request of api %d from %s is refused: %s", header.api, self.session, error)
        else:
            code, message = ErrorCode.UNKNOWN_SERVER_ERROR, "an error inside the broker; its log says more"
            logger.error("a bug in the handler of api %d, request of %s", header.api, self.session, exc_info=error)
        self.probe.count_error(code.name.lower())
        self.probe.observe(perf_counter() - self.started)
        return ResponseFrame(*self.dialect.encode_error(header, self.request, code, message))
