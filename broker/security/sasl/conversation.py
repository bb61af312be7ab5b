"""State machine of one authentication: a client's frames in, answers and the verdict out. No I/O, no timers.

    START         ApiVersions (again while its version or, in Kafka's protocol, its client name is refused), then
                  SaslHandshake
    HANDSHAKE     SaslHandshake only: ApiVersions was answered
    EXCHANGE      the mechanism's messages: SaslAuthenticate requests, or bare frames after a SaslHandshake of version 0
    WRONG_MECHANISM  a re-authentication with another mechanism: refused at its next frame
    END           accepted or refused

A frame that is not part of an authentication ends it without an answer; a known request during the exchange is answered
ILLEGAL_SASL_STATE first. Answers to failed exchanges contain the mechanism's public text or a generic sentence.
Different from Kafka: at most MAX_FRAMES frames. Source: Kafka's SaslServerAuthenticator.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from barnabas.broker.network.response_frame import ResponseFrame
from barnabas.protocol.dialects import dialect_of
from barnabas.protocol.errors import BrokerError, ErrorCode
from barnabas.protocol.framing import NATIVE_MAGIC, FrameError
from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.messages.security.sasl import SaslAuthenticateResponse, SaslHandshakeResponse
from barnabas.protocol.sasl.exchange import Challenge, Failure, Step, Success, Work

if TYPE_CHECKING:
    from barnabas.broker.network.session import Session
    from barnabas.broker.security.sasl.mechanisms import Mechanism, Mechanisms
    from barnabas.protocol.dialects import Dialect, Header
    from barnabas.protocol.sasl.exchange import SaslServer

MAX_FRAMES: Final = 10
"""Frames of one authentication; the longest regular one has six."""

MAX_REFUSED_BYTES: Final = 16 * 1024
"""Larger requests of other APIs are refused without an answer, because they would have to be decoded first."""

NO_MECHANISM: Final = "none"
"""As a label: the client was refused before it chose a mechanism of the listener."""

_SIZE: Final = struct.Struct(">i")

NOT_SASL: Final = (
    "the first request is not one of an authentication: does the client have the listener's security.protocol?"
)


class Login(NamedTuple):
    """An accepted client. `lifetime_ms` is the session's; None: no limit."""

    mechanism: str
    user: str
    token_authenticated: bool
    lifetime_ms: int | None


class Reply(NamedTuple):
    """The authentication continues after this answer."""

    frame: ResponseFrame


class Compute(NamedTuple):
    """`run` blocks or computes for long; pass its result to `resume`."""

    run: Callable[[], Any]


class Accepted(NamedTuple):
    """The client is authenticated. It must receive the answer before any other."""

    frame: ResponseFrame
    login: Login


class Refused(NamedTuple):
    """The connection ends, after the answer, if there is one.

    `reason` is one of few texts; `detail` and `user` are for one log line. `is_delayed`: answer and end wait for
    connection.failed.authentication.delay.ms.
    """

    reason: str
    frame: ResponseFrame | None = None
    mechanism: str = NO_MECHANISM
    user: str | None = None
    detail: str = ""
    is_delayed: bool = False


Outcome = Reply | Compute | Accepted | Refused


class _State(Enum):
    START = "start"
    HANDSHAKE = "handshake"
    EXCHANGE = "exchange"
    WRONG_MECHANISM = "wrong mechanism"
    END = "end"


class _Request(NamedTuple):
    """The request that carries a message of the exchange. Both None: a bare frame, which is answered by one."""

    dialect: Dialect | None
    header: Header | None


class Conversation:
    """One authentication of one connection; `previous` is the login that a re-authentication renews."""

    def __init__(
        self,
        mechanisms: Mechanisms,
        answer_versions: Callable[[Session, memoryview], Any],
        lifetime_ms: Callable[[Mechanism, int | None], int | None],
        previous: Login | None = None,
    ) -> None:
        """`answer_versions` serves an ApiVersions frame; `lifetime_ms(mechanism, expires_at_ms)` limits a session."""
        self._mechanisms = mechanisms
        self._answer_versions = answer_versions
        self._lifetime_ms = lifetime_ms
        self._previous = previous
        self._state = _State.START if previous is None else _State.HANDSHAKE
        self._mechanism = NO_MECHANISM
        self._server: SaslServer | None = None
        self._is_bare = False
        self._request = _Request(None, None)
        self._frames = 0

    @property
    def mechanism(self) -> str:
        """The mechanism in use, NO_MECHANISM before one is chosen."""
        return self._mechanism

    @property
    def is_reauthentication(self) -> bool:
        """Whether it renews a login."""
        return self._previous is not None

    def receive(self, session: Session, frame: memoryview) -> Outcome:
        """Take one frame, without its size field. No view of it is kept."""
        self._frames += 1
        if self._frames > MAX_FRAMES:
            return self._refuse("the authentication has too many frames")
        if self._state is _State.WRONG_MECHANISM:
            return self._refuse("the mechanism differs from that of the first authentication", is_delayed=True)
        if self._state is _State.END:
            return self._refuse("a frame after the end of the authentication")
        try:
            if self._state is not _State.EXCHANGE:
                return self._begin(session, frame)
            if self._is_bare:
                return self._exchange(_Request(None, None), bytes(frame))
            return self._authenticate(frame)
        except FrameError as error:
            return self._refuse("a malformed frame", detail=str(error))

    def resume(self, result: Any) -> Outcome:
        """Take the result of the last Compute."""
        assert self._server is not None
        return self._outcome(self._server.resume(result))

    def _begin(self, session: Session, frame: memoryview) -> Outcome:
        """Serve ApiVersions or SaslHandshake. Other requests are refused undecoded."""
        dialect = dialect_of(frame[0])
        header = dialect.read_request(frame)
        session.client_id = header.client_id
        if header.api == ApiKey.SASL_HANDSHAKE and dialect.is_supported(header):
            return self._handshake(dialect, header, is_bare=frame[0] != NATIVE_MAGIC and header.version == 0)
        if header.api != ApiKey.API_VERSIONS or self._state is not _State.START:
            return self._refuse(NOT_SASL if self._frames == 1 else "another request than SaslHandshake")
        if dialect.is_supported(header):
            try:
                dialect.decode_body(header).check()
                self._state = _State.HANDSHAKE
            except BrokerError as error:
                if frame[0] == NATIVE_MAGIC:
                    return self._refuse("a malformed frame", detail=str(error))
        return Reply(self._answer_versions(session, frame))

    def _handshake(self, dialect: Dialect, header: Header, *, is_bare: bool) -> Outcome:
        try:
            name: str = dialect.decode_body(header).mechanism
        except BrokerError as error:
            return self._refuse("a malformed frame", detail=str(error))
        mechanism = self._mechanisms.get(name)
        code = ErrorCode.NONE if mechanism is not None else ErrorCode.UNSUPPORTED_SASL_MECHANISM
        response = SaslHandshakeResponse(error=code, mechanisms=tuple(self._mechanisms))
        answer = ResponseFrame(*dialect.encode_response(header, response))
        if mechanism is None:
            return self._refuse("the mechanism is not enabled", answer, detail=name, is_delayed=True)
        if self._previous is not None and self._previous.mechanism != name:
            self._mechanism = self._previous.mechanism
            self._state = _State.WRONG_MECHANISM
            return Reply(answer)
        self._mechanism = name
        self._server = mechanism.begin()
        self._is_bare = is_bare
        self._state = _State.EXCHANGE
        return Reply(answer)

    def _authenticate(self, frame: memoryview) -> Outcome:
        """Serve SaslAuthenticate; answer other requests ILLEGAL_SASL_STATE."""
        dialect = dialect_of(frame[0])
        header = dialect.read_request(frame)
        if not dialect.is_supported(header):
            return self._refuse("a request of an unsupported version")
        if header.api != ApiKey.SASL_AUTHENTICATE and len(frame) > MAX_REFUSED_BYTES:
            return self._refuse("another request than SaslAuthenticate")
        try:
            request = dialect.decode_body(header)
        except BrokerError as error:
            return self._refuse("a malformed frame", detail=str(error))
        if header.api == ApiKey.SASL_AUTHENTICATE:
            return self._exchange(_Request(dialect, header.without_frame()), request.auth_bytes)
        text = f"Unexpected Kafka request of type {ApiKey(header.api).name} during SASL authentication."
        answer = ResponseFrame(*dialect.encode_error(header, request, ErrorCode.ILLEGAL_SASL_STATE, text))
        return self._refuse("another request than SaslAuthenticate", answer, is_delayed=True)

    def _exchange(self, request: _Request, message: bytes) -> Outcome:
        assert self._server is not None
        self._request = request
        return self._outcome(self._server.respond(message))

    def _outcome(self, step: Step) -> Outcome:
        match step:
            case Challenge():
                return Reply(self._answer(SaslAuthenticateResponse(auth_bytes=step.data)))
            case Work():
                return Compute(step.run)
            case Failure():
                return self._fail(step)
            case Success():
                return self._accept(step)

    def _accept(self, step: Success) -> Outcome:
        previous = self._previous
        if previous is not None and previous.user != step.user:
            text = f"Cannot change principals during re-authentication from User.{previous.user}: User.{step.user}"
            return self._fail(Failure("the user differs from that of the first authentication", text, step.user))
        self._state = _State.END
        lifetime_ms = self._lifetime_ms(self._mechanisms[self._mechanism], step.expires_at_ms)
        login = Login(self._mechanism, step.user, step.token_authenticated, lifetime_ms)
        return Accepted(
            self._answer(SaslAuthenticateResponse(auth_bytes=step.data, session_lifetime_ms=lifetime_ms or 0)), login
        )

    def _fail(self, step: Failure) -> Refused:
        """Refuse the client's credential. A bare exchange has no answer for that."""
        text = step.public
        if text is None:
            during = "re-authentication" if self.is_reauthentication else "authentication"
            text = (
                f"Authentication failed during {during} due to invalid credentials with SASL mechanism"
                f" {self._mechanism}"
            )
        answer = None
        if not self._is_bare:
            answer = self._answer(SaslAuthenticateResponse(error=ErrorCode.SASL_AUTHENTICATION_FAILED, message=text))
        return self._refuse(step.reason, answer, user=step.user, is_delayed=True)

    def _answer(self, response: SaslAuthenticateResponse) -> ResponseFrame:
        dialect, header = self._request
        if dialect is None or header is None:
            return ResponseFrame(_SIZE.pack(len(response.auth_bytes)) + response.auth_bytes)
        return ResponseFrame(*dialect.encode_response(header, response))

    def _refuse(
        self,
        reason: str,
        frame: ResponseFrame | None = None,
        *,
        user: str | None = None,
        detail: str = "",
        is_delayed: bool = False,
    ) -> Refused:
        self._state = _State.END
        return Refused(reason, frame, self._mechanism, user, detail, is_delayed)
