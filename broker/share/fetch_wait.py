"""A share fetch that found too few bytes, and waits for appends, for released records, or for its time to be up."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from barnabas.broker.network.deferred import Deferred

if TYPE_CHECKING:
    import asyncio

    from barnabas.broker.share.partition.served import ServedSharePartition

T = TypeVar("T")

Attempt = Callable[[bool], "tuple[T | None, list[ServedSharePartition]]"]
"""Tries to answer, given whether to answer in any case; returns the answer, or None, and what to wait for."""


class ShareFetchWait(Generic[T]):
    """Tries again whenever one of the share partitions may have more. A cancelled one never answers."""

    def __init__(
        self,
        attempt: Attempt[T],
        watched: list[ServedSharePartition],
        *,
        max_wait_seconds: float,
        loop: asyncio.AbstractEventLoop,
        ended: Callable[[ShareFetchWait[Any]], None],
    ) -> None:
        """`ended` is called once, when the wait is over or cancelled."""
        self._attempt = attempt
        self._watched: list[ServedSharePartition] = []
        self._ended = ended
        self.response: Deferred[T | Exception] = Deferred(on_cancel=self._leave)
        self._timer = loop.call_later(max_wait_seconds, self.finish)
        self._watch(watched)

    def wake(self) -> None:
        """Answer if there are enough records now."""
        self._try(in_any_case=False)

    def finish(self) -> None:
        """Answer with what there is."""
        self._try(in_any_case=True)

    def _try(self, *, in_any_case: bool) -> None:
        if self.response.done:
            return
        answer: T | Exception | None
        try:
            answer, watched = self._attempt(in_any_case)
        except Exception as error:  # noqa: BLE001 - it belongs to this request, not to the append that woke it
            answer, watched = error, []
        if answer is None:
            self._watch(watched)
            return
        self._leave()
        self.response.resolve(answer)

    def _watch(self, watched: list[ServedSharePartition]) -> None:
        if watched == self._watched:
            return
        self._unwatch()
        self._watched = watched
        for served in watched:
            served.add_waiter(self, self.wake)
            served.partition.add_waiter(self)

    def _unwatch(self) -> None:
        for served in self._watched:
            served.remove_waiter(self)
            served.partition.remove_waiter(self)

    def _leave(self) -> None:
        self._timer.cancel()
        self._unwatch()
        self._ended(self)
