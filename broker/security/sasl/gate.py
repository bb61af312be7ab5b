"""Authentication of one connection: serves its frames until the client is authenticated, and again when it must be.

    opened         the gate serves; a timer limits the whole authentication
    accepted       the session gets its principal, and the connection serves requests
    refused        the answer and the end of the connection wait for connection.failed.authentication.delay.ms, during
                   which nothing more of the client is served
    lifetime over  every request but SaslHandshake closes the connection without an answer (KIP-368)

A session without a lifetime leaves the gate for good: its requests cost nothing more. One with a lifetime may
authenticate again, at most once a second, by a SaslHandshake on the same connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from barnabas.broker.network.deferred import Deferred
from barnabas.broker.security.principal import user as user_principal
from barnabas.broker.security.sasl.conversation import Accepted, Compute, Conversation, Refused, Reply
from barnabas.protocol.framing import NATIVE_MAGIC

if TYPE_CHECKING:
    import asyncio

    from barnabas.broker.network.gating import GatedConnection
    from barnabas.broker.network.response_frame import LateResponse, ResponseFrame
    from barnabas.broker.network.session import Session
    from barnabas.broker.security.sasl.conversation import Login, Outcome
    from barnabas.broker.security.sasl.listener import SaslListener
    from barnabas.broker.security.sasl.work_queue import Job
    from barnabas.protocol.framing import FrameError, FrameLimit

MIN_REAUTHENTICATION_SECONDS: Final = 1.0
"""A SaslHandshake sooner after the last one is an ordinary request, which is refused; as in Kafka."""

MAX_TIMER_SECONDS: Final = 1e9
"""31 years: a timer of the loop cannot be arbitrarily long."""

FAILED: Final = "authentication_failed"
TIMED_OUT: Final = "authentication_timeout"
EXPIRED: Final = "session_expired"
"""Reasons of closed connections, as labels."""

_KAFKA_HANDSHAKE: Final = b"\x00\x11"
_NATIVE_HANDSHAKE: Final = b"\x95\x11"
"""Begin of the msgpack header: an array of five values, whose first is 17."""
_NATIVE_HEADER: Final = 4


class SaslGate:
    """The authentication of one connection, from its beginning to its end."""

    __slots__ = (
        "_connection",
        "_conversation",
        "_expired",
        "_job",
        "_listener",
        "_login",
        "_reauthenticated_at",
        "_timer",
    )

    def __init__(self, listener: SaslListener) -> None:
        self._listener = listener
        self._connection: GatedConnection
        self._conversation: Conversation | None = self._converse(None)
        self._login: Login | None = None
        self._expired = False
        self._reauthenticated_at: float | None = None
        self._job: Job | None = None
        self._timer: asyncio.TimerHandle | None = None

    # --- called by the connection

    @property
    def frame_limit(self) -> FrameLimit:
        """Limit on the frames before the client is authenticated."""
        return self._listener.frame_limit()

    def opened(self, connection: GatedConnection) -> None:
        """Begin; the connection has been accepted."""
        self._connection = connection
        self._listener.parts.unauthenticated.opened(connection)
        self._schedule(self._listener.timeout_seconds, self._time_out)

    def closed(self) -> None:
        """End; the connection is closed."""
        self._listener.parts.unauthenticated.ended(self._connection)
        if self._timer is not None:
            self._timer.cancel()
        if self._job is not None:
            self._job.cancel()

    def broken_frame(self, error: FrameError) -> bool:
        """Log a frame without a valid size. Returns False for an authenticated client: the connection logs it."""
        if self._conversation is None:
            return False
        self._count_failure(Refused("a malformed frame", detail=str(error)))
        return True

    def serve(self, session: Session, frame: memoryview) -> ResponseFrame | Deferred[LateResponse] | None:
        """Serve one frame of an authentication."""
        assert self._conversation is not None
        return self._carry_out(self._conversation.receive(session, frame), None)

    def serve_limited(self, session: Session, frame: memoryview) -> ResponseFrame | Deferred[LateResponse] | None:
        """Serve a request of an authenticated session with a lifetime."""
        if _is_handshake(frame) and self._may_reauthenticate():
            self._conversation = self._converse(self._login)
            self._connection.admit(self.serve, self.frame_limit)
            self._schedule(self._listener.timeout_seconds, self._time_out)
            return self.serve(session, frame)
        if self._expired:
            assert self._login is not None
            self._listener.parts.probe.count_expired(self._listener.name, self._login.mechanism)
            self._listener.parts.failures.session_over(session, self._listener.name)
            self._connection.abort(EXPIRED)
            return None
        return self._listener.parts.serve(session, frame)

    # --- outcomes

    def _carry_out(
        self, outcome: Outcome, late: Deferred[LateResponse] | None
    ) -> ResponseFrame | Deferred[LateResponse] | None:
        """Carry out an outcome; `late` is the answer that the connection waits for already."""
        match outcome:
            case Reply():
                return _answer(outcome.frame, late)
            case Accepted():
                self._accept(outcome.login)
                return _answer(outcome.frame, late)
            case Compute():
                return self._compute(outcome, late)
            case Refused():
                return self._refuse(outcome, late)

    def _accept(self, login: Login) -> None:
        listener, connection = self._listener, self._connection
        session = connection.session
        again = self._login is not None
        listener.parts.probe.count_success(listener.name, login.mechanism, again=again)
        session.principal = user_principal(login.user)
        session.token_authenticated = login.token_authenticated
        self._login = login
        listener.parts.unauthenticated.ended(connection)
        self._conversation = None
        self._expired = False
        listener.parts.authenticated(session)
        if self._timer is not None:
            self._timer.cancel()
        if login.lifetime_ms is None:
            connection.admit(listener.parts.serve, None)
        else:
            self._schedule(min(login.lifetime_ms / 1000, MAX_TIMER_SECONDS), self._expire)
            connection.admit(self.serve_limited, None)

    def _compute(self, step: Compute, late: Deferred[LateResponse] | None) -> Deferred[LateResponse]:
        answer: Deferred[LateResponse] = Deferred() if late is None else late

        def done(result: Any, error: BaseException | None) -> None:
            conversation = self._conversation
            assert conversation is not None
            try:
                if error is not None:
                    raise error
                self._carry_out(conversation.resume(result), answer)
            except Exception as bug:  # noqa: BLE001 - nobody else would end the connection
                self._listener.parts.failures.bug(self._connection.session, bug)
                self._refuse(Refused("an error inside the broker", mechanism=conversation.mechanism), answer)

        self._job = self._listener.parts.work.submit(step.run, done)
        return answer

    def _refuse(self, refusal: Refused, late: Deferred[LateResponse] | None) -> Deferred[LateResponse] | None:
        self._count_failure(refusal)
        if not refusal.is_delayed:
            self._connection.abort(FAILED)
            if late is not None:
                late.resolve(None)
            return late

        answer: Deferred[LateResponse] = Deferred() if late is None else late

        def end() -> None:
            self._connection.finish(FAILED)
            answer.resolve(refusal.frame)

        self._schedule(self._listener.failure_delay_seconds(), end)
        return answer

    def _count_failure(self, refusal: Refused) -> None:
        listener, session = self._listener, self._connection.session
        listener.parts.probe.count_failure(listener.name, refusal.mechanism, again=self._login is not None)
        listener.parts.failures.failed(
            session.host,
            listener.name,
            refusal.mechanism,
            refusal.reason,
            user=refusal.user,
            detail=refusal.detail,
        )

    # --- time

    def _schedule(self, seconds: float, call: Any) -> None:
        """Replace the gate's timer: it has one purpose at a time."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._listener.parts.loop.call_later(seconds, call)

    def _time_out(self) -> None:
        assert self._conversation is not None
        self._count_failure(Refused("not completed in time", mechanism=self._conversation.mechanism))
        self._connection.abort(TIMED_OUT)

    def _expire(self) -> None:
        self._expired = True

    def _may_reauthenticate(self) -> bool:
        now = self._listener.parts.loop.time()
        if self._reauthenticated_at is not None and now - self._reauthenticated_at < MIN_REAUTHENTICATION_SECONDS:
            return False
        self._reauthenticated_at = now
        return True

    def _converse(self, previous: Login | None) -> Conversation:
        listener = self._listener
        return Conversation(listener.mechanisms(), listener.answer_versions, listener.lifetime_ms, previous)


def _answer(frame: ResponseFrame, late: Deferred[LateResponse] | None) -> ResponseFrame | Deferred[LateResponse]:
    if late is None:
        return frame
    late.resolve(frame)
    return late


def _is_handshake(frame: memoryview) -> bool:
    """Return whether a frame is a SaslHandshake request, by the bytes of its API key."""
    if frame[0] == NATIVE_MAGIC:
        return bytes(frame[_NATIVE_HEADER : _NATIVE_HEADER + 2]) == _NATIVE_HANDSHAKE
    return bytes(frame[:2]) == _KAFKA_HANDSHAKE
