"""A request that is not answered at once, or with an error: its response, or the refusal, is encoded here.

It is a module of its own because the first requests after a start are answered without it.
"""

from __future__ import annotations

import logging
from time import perf_counter
from typing import TYPE_CHECKING, Any

from barnabas.broker.network.deferred import Deferred
from barnabas.broker.network.response_frame import CloseConnection, LateResponse, ResponseFrame, encoded, throttled
from barnabas.broker.network.unsaid_refusals import log_unsaid
from barnabas.broker.repeated_warnings import Event
from barnabas.protocol.dialects import KAFKA
from barnabas.protocol.errors import BrokerError, ErrorCode, without_frames
from barnabas.protocol.framing import FrameError
from barnabas.protocol.messages.data.produce import ProduceRequest

if TYPE_CHECKING:
    from barnabas.broker.network.session import Session
    from barnabas.broker.probes import ApiProbe
    from barnabas.broker.repeated_warnings import RepeatedWarnings
    from barnabas.protocol.dialects import Dialect, Header

logger = logging.getLogger(__name__)


class PendingRequest:
    """A request whose response is not encoded yet: what the encoding needs, and when the request arrived."""

    __slots__ = ("dialect", "header", "is_dropped", "probe", "quota", "request", "session", "started", "warnings")

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
        self.is_dropped = False
        """Whether the client has gone, and nobody waits for the response."""

    def decode(self) -> Any:
        """Return the decoded request. For any thread; raises what the dialect raises, or CloseConnection if dropped."""
        header = self.header  # first: `drop` takes the frame from it after it has set `is_dropped`
        if self.is_dropped:
            raise CloseConnection("the client has gone")
        return self.dialect.decode_body(header)

    def drop(self) -> None:
        """Forget the frame, unless it is being decoded: its memory no longer counts as that of the connection."""
        self.is_dropped = True
        self.release_frame()

    def respond(self, response: Any) -> LateResponse:
        """Return the frame of a late response, or of the exception that replaced it; None and a frame stay as they are.

        Never raises: the caller that resolves a Deferred must not receive this request's errors, and the connection
        must not wait forever.
        """
        try:
            if self.quota is not None:
                self.quota.resume()
            if isinstance(response, CloseConnection | FrameError):
                raise response
            if isinstance(response, Exception):
                return self.refuse(response)
            try:
                is_encoded = type(response) is ResponseFrame
                response_frame = response if is_encoded else encoded(self.dialect, self.header, response)
                if self.quota is not None:
                    response_frame = throttled(self.quota, self.dialect, self.header, response_frame)
            except Exception as error:  # noqa: BLE001 - see above
                return self.refuse(error)
        except CloseConnection as end:
            return without_frames(end)
        except Exception as error:  # noqa: BLE001 - see above
            return self.unanswerable(error)
        self.probe.observe(perf_counter() - self.started)
        return response_frame

    def unanswerable(self, error: Exception) -> CloseConnection:
        """Return the end of the connection, for a refusal that could not be encoded; a bug is logged."""
        if isinstance(error, FrameError):
            return CloseConnection(str(error))
        self._log_bug("the error response", error)
        return CloseConnection(f"no response could be encoded for api {self.header.api}")

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
        if type(self.request) is ProduceRequest:
            self.request.forget_records()

    def refuse(self, error: Exception) -> ResponseFrame:
        """Return the error response to the whole request; a bug is logged with its traceback."""
        refusal = self.note_refusal(error)
        self.probe.observe(perf_counter() - self.started)
        response_frame = self.encode_refusal(*refusal)
        if self.quota is not None:
            return throttled(self.quota, self.dialect, self.header, response_frame) or response_frame
        return response_frame

    def note_refusal(self, error: Exception) -> tuple[ErrorCode, str]:
        """Count and log an error of the whole request; return the code and the message for the client."""
        if isinstance(error, BrokerError):
            code, message = error.code, error.message
            if self.request is None:
                event = Event(self.session.host, "a request that does not decode was refused")
                text = "a request of api %d from %s is refused: %s"
                self.warnings.warn(logger, event, text, self.header.api, self.session, error)
            elif self.dialect is KAFKA or code is ErrorCode.UNKNOWN_SERVER_ERROR:  # the native dialect has messages
                log_unsaid(self.warnings, self.session, self.header.api, error, self.request)
        else:
            code, message = ErrorCode.UNKNOWN_SERVER_ERROR, "an error inside the broker; its log says more"
            self._log_bug("the handler", error)
        self.probe.count_error(code.name.lower())
        return code, message

    def encode_refusal(self, code: ErrorCode, message: str) -> ResponseFrame:
        """Return the response that refuses the whole request. For any thread."""
        return ResponseFrame(*self.dialect.encode_error(self.header, self.request, code, message))

    def _log_bug(self, place: str, error: Exception) -> None:
        """Log a traceback, or count it: a client can repeat the request that meets a bug."""
        name = f"a bug in {place} of api {self.header.api}"
        event = Event(self.session.host, name)
        self.warnings.bug(logger, event, error, "%s, request of %s", name, self.session)
