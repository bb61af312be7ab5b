"""A Fetch of so many partitions that it is served in several turns of the event loop.

Other requests come between the turns. A partition is read in one turn, so its result is consistent, and a partition of
a session is settled by comparison with what the client knows, in whatever turn. But no wait may miss what happened to a
partition after it was read: the appended bytes are noted at the end of each turn and compared when the wait begins, as
are the offsets. If a settled partition of the session has news meanwhile, or another change was found, all is read once
more and answered, even with less than `min_bytes`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from barnabas.broker.handlers.data.fetch_contexts import IncrementalFetch
from barnabas.broker.handlers.turns import Turns
from barnabas.broker.network.response_frame import CloseConnection
from barnabas.broker.partitions.delayed_fetch import appended_bytes
from barnabas.protocol.messages.data.fetch import UNREAD_ERRORS

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from barnabas.broker.handlers.data.fetch import Context, FetchHandler
    from barnabas.broker.handlers.data.fetch_attempt import FetchAttempt
    from barnabas.broker.network.session import Session
    from barnabas.broker.partitions.late_response import Late
    from barnabas.protocol.messages.data.fetch import FetchRequest, FetchResponse

T = TypeVar("T")


class WideFetch:
    """One request, not of a standby. Serve it once.

    It ends with CloseConnection if the client goes before it waits: no session is created then.
    """

    __slots__ = ("_bytes_when_read", "_client_has_gone", "_context", "_counted", "_handler", "_request", "_session")

    def __init__(self, handler: FetchHandler, session: Session, request: FetchRequest, context: Context) -> None:
        self._handler = handler
        self._session = session
        self._request = request
        self._context = context
        self._client_has_gone = False
        self._counted = 0
        """Number of partitions whose appended bytes, when they were read, are in `_bytes_when_read`."""
        self._bytes_when_read = 0

    async def serve(self) -> FetchResponse | Late:
        """Read the partitions; return the response, or what waits for it."""
        request = self._request
        attempt = await self._read()
        request.forgotten = ()  # as for a small request
        if not attempt.old_format and not self._handler.is_complete(request, self._context, attempt):
            appended = appended_bytes(attempt.partitions, committed_only=attempt.committed_only) - self._bytes_when_read
            missing_bytes = attempt.missing_bytes(request.min_bytes) - appended
            if missing_bytes > 0 and self._may_wait(attempt):
                return self._handler.wait(request, self._context, attempt, missing_bytes, self._read_and_answer)
            attempt = await self._read()
        return await self._answer(attempt)

    def _may_wait(self, attempt: FetchAttempt) -> bool:
        """Return whether nothing but appends has happened since the partitions were read."""
        context = self._context
        results = [result for topic in attempt.topics for result in topic.partitions]
        read = [result for result in results if result.error not in UNREAD_ERRORS]
        if isinstance(context, IncrementalFetch):
            session = context.session
            if session.is_closed or not context.is_current or len(session.pending) != len(results):
                return False
        for partition, result in zip(attempt.partitions, read, strict=True):
            if not partition.is_available:
                return False
            log = partition.log  # records were deleted, or a mirror's log was cut
            if log.log_start_offset != result.log_start_offset or log.high_watermark < result.high_watermark:
                return False
        return True

    async def _read_and_answer(self) -> FetchResponse:
        return await self._answer(await self._read())

    async def _read(self) -> FetchAttempt:
        handler = self._handler
        attempt = handler.attempt(self._session, self._request)
        self._counted = self._bytes_when_read = 0

        def count() -> None:
            read = attempt.partitions[self._counted :]
            self._bytes_when_read += appended_bytes(read, committed_only=attempt.committed_only)
            self._counted += len(read)

        await self._in_turns(handler.reading(self._session, self._request, self._context, attempt), count)
        count()
        return attempt

    async def _answer(self, attempt: FetchAttempt) -> FetchResponse:
        handler = self._handler
        if attempt.old_format:
            await handler.convert(attempt)
        return await self._in_turns(handler.answering(self._session, self._request, self._context, attempt))

    async def _in_turns(self, steps: Generator[None, None, T], turn_ends: Callable[[], None] | None = None) -> T:
        """Run the steps in as many turns as they need; call `turn_ends` at the end of each but the last."""
        turns = Turns()
        on_closed = self._session.on_closed
        on_closed[self] = self._client_goes
        try:
            while True:
                next(steps)
                if turns.is_over:
                    if turn_ends is not None:
                        turn_ends()
                    await turns.next()
                    if self._client_has_gone:
                        steps.close()
                        raise CloseConnection("the client has gone")
        except StopIteration as end:
            result: T = end.value
            return result
        finally:
            on_closed.pop(self, None)

    def _client_goes(self) -> None:
        self._client_has_gone = True
