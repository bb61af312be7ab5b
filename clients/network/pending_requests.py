"""Requests of one connection that wait for their answers, with one timer for the earliest deadline.

The broker answers a connection's requests in order, so an answer belongs to the oldest one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from barnabas.protocol.messages.api_key import ApiKey
from barnabas.protocol.wire.structures import Request


@dataclass(slots=True)
class PendingRequest:
    """A request without an answer yet. `deadline` is the loop's time."""

    api: ApiKey
    correlation_id: int
    timeout_ms: int
    future: asyncio.Future[Any]
    version: int
    asked: type[Request[Any]]
    deadline: float = 0.0


class PendingRequests:
    """`on_overdue` is called with the first request whose deadline is over."""

    __slots__ = ("_loop", "_on_overdue", "_requests", "_timer", "_timer_deadline")

    def __init__(self, loop: asyncio.AbstractEventLoop, on_overdue: Callable[[PendingRequest], None]) -> None:
        self._loop = loop
        self._on_overdue = on_overdue
        self._requests: deque[PendingRequest] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._timer_deadline = 0.0

    def __len__(self) -> int:
        return len(self._requests)

    def add(self, request: PendingRequest, sent_at: float) -> None:
        """Expect an answer within the request's timeout after `sent_at`."""
        request.deadline = sent_at + request.timeout_ms / 1000
        self._requests.append(request)
        if self._timer is None or request.deadline < self._timer_deadline:
            self._arm_timer(request.deadline)

    def oldest(self) -> PendingRequest:
        """Return the request that the next answer belongs to. Raises IndexError without one."""
        return self._requests[0]

    def remove_oldest(self) -> None:
        """Remove the request that has been answered."""
        self._requests.popleft()

    def postpone(self, until: float) -> None:
        """Let no timeout begin before `until`: the broker serves nothing before."""
        for request in self._requests:
            request.deadline = max(request.deadline, until + request.timeout_ms / 1000)

    def clear(self) -> list[PendingRequest]:
        """Remove and return all requests, and stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        requests, self._requests = self._requests, deque()
        return list(requests)

    def _arm_timer(self, deadline: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_deadline = deadline
        self._timer = self._loop.call_at(deadline, self._check_deadlines)

    def _check_deadlines(self) -> None:
        self._timer = None
        if not self._requests:
            return
        first = min(self._requests, key=lambda request: request.deadline)
        if first.deadline > self._loop.time():
            self._arm_timer(first.deadline)
        else:
            self._on_overdue(first)
